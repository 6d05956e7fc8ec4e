local Counter = {}
Counter.__index = Counter
function Counter.advance(self, by) self.count = self.count + by * self.step end
function Counter.read(self) return self.count end
local function run(n)
    local counter = setmetatable({count = 0, step = 2}, Counter)
    local total = 0
    for i = 0, n - 1 do
        counter:advance(i)
        total = total + counter:read() % 7
    end
    return total
end
print(run(1500000))
