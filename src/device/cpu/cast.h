// Moving a row of numbers from one place to another: same dtype or cast. What COPY, GATHER, SCATTER
// and INDEX_PUT have in common. Strides are in bytes.
#ifndef DEVICE_CPU_CAST_H
#define DEVICE_CPU_CAST_H

#include "device/cpu/cpu.h"

enum { CAST_CHUNK = 512 }; // numbers that are converted at a time, in a buffer on the stack

typedef struct CastRow {
    DType from, to;
} CastRow;

typedef struct RowCopy {
    void *to;
    int64_t to_stride;
    const void *from;
    int64_t from_stride;
    int64_t count;
} RowCopy;

// Numbers between dtypes that are not quantised.
void cast_row(CastRow cast, const RowCopy *copy);
// `count` times the element of `size` bytes at `value`.
void fill_row(size_t size, char *to, int64_t to_stride, const void *value, int64_t count);
// A plain number as one element of a dtype; `out` has room for 8 bytes.
void cast_scalar(const Scalar *scalar, DType dtype, void *out);
// A quantised view into a view of the same dims and a plain dtype.
void copy_quantised(const TensorView *out, const TensorView *in);

#endif
