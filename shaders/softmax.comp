// SOFTMAX and its logarithm: LANES threads a row. A row whose items fit in the threads' registers is
// read once, longer ones twice.
#include "types.glsl"
#include "host/softmax.h"
#include "rows.glsl"
#include "lanes.glsl"

const uint HELD_MAX = 8; // items a thread holds
layout(local_size_x_id = 3) in;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4;
const bool VECTOR = ITEMS != ITEMS_SINGLE, SKEWED = ITEMS == ITEMS_SKEWED;
const uint WIDTH = VECTOR ? 4 : 1;

shared Sum values[GROUP];

const uint LARGEST = 0, TOTAL = 1;
Sum combine(uint how, Sum a, Sum b) {
    return how == LARGEST ? sum_of(max(start_of_sum(a), start_of_sum(b))) : sum_add(a, b);
}
JOIN_LANES(join_lanes, Sum, values, combine, sum_beside)

// The logarithm of a sum, with what its first part cannot hold.
real log_of_sum(Sum total) {
#ifdef REAL_F32
    return real_log(total.x) + total.y / total.x;
#else
    return real_log(total);
#endif
}

// The least finite number: distances from it are numbers.
#define LEAST -real_of_bits(TERMS(0x7F7FFFFFu, 0x7FEFFFFFFFFFFFFFUL))

// A NaN may be passed over here: its power is NaN, and with that the sum.
real largest_of(real mine, real4 item) {
    if (WIDTH == 1) return max(mine, item.x);
    return max(max(max(item.x, item.y), max(item.z, item.w)), mine);
}

// The device's own powers do for results of 16 bits: 3 + 2 |x| units of float32 are less than a
// hundredth of one of theirs.
real4 powers_of(real4 item) {
#ifdef REAL_F32
    if (OUT_DTYPE != FLOAT32) return exp2(item * R(1.44269504088896340736));
#endif
    for (uint i = 0; i < WIDTH; i++) SET_LANE(item, i, falling_exp(LANE(item, i)));
    return item;
}

// What a thread knows of its row.
struct Row {
    int64_t from, to;
    uint items, lane, skew;
    bool exists;
};

real4 load_of(Row row, uint item) {
    real4 value = load_item(in_address, rows, 1, row.from, item, IN_DTYPE, VECTOR);
    return SKEWED ? only_inside(value, item, row.skew, uint(count), -REAL_INFINITY) : value;
}

void store_of(Row row, uint item, real4 value) {
    if (!row.exists) return;
    if (SKEWED)
        store_inside(out_address, row.to, item, row.skew, uint(count), OUT_DTYPE, value);
    else
        store_item(out_address, rows, row.to, item, OUT_DTYPE, VECTOR, value);
}

// Powers are of distances from the thread's own largest item first, which no thread waits for: the
// others still load.
void held_row(Row row) {
    real4 held[HELD_MAX];
    real mine = LEAST;
    for (uint h = 0; h < HELD; h++) {
        uint item = row.lane + h * LANES;
        held[h] = load_of(row, min(item, row.items - 1));
    }
    for (uint h = 0; h < HELD; h++)
        if (row.lane + h * LANES < row.items) mine = largest_of(mine, held[h]);
    Sum powers = sum_of(R(0));
    for (uint h = 0; h < HELD; h++) {
        if (row.lane + h * LANES >= row.items) continue;
        real4 power = powers_of(held[h] - mine);
        powers = sum_put(powers, total_of(power, WIDTH));
        if (!LOGARITHM) held[h] = power;
    }
    real highest = real_of_sum(join_lanes(LARGEST, sum_of(mine), LANES));
    real share = falling_exp(mine - highest);
    Sum total = join_lanes(TOTAL, powers * share, LANES);
    real shift = LOGARITHM ? log_of_sum(total) : R(0), factor = share / real_of_sum(total);
    for (uint h = 0; h < HELD; h++) {
        uint item = row.lane + h * LANES;
        if (item < row.items)
            store_of(row, item, LOGARITHM ? (held[h] - highest) - shift : held[h] * factor);
    }
}

void long_row(Row row) {
    real mine = LEAST;
    Sum powers = sum_of(R(0));
    for (uint item = row.lane; item < row.items; item += LANES) {
        real4 value = load_of(row, item);
        real larger = largest_of(mine, value);
        if (larger > mine) {
            powers *= falling_exp(mine - larger);
            mine = larger;
        }
        powers = sum_put(powers, total_of(powers_of(value - mine), WIDTH));
    }
    real highest = real_of_sum(join_lanes(LARGEST, sum_of(mine), LANES));
    Sum total = join_lanes(TOTAL, powers * falling_exp(mine - highest), LANES);
    real shift = LOGARITHM ? log_of_sum(total) : R(0), factor = R(1) / real_of_sum(total);
    for (uint item = row.lane; item < row.items; item += LANES) {
        real4 value = load_of(row, item) - highest;
        store_of(row, item, LOGARITHM ? value - shift : powers_of(value) * factor);
    }
}

void main() {
    uint thread = thread_number();
    uint64_t number = group_number() * uint64_t(GROUP / LANES) + uint64_t(thread / LANES);
    Row row;
    row.exists = number < results; // the others help with the last one, for the barriers
    number = min(number, results - 1UL);
    row.from = kept_offset(rows, 1, number);
    row.to = kept_offset(rows, 0, number);
    row.skew = SKEWED ? skew_of(in_address, row.from, IN_DTYPE) : 0;
    row.from -= int64_t(row.skew);
    row.to -= int64_t(row.skew);
    row.items = (row.skew + uint(count) + WIDTH - 1) / WIDTH;
    row.lane = thread % LANES;
    if (HELD > 0)
        held_row(row);
    else
        long_row(row);
}
