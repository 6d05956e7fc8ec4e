// What the matrix products share: operands, their batches, and push constants.
#ifndef MATRICES_GLSL
#define MATRICES_GLSL

#include "types.glsl"

const uint A_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4 & 15u, B_DTYPE = DTYPES >> 8;

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
