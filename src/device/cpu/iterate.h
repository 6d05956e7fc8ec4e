// Walks several strided views of the same dims together: dimensions that all views can walk as one
// are merged, then an inner loop is called once per row. Knows no dtype but for its size.
#ifndef DEVICE_CPU_ITERATE_H
#define DEVICE_CPU_ITERATE_H

#include "device/cpu/cpu.h"
#include "device/walk.h"

// The walk's strides are in bytes, its dims sorted; every dim is at least 1, and so is the rank.
typedef struct Iteration {
    Walk walk;
    char *pointers[WALK_VIEWS_MAX]; // the first element of each view
    int64_t rows;                   // product of all dims but the last; 0 when the views are empty
    int64_t count;                  // the last dim: elements of a row
    int64_t piece;                  // elements that are one thread's work at a time
} Iteration;

// pointers[v] is the first element of this piece of a row in view v; the next ones are strides[v]
// bytes apart. The same arrays serve one call after another: do not keep them.
typedef void (*IterateRow)(void *context, char *const *pointers, const int64_t *strides,
                           int64_t count);

// A pointer of a view that many bytes further; that of a missing operand stays NULL.
static inline char *iterate_move(char *pointer, int64_t bytes) {
    return pointer ? pointer + bytes : NULL;
}
// Views (not quantised) have the same dims; put the output first. A NULL view is a missing operand:
// its pointer is NULL and its strides 0.
void iterate_prepare(Iteration *iteration, int n_views, const TensorView *const *views);
// For rows whose elements cost `factor` times the usual: smaller pieces.
void iterate_divide(Iteration *iteration, int64_t factor);
// Calls `row` for every row, long rows in pieces, on the worker threads when that pays. The pieces
// do not depend on the number of threads. `row` must be safe to run on several rows at once.
void iterate_run(const Iteration *iteration, IterateRow row, void *context);
// The same in this thread only, rows in order and whole.
void iterate_run_serial(const Iteration *iteration, IterateRow row, void *context);

#endif
