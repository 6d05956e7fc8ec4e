local function count(words, rounds)
    local counts = {none = 0}
    for i = 1, rounds do
        for _, word in ipairs(words) do
            if counts[word] then counts[word] = counts[word] + 1 else counts[word] = 1 end
        end
    end
    local total = 0
    for word, n in pairs(counts) do total = total + n end
    return total
end
local words = {}
for i = 0, 999 do words[#words + 1] = "word" .. tostring(i) end
print(count(words, 1000))
