local function make_adder(step)
    local total = 0
    return function(x)
        total = total + x * step
        return total
    end
end
local function run(n)
    local add = make_adder(3)
    local twice = function(f, x) return f(f(x) % 1000) end
    local last = 0
    for i = 0, n - 1 do last = twice(add, i) end
    return last
end
print(run(1000000))
