local function add(a, b) return {x = a.x + b.x, y = a.y + b.y} end
local function run(n)
    local sum = {x = 0.0, y = 0.0}
    for i = 0, n - 1 do sum = add(sum, {x = 1.0, y = i * 0.5}) end
    return sum.x + sum.y
end
print(run(1000000))
