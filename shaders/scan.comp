// SCAN: running sums or products of rows. LANES threads share a row, or one of its parts: each takes
// EACH numbers, four side by side, then adds what came before them. Rows in parts go through three
// dispatches: totals of the parts, their running totals, and with these the rows.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"
#include "lanes.glsl"

const uint GROUP = 256, EACH = 16;
layout(local_size_x = 256) in;
layout(constant_id = 1) const uint DTYPES = 0; // in, out
layout(constant_id = 2) const bool PRODUCT = false;
layout(constant_id = 3) const uint LANES = 256;
layout(constant_id = 4) const uint STEP = 0;
const uint ROWS = 0, TOTALS = 1, RUNNING = 2;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4;
const bool VECTOR = (VECTORS & 3u) == 3u;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Total { Sum v; };
layout(push_constant, scalar) uniform Push {
    Rows rows;
    uint64_t in_address, out_address, results, count;
    uint64_t totals; // [results, parts]
    uint64_t parts, part_count; // elements of a part: a multiple of what LANES threads take at once
};

shared Sum slots[GROUP];

Sum combine_at(uint how, Sum a, Sum b) {
    return PRODUCT ? sum_multiply(a, b) : sum_add(a, b);
}
JOIN_LANES(join_lanes, Sum, slots, combine_at, sum_beside)

Sum combine(Sum a, Sum b) {
    return combine_at(0, a, b);
}

real neutral() {
    return PRODUCT ? R(1) : R(0);
}

Sum put(Sum sum, real x) {
    return PRODUCT ? sum_multiply(sum, sum_of(x)) : sum_put(sum, x);
}

Sum put_four(Sum sum, real4 x) {
    return put(put(put(put(sum, x.x), x.y), x.z), x.w);
}

// Of four rounds that lanes of a subgroup take in turn: what came before the lane's own numbers of each
// round, in place of what these have. Returns what the lanes have together.
Sum before_rounds(inout Sum a, inout Sum b, inout Sum c, inout Sum d, uint near) {
    uint id = gl_SubgroupInvocationID, lane = id % near, last = id - lane + near - 1;
    for (uint apart = 1; apart < near; apart *= 2) {
        uint from = max(id, apart) - apart;
        Sum w = sum_at_lane(a, from), x = sum_at_lane(b, from), y = sum_at_lane(c, from),
            z = sum_at_lane(d, from);
        if (lane < apart) continue;
        a = combine(w, a);
        b = combine(x, b);
        c = combine(y, c);
        d = combine(z, d);
    }
    Sum first = sum_at_lane(a, last), second = combine(first, sum_at_lane(b, last)),
        third = combine(second, sum_at_lane(c, last)), all = combine(third, sum_at_lane(d, last));
    uint from = max(id, 1) - 1;
    Sum w = sum_at_lane(a, from), x = sum_at_lane(b, from), y = sum_at_lane(c, from),
        z = sum_at_lane(d, from), start = sum_of(neutral());
    a = lane == 0 ? start : w;
    b = lane == 0 ? first : combine(first, x);
    c = lane == 0 ? second : combine(second, y);
    d = lane == 0 ? third : combine(third, z);
    return all;
}

// What the subgroups before this one have for the row; `total`: what all have. Each time other slots.
Sum before_subgroup(inout Sum total, inout uint turn) {
    uint many = LANES / gl_SubgroupSize, own = gl_SubgroupID % many;
    uint first = turn + gl_SubgroupID - own;
    if (gl_SubgroupInvocationID == 0) slots[turn + gl_SubgroupID] = total;
    barrier();
    turn = GROUP / 2 - turn;
    Sum earlier = sum_of(neutral());
    total = earlier;
    for (uint i = 0; i < many; i++) {
        if (i == own) earlier = total;
        total = combine(total, slots[first + i]);
    }
    return earlier;
}

// Elements of a row from `at` on, before `end`.
real4 load_four(int64_t from, uint64_t at, uint64_t end) {
    real4 x = real4(neutral());
    if (VECTOR) {
        if (at < end) x = load_item(in_address, rows, 1, from, uint(at / 4UL), IN_DTYPE, true);
        return x;
    }
    for (int i = 0; i < 4; i++)
        if (at + uint64_t(i) < end)
            SET_LANE(x, i, load(in_address, from + row_offset(rows, 1, at + uint64_t(i)), IN_DTYPE));
    return x;
}

void store_four(int64_t to, uint64_t at, uint64_t end, real4 x) {
    if (VECTOR) {
        if (at < end) store_item(out_address, rows, to, uint(at / 4UL), OUT_DTYPE, true, x);
        return;
    }
    for (int i = 0; i < 4; i++)
        if (at + uint64_t(i) < end)
            store(out_address, to + row_offset(rows, 0, at + uint64_t(i)), OUT_DTYPE, LANE(x, i));
}

real4 running_four(inout Sum sum, real4 x) {
    real4 y;
    sum = put(sum, x.x);
    y.x = real_of_sum(sum);
    sum = put(sum, x.y);
    y.y = real_of_sum(sum);
    sum = put(sum, x.z);
    y.z = real_of_sum(sum);
    sum = put(sum, x.w);
    y.w = real_of_sum(sum);
    return y;
}

Total total_of_part(uint64_t row, uint64_t part) {
    return Total(totals + (row * parts + part) * 8UL);
}

void run_totals(uint64_t row, uint lane, bool exists) {
    Sum start = sum_of(neutral()), carry = start;
    uint turn = 0;
    for (uint64_t chunk = 0UL; chunk < parts; chunk += uint64_t(LANES)) {
        uint64_t at = chunk + uint64_t(lane);
        bool inside = exists && at < parts;
        Sum mine = start, none = start, no = start, never = start;
        if (inside) mine = total_of_part(row, at).v;
        Sum before = mine, total = before_rounds(before, none, no, never, gl_SubgroupSize);
        before = combine(before_subgroup(total, turn), before);
        if (inside) total_of_part(row, at).v = combine(carry, combine(before, mine));
        carry = combine(carry, total);
    }
}

void main() {
    uint thread = thread_number(), lane = thread % LANES;
    uint64_t unit = group_number() * uint64_t(GROUP / LANES) + uint64_t(thread / LANES);
    bool exists = unit < results * (STEP == RUNNING ? 1UL : parts); // others help at barriers
    if (STEP == RUNNING) {
        run_totals(unit, lane, exists);
        return;
    }
    uint64_t row = exists ? unit % results : 0UL, part = unit / results;
    uint64_t first = part * part_count, end = exists ? min(first + part_count, count) : 0UL;
    int64_t from = kept_offset(rows, 1, row), to = kept_offset(rows, 0, row);
    Sum start = sum_of(neutral()), carry = start, a = start, b = start, c = start, d = start;
    if (STEP == ROWS && exists && part > 0UL) carry = total_of_part(row, part - 1UL).v;
    // Lanes of a subgroup take four numbers in turn, so that they read and write side by side.
    uint near = min(LANES, gl_SubgroupSize), turn = 0;
    uint64_t apart = uint64_t(near * 4);
    first += uint64_t(lane / near * near * EACH + lane % near * 4);
    for (uint64_t chunk = 0UL; chunk < part_count; chunk += uint64_t(LANES * EACH)) {
        uint64_t at = first + chunk;
        real4 x = load_four(from, at, end), y = load_four(from, at + apart, end),
              z = load_four(from, at + 2UL * apart, end), w = load_four(from, at + 3UL * apart, end);
        if (STEP == TOTALS) {
            a = put_four(a, x);
            b = put_four(b, y);
            c = put_four(c, z);
            d = put_four(d, w);
            continue;
        }
        a = put_four(start, x);
        b = put_four(start, y);
        c = put_four(start, z);
        d = put_four(start, w);
        Sum total = before_rounds(a, b, c, d, near), earlier = carry;
        if (LANES > gl_SubgroupSize) earlier = combine(carry, before_subgroup(total, turn));
        a = combine(earlier, a);
        b = combine(earlier, b);
        c = combine(earlier, c);
        d = combine(earlier, d);
        store_four(to, at, end, running_four(a, x));
        store_four(to, at + apart, end, running_four(b, y));
        store_four(to, at + 2UL * apart, end, running_four(c, z));
        store_four(to, at + 3UL * apart, end, running_four(d, w));
        carry = combine(carry, total);
    }
    if (STEP == ROWS) return;
    carry = join_lanes(0, combine(combine(a, b), combine(c, d)), LANES);
    if (exists && lane == 0) total_of_part(row, part).v = carry;
}
