local function steps(cr, ci)
    local zr = 0.0
    local zi = 0.0
    for i = 0, 49 do
        local r2 = zr * zr
        local i2 = zi * zi
        if r2 + i2 > 4.0 then return i end
        zi = 2.0 * zr * zi + ci
        zr = r2 - i2 + cr
    end
    return 50
end
local function run(n)
    local total = 0
    for y = 0, n - 1 do
        for x = 0, n - 1 do total = total + steps(2.0 * x / n - 1.5, 2.0 * y / n - 1.0) end
    end
    return total
end
print(run(300))
