// What the shaders of MATMUL are given.
#ifndef HOST_PRODUCT_H
#define HOST_PRODUCT_H

#include "language.h"

STORED(Batches)
    int64_t a_strides[RANK_MAX], b_strides[RANK_MAX]; // in elements
    uint32_t dims[RANK_MAX];
END(Batches, 160)

// a: [m, k], b: [k, n], out: [m, n] contiguous, in each batch.
PUSHED(ProductPush)
    ARGUMENTS(Batches, batches)
    uint64_t a_address, b_address, out_address;
    int64_t a_row, a_column, b_row, b_column; // strides in elements
    uint32_t m, n, k;
    uint32_t across;  // tiles along n
    uint32_t visits;  // of MATVEC_BLOCKS: how often a team takes its next columns
    uint32_t a_fours; // not 0: a can be read four numbers at a time
    uint64_t other_b, adjacent_address, result_address; // of joined products: see joins.glsl
END(ProductPush, 104)

#define PRODUCT_CONSTANTS                                                                          \
    CONSTANT(0, uint32_t, DTYPES, 0) /* a, out, b */                                               \
    CONSTANT(1, uint32_t, BATCH_RANK, 0)
// With which operation a product is joined; MAP_COPY: none.
#define JOIN_CONSTANTS PRODUCT_CONSTANTS CONSTANT(2, uint32_t, JOIN, MAP_COPY)

#endif
