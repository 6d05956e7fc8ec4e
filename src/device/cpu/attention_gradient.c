// The ATTENTION_GRADIENT kernel: the shares of a block of queries are computed again and used at
// once, so that no more than two rows of scores per query of a block ever exist.
#include <string.h>

#include "device/cpu/attention_slopes.h"
#include "device/cpu/blas.h"
#include "device/cpu/fold.h"
#include "device/cpu/iterate.h"
#include "device/cpu/matrix.h"
#include "device/cpu/scratch.h"

enum { BLOCK_QUERIES = 64 };

// q [batch, sq, hq, d], k [batch, sk, groups, d], v [batch, sk, groups, dv], up as the result
// [batch, sq, hq, dv]; gradients lie as what they belong to.
typedef struct AttentionGradient {
    CpuCompute compute;
    const FoldTable *folds;
    const char *q, *k, *v, *up;
    char *q_out, *k_out, *v_out;
    int64_t sq, sk, hq, groups, d, dv;
    bool causal;
    double scale;
} AttentionGradient;

// The rows of one head, which lie `heads * columns` apart.
static Matrix head_rows(const AttentionGradient *job, const char *base, int64_t row, int64_t rows,
                        int64_t head, int64_t heads, int64_t columns) {
    size_t at = (size_t)((row * heads + head) * columns) * compute_bytes(job->compute);
    return (Matrix){compute_dtype(job->compute), base + at, rows, columns, heads * columns, 1};
}

static void multiply(const AttentionGradient *job, Matrix a, Matrix b, void *out,
                     int64_t out_stride, bool accumulate) {
    if (a.columns == 0 || a.rows == 0 || b.columns == 0) return;
    blas_product(&(BlasProduct){.compute = job->compute,
                                .a = a,
                                .b = b,
                                .c = out,
                                .c_stride = out_stride,
                                .accumulate = accumulate});
}

// How many keys the query in this row sees.
static int64_t keys_seen(const AttentionGradient *job, int64_t row) {
    if (!job->causal) return job->sk;
    int64_t seen = row + 1 + job->sk - job->sq;
    return seen < 0 ? 0 : seen < job->sk ? seen : job->sk;
}

// Scores become shares; what a query does not see has none.
static void make_shares(const AttentionGradient *job, char *row, int64_t seen, int64_t count) {
    size_t real = compute_bytes(job->compute);
    memset(row + (size_t)seen * real, 0, (size_t)(count - seen) * real);
    if (seen == 0) return;
    Wide max = job->folds->identity[FOLD_MAX];
    job->folds->scale_row(row, row, seen, 0, job->scale);
    job->folds->row[FOLD_MAX](&max, row, seen, (Wide){0});
    double sum = job->folds->exp_row(row, row, seen, max.f);
    job->folds->scale_row(row, row, seen, 0, 1 / sum);
}

// Queries [first, first + rows) of a head: `shares` and `slopes` have room for rows * sk numbers.
static void run_block(const AttentionGradient *job, int64_t batch, int64_t head, int64_t first,
                      int64_t rows, char *shares, char *slopes) {
    int64_t group = head / (job->hq / job->groups), row = batch * job->sq + first;
    int64_t count = keys_seen(job, first + rows - 1), key = batch * job->sk;
    DType dtype = compute_dtype(job->compute);
    size_t real = compute_bytes(job->compute);
    Matrix q = head_rows(job, job->q, row, rows, head, job->hq, job->d);
    Matrix k = head_rows(job, job->k, key, count, group, job->groups, job->d);
    Matrix v = head_rows(job, job->v, key, count, group, job->groups, job->dv);
    Matrix up = head_rows(job, job->up, row, rows, head, job->hq, job->dv);
    char *q_out = job->q_out + (size_t)((row * job->hq + head) * job->d) * real;
    char *k_out = job->k_out + (size_t)((key * job->groups + group) * job->d) * real;
    char *v_out = job->v_out + (size_t)((key * job->groups + group) * job->dv) * real;
    multiply(job, q, matrix_transpose(k), shares, count, false);
    for (int64_t i = 0; i < rows; i++)
        make_shares(job, shares + (size_t)(i * count) * real, keys_seen(job, first + i), count);
    Matrix p = {dtype, shares, rows, count, count, 1}, s = {dtype, slopes, rows, count, count, 1};
    multiply(job, matrix_transpose(p), up, v_out, job->groups * job->dv, true);
    multiply(job, up, matrix_transpose(v), slopes, count, false);
    for (int64_t i = 0; i < rows; i++) CPU_CHOOSE(attention_slopes)
    (job->compute, shares + (size_t)(i * count) * real, slopes + (size_t)(i * count) * real, count,
     job->scale);
    multiply(job, s, k, q_out, job->hq * job->d, true);
    multiply(job, matrix_transpose(s), q, k_out, job->groups * job->d, true);
}

// One group of heads of one member of the batch, whose keys and values are nobody else's.
static void run_groups(void *context, int64_t begin, int64_t end) {
    const AttentionGradient *job = context;
    int64_t block = job->sq < BLOCK_QUERIES ? job->sq : BLOCK_QUERIES;
    int64_t each = job->hq / job->groups;
    size_t bytes = (size_t)(block * job->sk) * compute_bytes(job->compute);
    char *scratch = scratch_take(2 * bytes + 1);
    for (int64_t task = begin; task < end && !cpu_interrupted(); task++)
        for (int64_t i = 0; i < each; i++)
            for (int64_t first = 0; first < job->sq; first += block) {
                int64_t left = job->sq - first, rows = left < block ? left : block;
                run_block(job, task / job->groups, task % job->groups * each + i, first, rows,
                          scratch, scratch + bytes);
            }
    scratch_give(scratch);
}

Status cpu_kernel_ATTENTION_GRADIENT(const KernelCall *call) {
    const TensorView *q = call->inputs[0].view, *k = call->inputs[1].view;
    const TensorView *v = call->inputs[2].view;
    int rank = q->rank;
    ASSERT(rank >= 3 && view_is_contiguous(q) && view_is_contiguous(k) && view_is_contiguous(v));
    TRY(blas_load());
    if (q->dtype != DTYPE_FLOAT32 && q->dtype != DTYPE_FLOAT64)
        return fail(STATUS_DTYPE, "%s has no gradient kernel on the cpu for %s", call->op_name,
                    dtype_name(q->dtype));
    AttentionGradient job = {.compute = compute_of(q->dtype),
                             .q = cpu_pointer(q),
                             .k = cpu_pointer(k),
                             .v = cpu_pointer(v),
                             .up = cpu_pointer(call->inputs[3].view),
                             .q_out = cpu_pointer(call->outputs[0]),
                             .k_out = cpu_pointer(call->outputs[1]),
                             .v_out = cpu_pointer(call->outputs[2]),
                             .sq = q->dims[rank - 3],
                             .sk = k->dims[rank - 3],
                             .hq = q->dims[rank - 2],
                             .groups = k->dims[rank - 2],
                             .d = q->dims[rank - 1],
                             .dv = v->dims[rank - 1],
                             .causal = call->options.flag,
                             .scale = call->options.scalars[0]};
    job.folds = cpu_fold(job.compute);
    for (int i = 0; i < 3; i++)
        memset(cpu_pointer(call->outputs[i]), 0,
               (size_t)view_count(call->outputs[i]) * dtype_size(q->dtype));
    int64_t batch = 1;
    for (int i = 0; i < rank - 3; i++) batch *= q->dims[i];
    if (view_count(q) == 0 || view_count(k) == 0) return STATUS_OK;
    cpu_parallel(batch * job.groups, 1, run_groups, &job);
    return STATUS_OK;
}
