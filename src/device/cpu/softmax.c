// The SOFTMAX kernel: each row is read once into the first caches when it fits there, or walked in
// place when it lies contiguous; only long strided rows are read three times.
#include <math.h>

#include "device/cpu/fold.h"
#include "device/cpu/row.h"

enum {
    SHORT_NUMBERS = 4096,    // a row that a buffer on the stack holds
    TASK_ELEMENTS = 1 << 13, // work of one task: exponentials are not cheap
};

typedef struct Softmax {
    const FoldTable *folds;
    Row in, out;
    Iteration rows; // view 0 the output, view 1 the input
    bool log;
} Softmax;

static double fold_numbers(const Softmax *s, Fold fold, const char *base, double parameter) {
    double buffer[ROW_PIECE];
    Wide state = s->folds->identity[fold];
    for (int64_t first = 0; first < s->in.count; first += ROW_PIECE) {
        int64_t left = s->in.count - first, count = left < ROW_PIECE ? left : ROW_PIECE;
        s->folds->row[fold](&state, row_read(&s->in, base, first, count, buffer), count,
                            (Wide){.f = parameter});
    }
    return state.f;
}

// All of a row at once; `work` may be the numbers themselves.
static void transform_whole(const Softmax *s, const void *numbers, void *work) {
    int64_t count = s->in.count;
    Wide max = s->folds->identity[FOLD_MAX];
    s->folds->row[FOLD_MAX](&max, numbers, count, (Wide){0});
    if (s->log) {
        Wide sum = {0};
        s->folds->row[FOLD_SUM_EXP](&sum, numbers, count, max);
        s->folds->scale_row(work, numbers, count, max.f, 1);
        s->folds->scale_row(work, work, count, log(sum.f), 1);
    } else {
        double sum = s->folds->exp_row(work, numbers, count, max.f);
        s->folds->scale_row(work, work, count, 0, 1 / sum);
    }
}

static void transform_in_pieces(const Softmax *s, const char *from, char *to) {
    double buffer[ROW_PIECE];
    double max = fold_numbers(s, FOLD_MAX, from, 0);
    double sum = fold_numbers(s, FOLD_SUM_EXP, from, max);
    for (int64_t first = 0; first < s->in.count; first += ROW_PIECE) {
        int64_t left = s->in.count - first, count = left < ROW_PIECE ? left : ROW_PIECE;
        const void *numbers = row_read(&s->in, from, first, count, buffer);
        void *work = row_target(&s->out, to, first, buffer);
        if (s->log)
            s->folds->scale_row(work, numbers, count, max, 1);
        else
            s->folds->exp_row(work, numbers, count, max);
        s->folds->scale_row(work, work, count, s->log ? log(sum) : 0, s->log ? 1 : 1 / sum);
        row_write(&s->out, to, first, count, work);
    }
}

static void transform_rows(void *context, int64_t begin, int64_t end) {
    const Softmax *s = context;
    double buffer[SHORT_NUMBERS];
    bool whole = s->in.count <= SHORT_NUMBERS || (s->in.direct && s->out.direct);
    for (int64_t index = begin; index < end; index++) {
        const char *from = s->rows.pointers[1] + rows_offset(&s->rows, 1, index);
        char *to = s->rows.pointers[0] + rows_offset(&s->rows, 0, index);
        if (!whole) {
            transform_in_pieces(s, from, to);
            continue;
        }
        void *work = row_target(&s->out, to, 0, buffer);
        transform_whole(s, row_read(&s->in, from, 0, s->in.count, buffer), work);
        row_write(&s->out, to, 0, s->in.count, work);
    }
}

Status cpu_kernel_SOFTMAX(const KernelCall *call) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    if (!dtype_is_float(in->dtype))
        return fail(STATUS_DTYPE, "%s works on float types, not on %s", call->op_name,
                    dtype_name(in->dtype));
    CpuCompute compute = compute_of(in->dtype);
    Softmax s = {.folds = cpu_fold(compute), .log = call->options.flag};
    if (view_count(out) == 0) return STATUS_OK;
    TRY(row_prepare(in, in->rank > 0, compute, call->op_name, &s.in));
    TRY(row_prepare(out, out->rank > 0, compute, call->op_name, &s.out));
    rows_prepare(&s.rows, 2, (const TensorView *const[]){out, in}, in->rank > 0 ? in->rank - 1 : 0);
    cpu_parallel(s.rows.rows * s.rows.count, TASK_ELEMENTS / s.in.count + 1, transform_rows, &s);
    return STATUS_OK;
}
