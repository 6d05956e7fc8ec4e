// SCAN: running sums or products of each row, by one workgroup a row: each thread makes EACH
// neighbours, then adds what came before them.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"
#include "sums.glsl"

const uint GROUP = 256, EACH = 8;
layout(local_size_x = 256) in;
layout(constant_id = 1) const uint DTYPES = 0; // in, out
layout(constant_id = 2) const bool PRODUCT = false;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4;

layout(push_constant, scalar) uniform Push {
    Rows rows;
    uint64_t in_address, out_address, results, count;
};

shared Sum totals[GROUP];

Sum combine(Sum a, Sum b) {
    return PRODUCT ? sum_multiply(a, b) : sum_add(a, b);
}

void main() {
    uint64_t row = group_number();
    if (row >= results) return;
    uint thread = gl_LocalInvocationID.x;
    int64_t from = kept_offset(rows, 1, row), to = kept_offset(rows, 0, row);
    Sum start = sum_of(PRODUCT ? R(1) : R(0)), carry = start;
    for (uint64_t chunk = 0UL; chunk < count; chunk += uint64_t(GROUP * EACH)) {
        uint64_t first = chunk + uint64_t(thread * EACH);
        Sum running[EACH];
        Sum total = start;
        for (uint i = 0; i < EACH; i++) {
            uint64_t e = first + uint64_t(i);
            if (e < count)
                total = combine(
                    total, sum_of(load(in_address, from + row_offset(rows, 1, e), IN_DTYPE)));
            running[i] = total;
        }
        barrier();
        totals[thread] = total;
        for (uint apart = 1; apart < GROUP; apart *= 2) {
            barrier();
            Sum before = thread >= apart ? totals[thread - apart] : start;
            barrier();
            if (thread >= apart) totals[thread] = combine(before, totals[thread]);
        }
        barrier();
        Sum before = thread > 0 ? combine(carry, totals[thread - 1]) : carry;
        carry = combine(carry, totals[GROUP - 1]);
        for (uint i = 0; i < EACH; i++) {
            uint64_t e = first + uint64_t(i);
            if (e < count)
                store(out_address, to + row_offset(rows, 0, e), OUT_DTYPE,
                      real_of_sum(combine(before, running[i])));
        }
    }
}
