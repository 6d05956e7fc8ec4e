local function run(n)
    local d = {[0] = 0}
    local size = 1
    for i = 0, n - 1 do
        local k = i * 7919 % 1000003
        if d[k] == nil then size = size + 1 end
        d[k] = i
    end
    local total = 0
    for i = 0, n - 1 do total = total + d[i * 7919 % 1000003] end
    return size, total
end
print(run(500000))
