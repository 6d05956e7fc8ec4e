local function sieve(n)
    local prime = {}
    for i = 0, n do prime[i] = true end
    local count = 0
    for i = 2, n do
        if prime[i] then
            count = count + 1
            local j = i * i
            while j <= n do
                prime[j] = false
                j = j + i
            end
        end
    end
    return count
end
print(sieve(2000000))
