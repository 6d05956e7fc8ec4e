local function run(n)
    local xs = {}
    local seed = 42
    for i = 1, n do
        seed = (seed * 1103515245 + 12345) % 2147483648
        xs[#xs + 1] = seed
    end
    table.sort(xs, function(a, b) return a < b end)
    return xs[1], xs[n]
end
print(run(200000))
