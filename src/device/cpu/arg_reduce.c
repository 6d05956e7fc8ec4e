// The ARG_REDUCE kernel: the extreme of each piece of a row, and only where that is a new one its
// place.
#include "device/cpu/fold.h"
#include "device/cpu/row.h"

enum { TASK_ELEMENTS = 1 << 14 };

typedef struct ArgReduction {
    const FoldTable *folds;
    Fold fold;
    bool whole;     // integers
    Row in;         // the last dim of the input
    Iteration rows; // the other dims: view 0 the output, view 1 the input
} ArgReduction;

// True when the extreme of a later piece takes the place of `best`; the first NaN stays.
static bool is_better(const ArgReduction *r, Wide extreme, Wide best) {
    if (r->whole) return r->fold == FOLD_MAX ? extreme.i > best.i : extreme.i < best.i;
    if (best.f != best.f) return false;
    if (extreme.f != extreme.f) return true;
    return r->fold == FOLD_MAX ? extreme.f > best.f : extreme.f < best.f;
}

static int64_t arg_of_row(const ArgReduction *r, const char *base) {
    double buffer[ROW_PIECE];
    Wide best = {0};
    int64_t index = 0;
    for (int64_t first = 0; first < r->in.count; first += ROW_PIECE) {
        int64_t left = r->in.count - first, count = left < ROW_PIECE ? left : ROW_PIECE;
        const void *numbers = row_read(&r->in, base, first, count, buffer);
        Wide extreme = r->folds->identity[r->fold];
        r->folds->row[r->fold](&extreme, numbers, count, (Wide){0});
        if (first > 0 && !is_better(r, extreme, best)) continue;
        best = extreme;
        index = first + r->folds->find(numbers, count, extreme);
    }
    return index;
}

static void arg_of_rows(void *context, int64_t begin, int64_t end) {
    const ArgReduction *r = context;
    for (int64_t row = begin; row < end; row++) {
        int64_t *to = (int64_t *)(void *)(r->rows.pointers[0] + rows_offset(&r->rows, 0, row));
        *to = arg_of_row(r, r->rows.pointers[1] + rows_offset(&r->rows, 1, row));
    }
}

Status cpu_kernel_ARG_REDUCE(const KernelCall *call) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    CpuCompute compute = compute_of(in->dtype);
    ArgReduction r = {.folds = cpu_fold(compute),
                      .fold = call->options.op == 0 ? FOLD_MAX : FOLD_MIN,
                      .whole = compute == COMPUTE_I64};
    ASSERT(out->dtype == DTYPE_INT64);
    if (view_count(out) == 0) return STATUS_OK;
    if (view_count(in) == 0)
        return fail(STATUS_SHAPE, "%s of no elements: there is no index to give", call->op_name);
    TRY(row_prepare(in, in->rank > 0, compute, call->op_name, &r.in));
    rows_prepare(&r.rows, 2, (const TensorView *const[]){out, in}, out->rank);
    cpu_parallel(r.rows.rows * r.rows.count, TASK_ELEMENTS / r.in.count + 1, arg_of_rows, &r);
    return STATUS_OK;
}
