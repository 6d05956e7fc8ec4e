// Views cut into rows (include/rows.glsl): leading dims that are kept, and a row.
#ifndef HOST_ROWS_H
#define HOST_ROWS_H

#include "language.h"

// Views 0 and 1 are the output and the input; 2 and 3 belong to the row alone.
SHARED_NUMBER(ROW_VIEWS, 4)

STORED(RowStrides)
    int64_t kept_strides[ROW_VIEWS][RANK_MAX]; // in elements
    int64_t strides[ROW_VIEWS][RANK_MAX];
    uint32_t kept_dims[RANK_MAX], dims[RANK_MAX];
END(RowStrides, 576)

// Ranks of the kept dims and of the row's, and from bit 8 on for each view whether its elements of
// a row are neighbours, at multiples of four.
#define ROWS_CONSTANTS CONSTANT(0, uint32_t, RANKS, 0)
#define ROWS_PUSH uint64_t in_address, out_address, results, count;
// What softmax.comp and norm.comp take at once: a number, four of a row, or four of memory.
SHARED_NUMBER(ITEMS_SINGLE, 0)
SHARED_NUMBER(ITEMS_VECTOR, 1)
SHARED_NUMBER(ITEMS_SKEWED, 2)

#endif
