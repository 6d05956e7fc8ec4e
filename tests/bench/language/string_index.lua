-- Lua's utf8.offset looks for each character from the start, so its program keeps the offsets.
local function count(text)
    local offsets, n = {}, 0
    for place in utf8.codes(text) do offsets[#offsets + 1] = place end
    offsets[#offsets + 1] = #text + 1
    for i = 1, #offsets - 1 do
        if text:sub(offsets[i], offsets[i + 1] - 1) == "é" then n = n + 1 end
    end
    return n
end
print(count(("aé"):rep(500000)))
