local function count(text)
    local n = 0
    for i = 1, #text do
        if text:sub(i, i) == "a" then n = n + 1 end
    end
    return n + #text:sub(11, 20)
end
print(count(("ab"):rep(1000000)))
