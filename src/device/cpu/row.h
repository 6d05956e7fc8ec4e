// A row: the elements that a kernel treats as one sequence (the trailing dims of a view), read and
// written as contiguous numbers of a compute type, a piece at a time.
#ifndef DEVICE_CPU_ROW_H
#define DEVICE_CPU_ROW_H

#include "device/cpu/convert.h"
#include "device/cpu/iterate.h"

enum { ROW_PIECE = 1024 }; // numbers; buffers on the stack hold one piece

typedef struct Row {
    int rank;                                  // at least 1
    int64_t dims[RANK_MAX], strides[RANK_MAX]; // strides in elements
    int64_t count;                             // of all elements
    int64_t size, number_size;                 // bytes of a stored element, and of a number
    bool native;                               // stored in the compute type
    bool direct;                               // and contiguous: pieces need no copy
    ConvertLoad load;
    ConvertStore store;
} Row;

// The last `trailing` dims of a view, in row-major order. STATUS_DTYPE for a quantised one.
Status row_prepare(const TensorView *view, int trailing, CpuCompute compute, const char *op_name,
                   Row *out) MUST_USE;
// The same elements in whatever order memory is walked best.
Status row_prepare_unordered(const TensorView *view, int trailing, CpuCompute compute,
                             const char *op_name, Row *out) MUST_USE;
// Numbers [first, first + count) of the row that begins at `base`: in place when the row is direct,
// else converted into `buffer`.
const void *row_read(const Row *row, const char *base, int64_t first, int64_t count, void *buffer);
// Where a piece is to be computed: in place or `buffer`. row_write then stores it.
void *row_target(const Row *row, char *base, int64_t first, void *buffer);
void row_write(const Row *row, char *base, int64_t first, int64_t count, const void *buffer);

// The leading dims of views, of which all but the trailing ones agree: one index walks them all.
// Merged where that keeps every view's steps; the order is the first view's.
void rows_prepare(Iteration *iteration, int n_views, const TensorView *const *views, int leading);
// Bytes from the first row of view `v` to row `index`.
int64_t rows_offset(const Iteration *iteration, int v, int64_t index);

#endif
