// The SOFTMAX kernel: each row is read once into the first caches when it fits there, or walked in
// place when it lies contiguous; only long strided rows are read three times.
#include <math.h>

#include "device/cpu/fold.h"
#include "device/cpu/row.h"
#include "device/cpu/rows.h"

enum {
    SHORT_NUMBERS = 4096,    // a row that a buffer on the stack holds
    TASK_ELEMENTS = 1 << 13, // work of one task: exponentials are not cheap
    LONG_NUMBERS = 1 << 24,  // made until one looks for an interrupt
};

typedef struct Softmax {
    const FoldTable *folds;
    int64_t number_size; // bytes
    bool log;
} Softmax;

// exp(numbers - max) to `work`, and their sum.
static double make_exponentials(const Softmax *s, const void *numbers, void *work, int64_t count,
                                double max) {
    double sum = 0;
    for (int64_t at = 0; at < count && (at == 0 || !cpu_interrupted()); at += LONG_NUMBERS) {
        int64_t left = count - at;
        sum += s->folds->exp_row((char *)work + at * s->number_size,
                                 (const char *)numbers + at * s->number_size,
                                 left < LONG_NUMBERS ? left : LONG_NUMBERS, max);
    }
    return sum;
}

// All of a row at once; `work` may be the numbers themselves.
static void make_whole(const Softmax *s, const void *numbers, void *work, int64_t count) {
    Wide max = s->folds->identity[FOLD_MAX];
    s->folds->row[FOLD_MAX](&max, numbers, count, (Wide){0});
    if (s->log) {
        Wide sum = {0};
        s->folds->row[FOLD_SUM_EXP](&sum, numbers, count, max);
        if (count > LONG_NUMBERS && cpu_interrupted()) return;
        s->folds->scale_row(work, numbers, count, max.f, 1);
        s->folds->scale_row(work, work, count, log(sum.f), 1);
    } else {
        double sum = make_exponentials(s, numbers, work, count, max.f);
        if (count > LONG_NUMBERS && cpu_interrupted()) return;
        s->folds->scale_row(work, work, count, 0, 1 / sum);
    }
}

static void make_in_pieces(const Softmax *s, const Row *in, const char *from, const Row *out,
                           char *to) {
    double buffer[ROW_PIECE];
    double max = row_fold(s->folds, FOLD_MAX, in, from, 0);
    double sum = row_fold(s->folds, FOLD_SUM_EXP, in, from, max);
    for (int64_t first = 0; first < in->count; first += ROW_PIECE) {
        int64_t left = in->count - first, count = left < ROW_PIECE ? left : ROW_PIECE;
        const void *numbers = row_read(in, from, first, count, buffer);
        void *work = row_target(out, to, first, buffer);
        if (s->log)
            s->folds->scale_row(work, numbers, count, max, 1);
        else
            s->folds->exp_row(work, numbers, count, max);
        s->folds->scale_row(work, work, count, s->log ? log(sum) : 0, s->log ? 1 : 1 / sum);
        row_write(out, to, first, count, work);
    }
}

static void make_row(const void *context, const Row *in, const char *from, const Row *out,
                     char *to) {
    const Softmax *s = context;
    double buffer[SHORT_NUMBERS];
    if (in->count > SHORT_NUMBERS && !(in->direct && out->direct)) {
        make_in_pieces(s, in, from, out, to);
        return;
    }
    void *work = row_target(out, to, 0, buffer);
    make_whole(s, row_read(in, from, 0, in->count, buffer), work, in->count);
    row_write(out, to, 0, in->count, work);
}

Status cpu_kernel_SOFTMAX(const KernelCall *call) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    if (!dtype_is_float(in->dtype))
        return fail(STATUS_DTYPE, "%s works on float types, not on %s", call->op_name,
                    dtype_name(in->dtype));
    CpuCompute compute = compute_of(in->dtype);
    Softmax softmax = {cpu_fold(compute), (int64_t)compute_bytes(compute), call->options.flag};
    RowsJob job = {.make = make_row, .context = &softmax};
    if (view_count(out) == 0) return STATUS_OK;
    return rows_make_last(&job, call, compute, TASK_ELEMENTS);
}
