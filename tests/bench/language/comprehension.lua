local function run(n)
    local total = 0
    for i = 1, n do
        local xs = {}
        for k = 0, 999 do
            if k % 3 ~= 0 then xs[#xs + 1] = k * k end
        end
        total = total + #xs
    end
    return total
end
print(run(2000))
