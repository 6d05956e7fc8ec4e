local function classify(n)
    if n == 0 then return 1
    elseif n == 1 or n == 2 then return 2
    elseif n >= 3 and n <= 5 then return 3
    elseif n % 2 == 0 then return 4
    else return 5 end
end
local function name(word)
    if word == "add" then return 1
    elseif word == "sub" then return 2
    elseif word == "mul" then return 3
    else return 4 end
end
local function run(n)
    local total = 0
    local words = {[0] = "add", "sub", "mul", "div"}
    for i = 0, n - 1 do total = total + classify(i % 9) + name(words[i % 4]) end
    return total
end
print(run(1500000))
