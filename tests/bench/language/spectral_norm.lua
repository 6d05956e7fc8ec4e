local function a(i, j)
    local ij = i + j
    return 1.0 / (ij * (ij + 1) * 0.5 + i + 1)
end
local function multiply(x, y, n)
    for i = 0, n - 1 do
        local s = 0.0
        for j = 0, n - 1 do s = s + a(i, j) * x[j + 1] end
        y[i + 1] = s
    end
end
local function multiply_transposed(x, y, n)
    for i = 0, n - 1 do
        local s = 0.0
        for j = 0, n - 1 do s = s + a(j, i) * x[j + 1] end
        y[i + 1] = s
    end
end
local function run(n)
    local u, v, t = {}, {}, {}
    for i = 1, n do u[i], v[i], t[i] = 1.0, 0.0, 0.0 end
    for i = 1, 10 do
        multiply(u, t, n)
        multiply_transposed(t, v, n)
        multiply(v, t, n)
        multiply_transposed(t, u, n)
    end
    local vbv, vv = 0.0, 0.0
    for i = 1, n do
        vbv = vbv + u[i] * v[i]
        vv = vv + v[i] * v[i]
    end
    return math.sqrt(vbv / vv)
end
print(string.format("%.6f", run(200)))
