// The ARG_REDUCE kernel: the extreme of each piece of a row, and only where that is a new one its
// place.
#include "device/cpu/fold.h"
#include "device/cpu/row.h"
#include "device/cpu/rows.h"

enum { TASK_ELEMENTS = 1 << 14 };

typedef struct ArgReduction {
    const FoldTable *folds;
    Fold fold;
    bool whole; // integers
} ArgReduction;

// True when the extreme of a later piece takes the place of `best`; the first NaN stays.
static bool is_better(const ArgReduction *r, Wide extreme, Wide best) {
    if (r->whole) return r->fold == FOLD_MAX ? extreme.i > best.i : extreme.i < best.i;
    if (best.f != best.f) return false;
    if (extreme.f != extreme.f) return true;
    return r->fold == FOLD_MAX ? extreme.f > best.f : extreme.f < best.f;
}

static int64_t find_extreme(const ArgReduction *r, const Row *in, const char *from) {
    double buffer[ROW_PIECE];
    Wide best = {0};
    int64_t index = 0;
    for (int64_t first = 0; first < in->count; first += ROW_PIECE) {
        int64_t left = in->count - first, count = left < ROW_PIECE ? left : ROW_PIECE;
        const void *numbers = row_read(in, from, first, count, buffer);
        Wide extreme = r->folds->identity[r->fold];
        r->folds->row[r->fold](&extreme, numbers, count, (Wide){0});
        if (first > 0 && !is_better(r, extreme, best)) continue;
        best = extreme;
        index = first + r->folds->find(numbers, count, extreme);
    }
    return index;
}

static void make_row(const void *context, const Row *in, const char *from, const Row *out,
                     char *to) {
    (void)out;
    *(int64_t *)(void *)to = find_extreme(context, in, from);
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
    RowsJob job = {.reduces = true, .make = make_row, .context = &r};
    TRY(row_prepare(in, in->rank > 0, compute, call->op_name, &job.in));
    rows_prepare(&job.rows, 2, (const TensorView *const[]){out, in}, out->rank);
    rows_make(&job, TASK_ELEMENTS);
    return STATUS_OK;
}
