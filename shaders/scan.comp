// SCAN: running sums or products of rows. LANES threads share a row, or one of its parts: each takes
// EACH neighbours, then adds what came before them. Rows in parts go through three dispatches: totals
// of the parts, their running totals, and with these the rows.
#include "types.glsl"
#include "host/scan.h"
#include "rows.glsl"
#include "lanes.glsl"

const uint GROUP = 256, EACH = 8;
layout(local_size_x = 256) in;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4;
const bool VECTOR = (VECTORS & 3u) == 3u;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Total { Sum v; };

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

// What the lanes before this one have, combined; `total`: what all have.
Sum before_lane(Sum mine, out Sum total) {
    uint near = min(LANES, gl_SubgroupSize), id = gl_SubgroupInvocationID, lane = id % near;
    Sum start = sum_of(neutral()), all = mine;
    for (uint apart = 1; apart < near; apart *= 2) {
        Sum before = sum_at_lane(all, max(id, apart) - apart);
        if (lane >= apart) all = combine(before, all);
    }
    Sum before = sum_at_lane(all, max(id, 1) - 1);
    if (lane == 0) before = start;
    total = sum_at_lane(all, id - lane + near - 1);
    if (LANES <= gl_SubgroupSize) return before;
    barrier();
    if (lane == 0) slots[gl_SubgroupID] = total;
    barrier();
    uint many = LANES / gl_SubgroupSize, own = gl_SubgroupID % many, first = gl_SubgroupID - own;
    Sum earlier = start;
    total = start;
    for (uint i = 0; i < many; i++) {
        if (i == own) earlier = total;
        total = combine(total, slots[first + i]);
    }
    return combine(earlier, before);
}

// Elements of a row from `at` on, before `end`.
real4 load_four(int64_t from, uint64_t at, uint64_t end) {
    real4 x = real4(neutral());
    if (VECTOR) {
        if (at < end) x = load_item(in_address, rows, 1, from, uint(at / 4UL), IN_DTYPE, true);
        return x;
    }
    if (at < end) x.x = load(in_address, from + row_offset(rows, 1, at), IN_DTYPE);
    if (at + 1UL < end) x.y = load(in_address, from + row_offset(rows, 1, at + 1UL), IN_DTYPE);
    if (at + 2UL < end) x.z = load(in_address, from + row_offset(rows, 1, at + 2UL), IN_DTYPE);
    if (at + 3UL < end) x.w = load(in_address, from + row_offset(rows, 1, at + 3UL), IN_DTYPE);
    return x;
}

void store_four(int64_t to, uint64_t at, uint64_t end, real4 x) {
    if (VECTOR) {
        if (at < end) store_item(out_address, rows, to, uint(at / 4UL), OUT_DTYPE, true, x);
        return;
    }
    for (uint i = 0; i < 4; i++)
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
    Sum carry = sum_of(neutral());
    for (uint64_t chunk = 0UL; chunk < parts; chunk += uint64_t(LANES)) {
        uint64_t at = chunk + uint64_t(lane);
        bool inside = exists && at < parts;
        Sum mine = sum_of(neutral()), total;
        if (inside) mine = total_of_part(row, at).v;
        Sum before = before_lane(mine, total);
        if (inside) total_of_part(row, at).v = combine(carry, combine(before, mine));
        carry = combine(carry, total);
    }
}

void main() {
    uint thread = thread_number(), lane = thread % LANES;
    uint64_t unit = group_number() * uint64_t(GROUP / LANES) + uint64_t(thread / LANES);
    bool exists = unit < results * (STEP == SCAN_RUNNING ? 1UL : parts); // others help at barriers
    if (STEP == SCAN_RUNNING) {
        run_totals(unit, lane, exists);
        return;
    }
    uint64_t row = exists ? unit % results : 0UL, part = unit / results;
    uint64_t first = part * part_count, end = exists ? min(first + part_count, count) : 0UL;
    int64_t from = kept_offset(rows, 1, row), to = kept_offset(rows, 0, row);
    Sum carry = sum_of(neutral()), also = carry;
    if (STEP == SCAN_ROWS && exists && part > 0UL) carry = total_of_part(row, part - 1UL).v;
    for (uint64_t chunk = 0UL; chunk < part_count; chunk += uint64_t(LANES * EACH)) {
        uint64_t at = first + chunk + uint64_t(lane * EACH);
        real4 x = load_four(from, at, end), y = load_four(from, at + 4UL, end);
        if (STEP == SCAN_TOTALS) {
            carry = put_four(carry, x);
            also = put_four(also, y);
            continue;
        }
        Sum total, before = before_lane(put_four(put_four(sum_of(neutral()), x), y), total);
        Sum sum = combine(carry, before);
        store_four(to, at, end, running_four(sum, x));
        store_four(to, at + 4UL, end, running_four(sum, y));
        carry = combine(carry, total);
    }
    if (STEP == SCAN_ROWS) return;
    carry = join_lanes(0, combine(carry, also), LANES);
    if (exists && lane == 0) total_of_part(row, part).v = carry;
}
