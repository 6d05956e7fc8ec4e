// RMS_NORM and LAYER_NORM: LANES threads a row, which is read once where its items fit in their
// registers. Views: output, input, weight, bias.
#include "types.glsl"
#include "host/norm.h"
#include "rows.glsl"
#include "lanes.glsl"

const uint HELD_MAX = 8; // items a thread holds
layout(local_size_x_id = 3) in;
const bool VECTOR = ITEMS != ITEMS_SINGLE, SKEWED = ITEMS == ITEMS_SKEWED;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4 & 15u, WEIGHT = DTYPES >> 8 & 15u,
           BIAS = DTYPES >> 12 & 15u;
const uint WIDTH = VECTOR ? 4 : 1;

shared Sum values[GROUP];

Sum combine(uint how, Sum a, Sum b) {
    return sum_add(a, b);
}
JOIN_LANES(join_lanes, Sum, values, combine, sum_beside)

real4 held[HELD_MAX], weights[HELD_MAX], biases[HELD_MAX];

uint skew = 0;

// Weights or biases of an item.
real4 adjacent_of(uint64_t address, uint view, uint item, uint dtype) {
    if (!SKEWED) return load_item(address, rows, view, 0L, item, dtype, VECTOR);
    real4 x;
    for (uint i = 0; i < 4; i++) {
        uint element = clamp(item * 4 + i, skew, skew + uint(count) - 1) - skew;
        SET_LANE(x, i, load(address, row_offset(rows, view, uint64_t(element)), dtype));
    }
    return x;
}

real4 weight_of(uint item) {
    return adjacent_of(weight_address, 2, item, WEIGHT);
}

real4 bias_of(uint item) {
    return adjacent_of(bias_address, 3, item, BIAS);
}

// Item `h` of this thread.
real4 item_of(int64_t from, uint h) {
    if (HELD > 0) return held[h];
    return load_item(in_address, rows, 1, from, thread_number() % LANES + h * LANES, IN_DTYPE,
                     VECTOR);
}

void put_item(inout Sum sum, uint item, real4 value, real mean, bool squared) {
    real4 x = value - mean;
    if (SKEWED) x = only_inside(x, item, skew, uint(count), R(0));
    sum = sum_put(sum, total_of(squared ? x * x : x, WIDTH));
}

// Over the row: of its numbers, or of the squares of their distances from the mean.
Sum sum_row(int64_t from, uint items, real mean, bool squared) {
    uint lane = thread_number() % LANES;
    Sum mine = sum_of(R(0));
    if (HELD > 0) {
        for (uint h = 0; h < HELD; h++)
            if (lane + h * LANES < items)
                put_item(mine, lane + h * LANES, held[h], mean, squared);
    } else {
        for (uint h = 0; lane + h * LANES < items; h++)
            put_item(mine, lane + h * LANES, item_of(from, h), mean, squared);
    }
    return join_lanes(0, mine, LANES);
}

void store_of(int64_t to, uint h, real4 x) {
    uint item = thread_number() % LANES + h * LANES;
    if (WEIGHT != NO_DTYPE) x *= EARLY ? weights[h] : weight_of(item);
    if (BIAS != NO_DTYPE) x += EARLY ? biases[h] : bias_of(item);
    if (SKEWED)
        store_inside(out_address, to, item, skew, uint(count), OUT_DTYPE, x);
    else
        store_item(out_address, rows, to, item, OUT_DTYPE, VECTOR, x);
}

void main() {
    uint thread = thread_number(), lane = thread % LANES;
    uint64_t row = group_number() * uint64_t(GROUP / LANES) + uint64_t(thread / LANES);
    bool exists = row < results; // the others help with the last one, for the barriers
    row = min(row, results - 1UL);
    int64_t from = kept_offset(rows, 1, row), to = kept_offset(rows, 0, row);
    if (SKEWED) skew = skew_of(in_address, from, IN_DTYPE);
    from -= int64_t(skew);
    to -= int64_t(skew);
    uint items = (skew + uint(count) + WIDTH - 1) / WIDTH;
    for (uint h = 0; h < HELD; h++) {
        uint item = lane + h * LANES;
        held[h] = load_item(in_address, rows, 1, from, min(item, items - 1), IN_DTYPE,
                            VECTOR);
        if (EARLY && WEIGHT != NO_DTYPE) weights[h] = weight_of(min(item, items - 1));
        if (EARLY && BIAS != NO_DTYPE) biases[h] = bias_of(min(item, items - 1));
    }
    real mean = R(0);
    if (CENTRED) mean = real_of_sum(sum_row(from, items, R(0), false)) / real(count);
    if (CENTRED)
        for (uint h = 0; h < HELD; h++) held[h] -= mean;
    real away = HELD > 0 ? R(0) : mean; // of what is read again
    real square = real_of_sum(sum_row(from, items, away, true));
    real factor = R(1) / sqrt(square / real(count) + real(eps));
    if (!exists) return;
    if (HELD > 0) {
        for (uint h = 0; h < HELD; h++)
            if (lane + h * LANES < items)
                store_of(to, h, held[h] * factor);
    } else {
        for (uint h = 0; lane + h * LANES < items; h++)
            store_of(to, h, (item_of(from, h) - away) * factor);
    }
}
