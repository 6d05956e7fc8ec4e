// Copies whose output runs along one dim and whose input runs along another, in tiles that fit the
// nearest cache.
#ifndef DEVICE_CPU_TRANSPOSE_H
#define DEVICE_CPU_TRANSPOSE_H

#include "device/cpu/iterate.h"

// Runs the copy of view 1 to view 0 when it is such a transposition; false when it is not.
bool transpose_run(const Iteration *iteration, size_t size);

enum { TRANSPOSE_SIDE_MAX = 64 }; // of a tile

// In simd/: [rows, columns] elements of `size` bytes; the output runs along columns, the input
// along rows; the strides are those of the other dim, in bytes.
typedef struct TransposeTile {
    char *to;
    const char *from;
    int64_t to_stride, from_stride;
    int64_t rows, columns;
} TransposeTile;
CPU_DECLARE(void, transpose_tile, (size_t size, const TransposeTile *tile));

#endif
