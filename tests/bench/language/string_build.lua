local function build(n)
    local parts = {}
    for i = 0, n - 1 do parts[#parts + 1] = "item " .. tostring(i) end
    local text = table.concat(parts, ", ")
    local longest = 0
    for word in (text .. ", "):gmatch("(.-), ") do
        if #word > longest then longest = #word end
    end
    return #text, longest
end
print(build(300000))
