local function build(n)
    local total = 0
    for i = 0, n - 1 do total = total + #string.format("row %d: %.2f", i, i * 0.5) end
    return total
end
print(build(300000))
