local function run(n)
    local p = {x = 1.0, y = 2.0, z = 3.0}
    for i = 0, n - 1 do
        p.x = p.y * 0.5 + p.z
        p.y = p.x - p.z * 0.25
        p.z = p.z + 0.001
    end
    return p.x + p.y + p.z
end
print(run(1500000))
