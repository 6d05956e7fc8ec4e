// RMS_NORM and LAYER_NORM: one workgroup a row. Views: output, input, weight, bias.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"
#include "sums.glsl"

const uint GROUP = 256;
layout(local_size_x = 256) in;
layout(constant_id = 1) const uint DTYPES = 0; // in, out, weight, bias; NONE for none
layout(constant_id = 2) const bool CENTRED = false;
const uint NONE = 15;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4 & 15u, WEIGHT = DTYPES >> 8 & 15u,
           BIAS = DTYPES >> 12 & 15u;

layout(push_constant, scalar) uniform Push {
    Rows rows;
    uint64_t in_address, out_address, weight_address, bias_address, results, count;
    real eps;
};

shared Sum partial_sums[GROUP];

Sum reduce_group(Sum mine) {
    uint thread = gl_LocalInvocationID.x;
    barrier();
    partial_sums[thread] = mine;
    for (uint apart = GROUP / 2; apart > 0; apart /= 2) {
        barrier();
        if (thread < apart)
            partial_sums[thread] = sum_add(partial_sums[thread], partial_sums[thread + apart]);
    }
    barrier();
    return partial_sums[0];
}

void main() {
    uint64_t row = group_number();
    if (row >= results) return;
    int64_t from = kept_offset(rows, 1, row), to = kept_offset(rows, 0, row);
    uint64_t first = uint64_t(gl_LocalInvocationID.x);
    real mean = R(0);
    if (CENTRED) {
        Sum mine = sum_of(R(0));
        for (uint64_t e = first; e < count; e += uint64_t(GROUP))
            mine = sum_add(mine, sum_of(load(in_address, from + row_offset(rows, 1, e), IN_DTYPE)));
        mean = real_of_sum(reduce_group(mine)) / real(count);
    }
    Sum mine = sum_of(R(0));
    for (uint64_t e = first; e < count; e += uint64_t(GROUP)) {
        real x = load(in_address, from + row_offset(rows, 1, e), IN_DTYPE) - mean;
        mine = sum_add(mine, sum_of(x * x));
    }
    real square = real_of_sum(reduce_group(mine));
    real factor = R(1) / sqrt(square / real(count) + real(eps));
    for (uint64_t e = first; e < count; e += uint64_t(GROUP)) {
        real x = (load(in_address, from + row_offset(rows, 1, e), IN_DTYPE) - mean) * factor;
        if (WEIGHT != NONE) x *= load(weight_address, row_offset(rows, 2, e), WEIGHT);
        if (BIAS != NONE) x += load(bias_address, row_offset(rows, 3, e), BIAS);
        store(out_address, to + row_offset(rows, 0, e), OUT_DTYPE, x);
    }
}
