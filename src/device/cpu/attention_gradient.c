// The ATTENTION_GRADIENT kernel: the shares of a block of queries are computed again and used at
// once, so that no more than two rows of scores per query of a block ever exist.
#include <string.h>

#include "device/cpu/attention_scores.h"
#include "device/cpu/iterate.h"
#include "device/cpu/matrix.h"
#include "device/cpu/scratch.h"

// A block's products take all keys that its last query sees: causal blocks are smaller, so that the
// first queries lose less.
enum { BLOCK_QUERIES = 64, BLOCK_CAUSAL = 32 };

// q [batch, sq, hq, d], k [batch, sk, groups, d], v [batch, sk, groups, dv], up as the result
// [batch, sq, hq, dv]; gradients lie as what they belong to.
typedef struct AttentionGradient {
    CpuCompute compute;
    const char *q, *k, *v, *up;
    char *q_out, *k_out, *v_out;
    int64_t sq, sk, hq, groups, d, dv;
    bool causal;
    double scale;
} AttentionGradient;

// Rows of `heads` heads of `columns` numbers each.
typedef struct HeadRows {
    int64_t heads, columns;
} HeadRows;

static size_t head_offset(const AttentionGradient *job, HeadRows in, int64_t row, int64_t head) {
    return (size_t)((row * in.heads + head) * in.columns) * compute_bytes(job->compute);
}

// One head of the rows, of which the first begins at `first`.
static Matrix head_matrix(const AttentionGradient *job, HeadRows in, const char *first,
                          int64_t rows) {
    return (Matrix){compute_dtype(job->compute), first, rows, in.columns, in.heads * in.columns, 1};
}

static void multiply(const AttentionGradient *job, SerialProduct product) {
    size_t real = compute_bytes(job->compute);
    product.compute = job->compute;
    if (product.a.rows == 0 || product.b.columns == 0) return;
    if (product.a.columns > 0) {
        matrix_product_serial(&product);
        return;
    }
    for (int64_t row = 0; !product.accumulate && row < product.a.rows; row++)
        memset((char *)product.c + (size_t)(row * product.c_stride) * real, 0,
               (size_t)product.b.columns * real);
}

// How many keys the query in this row sees; below 0 where even the next one sees none.
static int64_t keys_seen(const AttentionGradient *job, int64_t row) {
    return job->causal ? row + 1 + job->sk - job->sq : job->sk;
}

static int64_t padded(int64_t scores) {
    return (scores + SCORE_PADDING - 1) / SCORE_PADDING * SCORE_PADDING;
}

// Queries [first, first + rows) of a head.
typedef struct QueryBlock {
    int64_t batch, head, first, rows;
    bool adds; // to the gradients of keys and values; the first of a group sets them
} QueryBlock;

// `shares` and `slopes` have room for rows of padded(sk) numbers.
static void run_block(const AttentionGradient *job, const QueryBlock *block, char *shares,
                      char *slopes) {
    int64_t first = block->first, rows = block->rows, head = block->head;
    int64_t group = head / (job->hq / job->groups), row = block->batch * job->sq + first;
    int64_t last = keys_seen(job, first + rows - 1), count = last < 0 ? 0 : last;
    int64_t key = block->batch * job->sk;
    DType dtype = compute_dtype(job->compute);
    HeadRows q_rows = {job->hq, job->d}, up_rows = {job->hq, job->dv};
    HeadRows k_rows = {job->groups, job->d}, v_rows = {job->groups, job->dv};
    size_t q_at = head_offset(job, q_rows, row, head), up_at = head_offset(job, up_rows, row, head);
    size_t k_at = head_offset(job, k_rows, key, group);
    size_t v_at = head_offset(job, v_rows, key, group);
    Matrix q = head_matrix(job, q_rows, job->q + q_at, rows);
    Matrix k = head_matrix(job, k_rows, job->k + k_at, count);
    Matrix v = head_matrix(job, v_rows, job->v + v_at, count);
    Matrix up = head_matrix(job, up_rows, job->up + up_at, rows);
    ScoreRows scores = {.rows = rows,
                        .count = count,
                        .stride = padded(count),
                        .seen = keys_seen(job, first),
                        .more = job->causal,
                        .scale = job->scale};
    int64_t stride = scores.stride;
    multiply(job,
             (SerialProduct){.a = q, .b = matrix_transpose(k), .c = shares, .c_stride = stride});
    CPU_CHOOSE(attention_shares)(job->compute, &scores, shares);
    Matrix p = {dtype, shares, rows, count, stride, 1}, s = {dtype, slopes, rows, count, stride, 1};
    multiply(job, (SerialProduct){.a = matrix_transpose(p),
                                  .b = up,
                                  .c = job->v_out + v_at,
                                  .c_stride = job->groups * job->dv,
                                  .accumulate = block->adds});
    multiply(job,
             (SerialProduct){.a = up, .b = matrix_transpose(v), .c = slopes, .c_stride = stride});
    CPU_CHOOSE(attention_slopes)(job->compute, &scores, shares, slopes);
    multiply(job,
             (SerialProduct){.a = s, .b = k, .c = job->q_out + q_at, .c_stride = job->hq * job->d});
    multiply(job, (SerialProduct){.a = matrix_transpose(s),
                                  .b = q,
                                  .c = job->k_out + k_at,
                                  .c_stride = job->groups * job->d,
                                  .accumulate = block->adds});
}

// One group of heads of one member of the batch, whose keys and values are nobody else's.
static void run_groups(void *context, int64_t begin, int64_t end) {
    const AttentionGradient *job = context;
    int64_t most = job->causal ? BLOCK_CAUSAL : BLOCK_QUERIES;
    int64_t block = job->sq < most ? job->sq : most;
    // The last block sees all keys: it sets what the others add to.
    int64_t last = (job->sq - 1) / block * block;
    int64_t each = job->hq / job->groups;
    size_t bytes = (size_t)(block * padded(job->sk)) * compute_bytes(job->compute);
    char *scratch = scratch_take(2 * bytes + 1);
    for (int64_t task = begin; task < end && !cpu_interrupted(); task++)
        for (int64_t i = 0; i < each; i++)
            for (int64_t first = last; first >= 0; first -= block) {
                int64_t left = job->sq - first;
                QueryBlock queries = {.batch = task / job->groups,
                                      .head = task % job->groups * each + i,
                                      .first = first,
                                      .rows = left < block ? left : block,
                                      .adds = i > 0 || first < last};
                run_block(job, &queries, scratch, scratch + bytes);
            }
    scratch_give(scratch);
}

Status cpu_kernel_ATTENTION_GRADIENT(const KernelCall *call) {
    const TensorView *q = call->inputs[0].view, *k = call->inputs[1].view;
    const TensorView *v = call->inputs[2].view;
    int rank = q->rank;
    ASSERT(rank >= 3 && view_is_contiguous(q) && view_is_contiguous(k) && view_is_contiguous(v));
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
    if (view_count(q) == 0 || view_count(k) == 0) {
        for (int i = 0; i < 3; i++)
            memset(cpu_pointer(call->outputs[i]), 0,
                   (size_t)view_count(call->outputs[i]) * dtype_size(q->dtype));
        return STATUS_OK;
    }
    int64_t batch = 1;
    for (int i = 0; i < rank - 3; i++) batch *= q->dims[i];
    cpu_parallel(batch * job.groups, 1, run_groups, &job);
    return STATUS_OK;
}
