local function make(n, scale)
    local m = {}
    for i = 0, n - 1 do
        local row = {}
        for j = 0, n - 1 do row[j + 1] = (i * n + j) * scale end
        m[i + 1] = row
    end
    return m
end
local function multiply(a, b, n)
    local c = make(n, 0.0)
    for i = 1, n do
        for j = 1, n do
            local s = 0.0
            for k = 1, n do s = s + a[i][k] * b[k][j] end
            c[i][j] = s
        end
    end
    return c
end
local n = 150
local c = multiply(make(n, 0.5), make(n, 0.25), n)
print(c[n][n])
