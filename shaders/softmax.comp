// SOFTMAX and its logarithm: LANES threads a row. A row whose items fit in the threads' registers is
// read once, longer ones are read again.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"
#include "sums.glsl"

const uint HELD_MAX = 8; // items a thread holds
layout(local_size_x_id = 3) in;
layout(constant_id = 1) const uint DTYPES = 0; // in, out
layout(constant_id = 2) const bool LOGARITHM = false;
layout(constant_id = 3) const uint GROUP = 256;
layout(constant_id = 4) const uint LANES = 256;
layout(constant_id = 5) const uint HELD = 0; // items a thread holds of a row; 0: it is read again
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4;
const bool VECTOR = (RANKS >> 8 & 3u) == 3u;
const uint WIDTH = VECTOR ? 4 : 1;

layout(push_constant, scalar) uniform Push {
    Rows rows;
    uint64_t in_address, out_address, results, count;
};

shared Sum values[GROUP];

real larger(real a, real b) {
    return real_isnan(a) ? a : (real_isnan(b) || b > a ? b : a);
}

Sum reduce_lanes(Sum mine, bool largest) {
    uint thread = gl_LocalInvocationID.x, lane = thread % LANES;
    barrier();
    values[thread] = mine;
    for (uint apart = LANES / 2; apart > 0; apart /= 2) {
        barrier();
        if (lane < apart) {
            Sum a = values[thread], b = values[thread + apart];
            values[thread] =
                largest ? sum_of(larger(real_of_sum(a), real_of_sum(b))) : sum_add(a, b);
        }
    }
    barrier();
    return values[thread - lane];
}

// The logarithm of a sum, with what its first part cannot hold.
real log_of_sum(Sum total) {
#ifdef REAL_F32
    return real_log(total.x) + total.y / total.x;
#else
    return real_log(total);
#endif
}

real largest_of(real mine, real4 item) {
    for (uint i = 0; i < WIDTH; i++) mine = larger(mine, item[i]);
    return mine;
}

// What a thread knows of its row.
struct Row {
    int64_t from, to;
    uint items, lane;
    bool exists;
};

real4 load_of(Row row, uint item) {
    return load_item(in_address, rows, 1, row.from, item, IN_DTYPE, VECTOR);
}

void store_of(Row row, uint item, real4 value) {
    if (row.exists) store_item(out_address, rows, row.to, item, OUT_DTYPE, VECTOR, value);
}

void held_row(Row row) {
    real4 held[HELD_MAX];
    real mine = -REAL_INFINITY;
    [[unroll]] for (uint h = 0; h < HELD_MAX; h++) {
        uint item = row.lane + h * LANES;
        if (h < HELD && item < row.items) held[h] = load_of(row, item);
    }
    for (uint h = 0; h < HELD_MAX; h++)
        if (h < HELD && row.lane + h * LANES < row.items) mine = largest_of(mine, held[h]);
    real highest = real_of_sum(reduce_lanes(sum_of(mine), true));
    Sum powers = sum_of(R(0));
    for (uint h = 0; h < HELD_MAX; h++) {
        if (h >= HELD || row.lane + h * LANES >= row.items) continue;
        for (uint i = 0; i < WIDTH; i++) {
            real value = held[h][i] - highest, power = real_exp(value);
            powers = sum_put(powers, power);
            held[h][i] = LOGARITHM ? value : power;
        }
    }
    Sum total = reduce_lanes(powers, false);
    real shift = LOGARITHM ? log_of_sum(total) : R(0), factor = R(1) / real_of_sum(total);
    [[unroll]] for (uint h = 0; h < HELD_MAX; h++) {
        uint item = row.lane + h * LANES;
        if (h < HELD && item < row.items)
            store_of(row, item, LOGARITHM ? held[h] - shift : held[h] * factor);
    }
}

void long_row(Row row) {
    real mine = -REAL_INFINITY;
    for (uint item = row.lane; item < row.items; item += LANES)
        mine = largest_of(mine, load_of(row, item));
    real highest = real_of_sum(reduce_lanes(sum_of(mine), true));
    Sum powers = sum_of(R(0));
    for (uint item = row.lane; item < row.items; item += LANES) {
        real4 value = load_of(row, item);
        for (uint i = 0; i < WIDTH; i++) powers = sum_put(powers, real_exp(value[i] - highest));
    }
    Sum total = reduce_lanes(powers, false);
    real shift = LOGARITHM ? log_of_sum(total) : R(0), factor = R(1) / real_of_sum(total);
    for (uint item = row.lane; item < row.items; item += LANES) {
        real4 value = load_of(row, item) - highest;
        for (uint i = 0; i < WIDTH; i++)
            value[i] = LOGARITHM ? value[i] - shift : real_exp(value[i]) * factor;
        store_of(row, item, value);
    }
}

void main() {
    uint thread = gl_LocalInvocationID.x;
    uint64_t number = group_number() * uint64_t(GROUP / LANES) + uint64_t(thread / LANES);
    Row row;
    row.exists = number < results; // the others help with the last one, for the barriers
    number = min(number, results - 1UL);
    row.from = kept_offset(rows, 1, number);
    row.to = kept_offset(rows, 0, number);
    row.items = uint(count) / WIDTH;
    row.lane = thread % LANES;
    if (HELD > 0)
        held_row(row);
    else
        long_row(row);
}
