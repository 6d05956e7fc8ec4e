local function sum_to(n)
    local s = 0
    for i = 0, n - 1 do
        if i % 3 == 0 then s = s + i else s = s - 1 end
    end
    return s
end
print(sum_to(5000000))
