// Kernels that make something of one row after another.
#ifndef DEVICE_CPU_ROWS_H
#define DEVICE_CPU_ROWS_H

#include "device/cpu/fold.h"
#include "device/cpu/row.h"

typedef struct RowsJob {
    Iteration rows; // of the output (view 0) and the input (view 1)
    Row in, out;
    bool reduces; // the output is one element per row, which `make` stores itself
    // From the row at `from` to the one at `to`, which are laid out as the given rows say: not
    // always as `in` and `out`. They may be the same memory.
    void (*make)(const void *context, const Row *in, const char *from, const Row *out, char *to);
    const void *context;
} RowsJob;

// Makes all rows, in tasks of about `task_elements`. Rows that are nearer to each other than their
// own elements are brought together in scratch memory, so that cache lines are used whole.
void rows_make(const RowsJob *job, int64_t task_elements);
// The same of a call whose rows are the last dim of its input and of its output.
Status rows_make_last(RowsJob *job, const KernelCall *call, CpuCompute compute,
                      int64_t task_elements) MUST_USE;
// A fold of a whole row, whose numbers are float.
double row_fold(const FoldTable *folds, Fold fold, const Row *in, const char *from,
                double parameter);

#endif
