// What rope.comp is given.
#ifndef HOST_ROPE_H
#define HOST_ROPE_H

#include "language.h"

SHARED_NUMBER(FREQUENCIES_MAX, 256)

CONSTANTS(RopeConstants)
    CONSTANT(0, uint32_t, DTYPES, 0) // in, out, tables
    CONSTANT(1, bool, HALF_STYLE, false)
    CONSTANT(2, bool, TABLES, false)
    CONSTANT(3, uint32_t, RANK, 3)
    // The result is stored a second time: a copy of it that follows (device/vulkan/kernels/join.c).
    CONSTANT(4, bool, TWICE, false)
CONSTANTS_END(RopeConstants, 5)

STORED(RopeShape)
    int64_t in_strides[RANK_MAX], out_strides[RANK_MAX]; // the last four: batch, row, head, number
    uint32_t dims[RANK_MAX];
    int64_t offset;                       // added to the row
    uint32_t pairs, items, first, unused; // items from `first` on are made here
    int64_t cosine_strides[2], sine_strides[2];
    uint64_t turns[FREQUENCIES_MAX]; // per row, in 2^-64: of the pairs from `first` on
END(RopeShape, 2264)

PUSHED(RopePush)
    ARGUMENTS(RopeShape, shape)
    uint64_t in_address, out_address, cosines, sines;
    // With TWICE: where number i of the result goes as well, [rows, copy_heads, copy_width].
    uint64_t copy_address;
    int64_t copy_row_stride, copy_head_stride;
    uint32_t count, copy_heads, copy_width, unused;
END(RopePush, 72)

#endif
