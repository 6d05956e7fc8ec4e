// SOFTMAX and its logarithm: one workgroup a row. A row of at most HELD numbers a thread stays in
// registers, longer ones are read again.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"
#include "sums.glsl"

const uint GROUP = 256, HELD = 16;
layout(local_size_x = 256) in;
layout(constant_id = 1) const uint DTYPES = 0; // in, out
layout(constant_id = 2) const bool LOGARITHM = false;
layout(constant_id = 3) const bool SHORT = false; // the row is held
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4;

layout(push_constant, scalar) uniform Push {
    Rows rows;
    uint64_t in_address, out_address, results, count;
};

shared Sum values[GROUP];

real larger(real a, real b) {
    return real_isnan(a) ? a : (real_isnan(b) || b > a ? b : a);
}

Sum reduce_group(Sum mine, bool largest) {
    uint thread = gl_LocalInvocationID.x;
    barrier();
    values[thread] = mine;
    for (uint apart = GROUP / 2; apart > 0; apart /= 2) {
        barrier();
        if (thread < apart) {
            Sum a = values[thread], b = values[thread + apart];
            values[thread] =
                largest ? sum_of(larger(real_of_sum(a), real_of_sum(b))) : sum_add(a, b);
        }
    }
    barrier();
    return values[0];
}

// The logarithm of a sum, with what its first part cannot hold.
real log_of_sum(Sum total) {
#ifdef REAL_F32
    return real_log(total.x) + total.y / total.x;
#else
    return real_log(total);
#endif
}

real held[HELD];

real element(int64_t from, uint64_t e, uint i) {
    return SHORT ? held[i] : load(in_address, from + row_offset(rows, 1, e), IN_DTYPE);
}

void main() {
    uint64_t row = group_number();
    if (row >= results) return;
    int64_t from = kept_offset(rows, 1, row), to = kept_offset(rows, 0, row);
    uint64_t first = uint64_t(gl_LocalInvocationID.x);
    uint steps = SHORT ? HELD : uint((count + uint64_t(GROUP - 1)) / uint64_t(GROUP));
    if (SHORT) {
        [[unroll]] for (uint i = 0; i < HELD; i++) {
            uint64_t e = first + uint64_t(i * GROUP);
            if (e < count) held[i] = load(in_address, from + row_offset(rows, 1, e), IN_DTYPE);
        }
    }
    real mine = -REAL_INFINITY;
    for (uint i = 0; i < steps; i++) {
        uint64_t e = first + uint64_t(i) * uint64_t(GROUP);
        if (e < count) mine = larger(mine, element(from, e, i));
    }
    real highest = real_of_sum(reduce_group(sum_of(mine), true));
    Sum powers = sum_of(R(0));
    for (uint i = 0; i < steps; i++) {
        uint64_t e = first + uint64_t(i) * uint64_t(GROUP);
        if (e >= count) break;
        real value = element(from, e, i) - highest, power = real_exp(value);
        powers = sum_add(powers, sum_of(power));
        if (SHORT) held[i] = LOGARITHM ? value : power;
    }
    Sum total = reduce_group(powers, false);
    real shift = log_of_sum(total), factor = R(1) / real_of_sum(total);
    for (uint i = 0; i < steps; i++) {
        uint64_t e = first + uint64_t(i) * uint64_t(GROUP);
        if (e >= count) break;
        real value = element(from, e, i);
        if (LOGARITHM)
            value = (SHORT ? value : value - highest) - shift;
        else
            value = (SHORT ? value : real_exp(value - highest)) * factor;
        store(out_address, to + row_offset(rows, 0, e), OUT_DTYPE, value);
    }
}
