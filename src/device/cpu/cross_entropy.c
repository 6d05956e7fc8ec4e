// The kernels CROSS_ENTROPY and CROSS_ENTROPY_LOGITS: each row of logits is read into the first
// caches once. Everything is contiguous; logits, losses and gradients are of one type.
#include <math.h>

#include "device/cpu/fold.h"
#include "device/cpu/iterate.h"

enum { TASK_ELEMENTS = 1 << 12 };

typedef struct CrossEntropy {
    CpuCompute compute;
    const FoldTable *folds;
    const char *logits;
    const int64_t *classes;
    int64_t count;     // of classes
    char *out;         // [rows], or the gradient [rows, count]
    const char *share; // of the gradient: what every row's loss counts
} CrossEntropy;

static double number_at(const CrossEntropy *job, const char *numbers, int64_t index) {
    if (job->compute == COMPUTE_F32) return (double)((const float *)(const void *)numbers)[index];
    return ((const double *)(const void *)numbers)[index];
}

static void set_number(const CrossEntropy *job, char *numbers, int64_t index, double value) {
    if (job->compute == COMPUTE_F32)
        ((float *)(void *)numbers)[index] = (float)value;
    else
        ((double *)(void *)numbers)[index] = value;
}

static double largest(const CrossEntropy *job, const char *row) {
    Wide max = job->folds->identity[FOLD_MAX];
    job->folds->row[FOLD_MAX](&max, row, job->count, (Wide){0});
    return max.f;
}

static void make_losses(void *context, int64_t begin, int64_t end) {
    const CrossEntropy *job = context;
    for (int64_t r = begin; r < end; r++) {
        const char *row = job->logits + (size_t)(r * job->count) * compute_bytes(job->compute);
        double max = largest(job, row);
        Wide sum = {0};
        job->folds->row[FOLD_SUM_EXP](&sum, row, job->count, (Wide){.f = max});
        set_number(job, job->out, r, log(sum.f) - (number_at(job, row, job->classes[r]) - max));
    }
}

// (softmax - 1 at the class) * share
static void make_gradients(void *context, int64_t begin, int64_t end) {
    const CrossEntropy *job = context;
    double share = number_at(job, job->share, 0);
    for (int64_t r = begin; r < end; r++) {
        size_t at = (size_t)(r * job->count) * compute_bytes(job->compute);
        char *out = job->out + at;
        double sum =
            job->folds->exp_row(out, job->logits + at, job->count, largest(job, job->logits + at));
        job->folds->scale_row(out, out, job->count, 0, share / sum);
        int64_t class = job->classes[r];
        set_number(job, out, class, number_at(job, out, class) - share);
    }
}

static Status run(const KernelCall *call, bool gradient) {
    const TensorView *logits = call->inputs[0].view, *classes = call->inputs[1].view;
    ASSERT(view_is_contiguous(logits) && view_is_contiguous(classes));
    if ((logits->dtype != DTYPE_FLOAT32 && logits->dtype != DTYPE_FLOAT64) ||
        classes->dtype != DTYPE_INT64)
        return fail(STATUS_DTYPE, "%s has no kernel on the cpu for %s and classes of %s",
                    call->op_name, dtype_name(logits->dtype), dtype_name(classes->dtype));
    CpuCompute compute = compute_of(logits->dtype);
    CrossEntropy job = {.compute = compute,
                        .folds = cpu_fold(compute),
                        .logits = cpu_pointer(logits),
                        .classes = cpu_pointer(classes),
                        .count = logits->dims[logits->rank - 1],
                        .out = cpu_pointer(call->outputs[0])};
    if (gradient) job.share = cpu_pointer(call->inputs[2].view);
    cpu_parallel(view_count(classes), TASK_ELEMENTS / (job.count + 1) + 1,
                 gradient ? make_gradients : make_losses, &job);
    return STATUS_OK;
}

Status cpu_kernel_CROSS_ENTROPY(const KernelCall *call) {
    return run(call, false);
}

Status cpu_kernel_CROSS_ENTROPY_LOGITS(const KernelCall *call) {
    return run(call, true);
}
