local function fill(n)
    local xs = {}
    for i = 0, n - 1 do xs[#xs + 1] = i end
    local total = 0
    while #xs > 0 do total = total + table.remove(xs) end
    return total
end
print(fill(2000000))
