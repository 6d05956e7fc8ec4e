// The LAYER_NORM_GRADIENT kernel: a row's statistics are made again as the forward pass makes them,
// and its gradient, while it is in the first caches. The gradients of weight and bias are summed in
// the compute type over parts of the rows, which are put together in doubles, in their order.
#include "device/cpu/norm_gradient.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/fold.h"
#include "device/cpu/iterate.h"

enum { PART_ROWS = 64, TASK_ELEMENTS = 1 << 14 };

typedef struct NormGradient {
    const FoldTable *folds;
    const NormSlopes *slopes;
    const char *up, *x, *weight;
    char *out, *sums; // sums: [parts, 2, count]; NULL: none are wanted
    int64_t rows, count, row_bytes;
    double eps;
} NormGradient;

static void make_row(const NormGradient *job, int64_t row, char *sums) {
    int64_t at = row * job->row_bytes;
    double n = (double)job->count;
    Wide total = {0}, square = {0};
    job->folds->row[FOLD_SUM](&total, job->x + at, job->count, (Wide){0});
    double mean = total.f / n;
    job->folds->row[FOLD_SUM_DEVIATION](&square, job->x + at, job->count, (Wide){.f = mean});
    job->slopes->row(&(NormRow){.up = job->up + at,
                                .x = job->x + at,
                                .weight = job->weight,
                                .out = job->out + at,
                                .sums = {sums, sums ? sums + job->row_bytes : NULL},
                                .count = job->count,
                                .mean = mean,
                                .factor = 1 / sqrt(square.f / n + job->eps)});
}

static void make_parts(void *context, int64_t begin, int64_t end) {
    const NormGradient *job = context;
    for (int64_t part = begin; part < end && !cpu_interrupted(); part++) {
        char *sums = job->sums ? job->sums + part * 2 * job->row_bytes : NULL;
        int64_t last = (part + 1) * PART_ROWS;
        if (sums) memset(sums, 0, (size_t)(2 * job->row_bytes));
        for (int64_t row = part * PART_ROWS; row < last && row < job->rows; row++)
            make_row(job, row, sums);
    }
}

static void store_sums(const KernelCall *call, const NormGradient *job, int64_t parts) {
    DType dtype = call->outputs[0]->dtype;
    ConvertStore store = cpu_convert()->store[COMPUTE_F64][dtype];
    double *totals = memory_allocate_zeroed((size_t)(2 * job->count), sizeof *totals);
    for (int64_t part = 0; part < parts; part++)
        job->slopes->add(totals, job->sums + part * 2 * job->row_bytes, 2 * job->count);
    for (int k = 0; k < 2; k++)
        store(cpu_pointer(call->outputs[k + 1]), 1, totals + k * job->count, job->count);
    free(totals);
}

Status cpu_kernel_LAYER_NORM_GRADIENT(const KernelCall *call) {
    const TensorView *up = call->inputs[0].view, *x = call->inputs[1].view;
    ASSERT(view_is_contiguous(up) && view_is_contiguous(x) && x->rank >= call->options.count);
    if (x->dtype != DTYPE_FLOAT32 && x->dtype != DTYPE_FLOAT64)
        return fail(STATUS_DTYPE, "%s has no gradient kernel on the cpu for %s", call->op_name,
                    dtype_name(x->dtype));
    if (view_count(x) == 0) {
        for (int i = 1; i < call->n_outputs; i++)
            memset(cpu_pointer(call->outputs[i]), 0,
                   (size_t)view_count(call->outputs[i]) * dtype_size(x->dtype));
        return STATUS_OK;
    }
    bool single = x->dtype == DTYPE_FLOAT32;
    NormGradient job = {.folds = cpu_fold(compute_of(x->dtype)),
                        .slopes =
                            single ? CPU_CHOOSE(&norm_slopes_f32) : CPU_CHOOSE(&norm_slopes_f64),
                        .up = cpu_pointer(up),
                        .x = cpu_pointer(x),
                        .weight = call->n_inputs > 2 ? cpu_pointer(call->inputs[2].view) : NULL,
                        .out = cpu_pointer(call->outputs[0]),
                        .count = 1,
                        .eps = call->options.scalars[0]};
    for (int i = x->rank - call->options.count; i < x->rank; i++) job.count *= x->dims[i];
    job.rows = view_count(x) / job.count;
    job.row_bytes = job.count * (int64_t)dtype_size(x->dtype);
    int64_t parts = (job.rows + PART_ROWS - 1) / PART_ROWS;
    if (call->n_outputs > 1) job.sums = memory_allocate((size_t)(parts * 2 * job.row_bytes));
    cpu_parallel(parts, TASK_ELEMENTS / (PART_ROWS * job.count) + 1, make_parts, &job);
    if (job.sums) store_sums(call, &job, parts);
    free(job.sums);
    return STATUS_OK;
}
