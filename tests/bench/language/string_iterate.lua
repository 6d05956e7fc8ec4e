local function count(text)
    local n = 0
    for c in text:gmatch(utf8.charpattern) do
        if c == "é" then n = n + 1 end
    end
    return n
end
print(count(("aé"):rep(1000000)))
