local sqrt = math.sqrt
local PI = 3.141592653589793
local SOLAR = 4 * PI * PI
local YEAR = 365.24
local function bodies()
    return {
        {x = 0.0, y = 0.0, z = 0.0, vx = 0.0, vy = 0.0, vz = 0.0, mass = SOLAR},
        {x = 4.84143144246472090, y = -1.16032004402742839, z = -0.103622044471123109,
            vx = 0.00166007664274403694 * YEAR, vy = 0.00769901118419740425 * YEAR,
            vz = -0.0000690460016972063023 * YEAR, mass = 0.000954791938424326609 * SOLAR},
        {x = 8.34336671824457987, y = 4.12479856412430479, z = -0.403523417114321381,
            vx = -0.00276742510726411185 * YEAR, vy = 0.00499852801234917238 * YEAR,
            vz = 0.0000230417297573763929 * YEAR, mass = 0.000285885980666130812 * SOLAR},
        {x = 12.8943695621391310, y = -15.1111514016986312, z = -0.223307578892655734,
            vx = 0.00296460137564761618 * YEAR, vy = 0.00237847173959480950 * YEAR,
            vz = -0.0000296589568540237556 * YEAR, mass = 0.0000436624404335156298 * SOLAR},
        {x = 15.3796971148509165, y = -25.9193146099879641, z = 0.179258772950371181,
            vx = 0.00268067772490389322 * YEAR, vy = 0.00162824170038242295 * YEAR,
            vz = -0.0000951592254519715870 * YEAR, mass = 0.0000515138902046611451 * SOLAR},
    }
end
local function advance(system, n, dt)
    for i = 1, n do
        local a = system[i]
        for j = i + 1, n do
            local b = system[j]
            local dx = a.x - b.x
            local dy = a.y - b.y
            local dz = a.z - b.z
            local square = dx * dx + dy * dy + dz * dz
            local pull = dt / (square * sqrt(square))
            local mb = b.mass * pull
            a.vx = a.vx - dx * mb
            a.vy = a.vy - dy * mb
            a.vz = a.vz - dz * mb
            local ma = a.mass * pull
            b.vx = b.vx + dx * ma
            b.vy = b.vy + dy * ma
            b.vz = b.vz + dz * ma
        end
    end
    for i = 1, n do
        local body = system[i]
        body.x = body.x + dt * body.vx
        body.y = body.y + dt * body.vy
        body.z = body.z + dt * body.vz
    end
end
local function energy(system, n)
    local e = 0.0
    for i = 1, n do
        local a = system[i]
        e = e + 0.5 * a.mass * (a.vx * a.vx + a.vy * a.vy + a.vz * a.vz)
        for j = i + 1, n do
            local b = system[j]
            local dx = a.x - b.x
            local dy = a.y - b.y
            local dz = a.z - b.z
            e = e - a.mass * b.mass / sqrt(dx * dx + dy * dy + dz * dz)
        end
    end
    return e
end
local system = bodies()
for i = 1, 50000 do advance(system, 5, 0.01) end
print(string.format("%.6f", energy(system, 5)))
