local function make(depth)
    if depth == 0 then return {} end
    return {left = make(depth - 1), right = make(depth - 1)}
end
local function count(node)
    if node.left == nil then return 1 end
    return 1 + count(node.left) + count(node.right)
end
local total = 0
for i = 1, 16 do total = total + count(make(14)) end
print(total)
