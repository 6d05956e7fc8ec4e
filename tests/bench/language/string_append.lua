local function main_loop(n)
    local s = ""
    for i = 1, n do s = s .. "x" end
    local t = ""
    for i = 1, n do t = t .. "yz" end
    return #s + #t
end
print(main_loop(100000))
