// The RMS_NORM and LAYER_NORM kernels: statistics of each row in doubles, then one pass that
// shifts, scales and applies weight and bias.
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "device/cpu/fold.h"
#include "device/cpu/row.h"
#include "device/cpu/rows.h"

enum { TASK_ELEMENTS = 1 << 14 };

typedef struct Norm {
    const FoldTable *folds;
    const void *weight_bias[2]; // contiguous, in the compute type; NULL: none
    void *converted[2];         // ours, where the stored ones were not
    double eps;
    bool centred; // layer norm
} Norm;

static void make_row(const void *context, const Row *in, const char *from, const Row *out,
                     char *to) {
    const Norm *norm = context;
    double buffer[ROW_PIECE], n = (double)in->count;
    double mean = norm->centred ? row_fold(norm->folds, FOLD_SUM, in, from, 0) / n : 0;
    double square = norm->centred ? row_fold(norm->folds, FOLD_SUM_DEVIATION, in, from, mean)
                                  : row_fold(norm->folds, FOLD_SUM_SQUARE, in, from, 0);
    const double shift_factor[2] = {mean, 1 / sqrt(square / n + norm->eps)};
    for (int64_t first = 0; first < in->count; first += ROW_PIECE) {
        int64_t left = in->count - first, count = left < ROW_PIECE ? left : ROW_PIECE;
        const void *numbers = row_read(in, from, first, count, buffer);
        void *work = row_target(out, to, first, buffer);
        const void *piece[2];
        for (int k = 0; k < 2; k++) {
            const char *all = norm->weight_bias[k];
            piece[k] = all ? all + first * in->number_size : NULL;
        }
        norm->folds->affine_row(work, numbers, count, shift_factor, piece);
        row_write(out, to, first, count, work);
    }
}

// Weight (0) or bias (1): in place, or converted once for all rows.
static Status prepare_operand(const KernelCall *call, int k, CpuCompute compute, Norm *norm) {
    const TensorView *view = call->n_inputs > k + 1 ? call->inputs[k + 1].view : NULL;
    if (!view) return STATUS_OK;
    Row row;
    TRY(row_prepare(view, view->rank, compute, call->op_name, &row));
    if (!row.direct) norm->converted[k] = memory_allocate((size_t)(row.count * row.number_size));
    norm->weight_bias[k] = row_read(&row, cpu_pointer(view), 0, row.count, norm->converted[k]);
    return STATUS_OK;
}

static Status run_norm(const KernelCall *call, bool centred) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    if (!dtype_is_float(in->dtype))
        return fail(STATUS_DTYPE, "%s works on float types, not on %s", call->op_name,
                    dtype_name(in->dtype));
    CpuCompute compute = compute_of(in->dtype);
    int trailing = call->options.count;
    ASSERT(trailing > 0 && trailing <= in->rank);
    Norm norm = {.folds = cpu_fold(compute), .eps = call->options.scalars[0], .centred = centred};
    if (view_count(out) == 0) return STATUS_OK;
    RowsJob job;
    job.make = make_row;
    job.context = &norm;
    job.reduces = false;
    TRY(row_prepare(in, trailing, compute, call->op_name, &job.in));
    TRY(row_prepare(out, trailing, compute, call->op_name, &job.out));
    rows_prepare(&job.rows, 2, (const TensorView *const[]){out, in}, in->rank - trailing);
    Status status = prepare_operand(call, 0, compute, &norm);
    if (status == STATUS_OK) status = prepare_operand(call, 1, compute, &norm);
    if (status == STATUS_OK) rows_make(&job, TASK_ELEMENTS);
    free(norm.converted[0]);
    free(norm.converted[1]);
    return status;
}

Status cpu_kernel_RMS_NORM(const KernelCall *call) {
    return run_norm(call, false);
}

Status cpu_kernel_LAYER_NORM(const KernelCall *call) {
    return run_norm(call, true);
}
