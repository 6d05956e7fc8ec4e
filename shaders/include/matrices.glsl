// What the matrix products share: operands, their batches, and push constants.
#ifndef MATRICES_GLSL
#define MATRICES_GLSL

#include "types.glsl"

layout(constant_id = 0) const uint DTYPES = 0; // a, out, b
layout(constant_id = 1) const uint BATCH_RANK = 0;
const uint A_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4 & 15u, B_DTYPE = DTYPES >> 8;

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Batches {
    int64_t a_strides[8], b_strides[8]; // in elements
    uint dims[8];
};

// a: [m, k], b: [k, n], out: [m, n] contiguous, in each batch.
layout(push_constant, scalar) uniform Push {
    Batches batches;
    uint64_t a_address, b_address, out_address;
    int64_t a_row, a_column, b_row, b_column; // strides in elements
    uint m, n, k;
    uint across; // tiles along n
    uint visits; // of MATVEC_BLOCKS: how often a team takes its next columns
    bool a_fours; // a can be read four numbers at a time
    uint64_t other_b, adjacent_address, result_address; // see joins.glsl
};

void batch_offsets(uint batch, out int64_t a, out int64_t b, out int64_t to) {
    a = 0L;
    b = 0L;
    to = int64_t(batch) * int64_t(m) * int64_t(n);
    uint rest = batch;
    for (int d = int(BATCH_RANK) - 1; d >= 0; d--) {
        int64_t at = int64_t(rest % batches.dims[d]);
        rest /= batches.dims[d];
        a += at * batches.a_strides[d];
        b += at * batches.b_strides[d];
    }
}

#endif
