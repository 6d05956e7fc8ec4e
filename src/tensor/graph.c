// Scores of knowledge graphs, their ranks, and messages between the nodes of a graph. Embeddings
// lie along the last dimension.
#include <string.h>

#include "tensor/compose.h"

static Status sum_last(Tensor *x, Tensor **out) {
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = -1};
    return op_with(OP_sum, &x, 1, &attributes, out);
}

// "L1" or "L2" as the p of a norm.
static Status read_norm(const OpCall *call, double *p) {
    const char *word = ATTRIBUTE_OR(call, norm, "L2");
    *p = strcmp(word, "L1") == 0 || strcmp(word, "l1") == 0 ? 1 : 2;
    if (*p == 1 || strcmp(word, "L2") == 0 || strcmp(word, "l2") == 0) return STATUS_OK;
    (void)fail(STATUS_VALUE, "%s: there is no norm \"%s\"", call->op->name, word);
    return fail_help("\"L2\" and \"L1\" are known");
}

// -||h + r - t||
Status op_run_transe_score(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(moved);
    SCOPED_TENSOR(distance);
    SCOPED_TENSOR(length);
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(p) | ATTRIBUTE_BIT(dim), .dim = -1};
    TRY(read_norm(call, &attributes.p));
    TRY(op_binary(OP_add, call->inputs[0], call->inputs[1], &moved));
    TRY(op_binary(OP_sub, op_tensor(moved), call->inputs[2], &distance));
    TRY(op_with(OP_norm, &distance, 1, &attributes, &length));
    return op_unary(OP_neg, length, results);
}

// sum(h * r * t)
Status op_run_distmult_score(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(left);
    SCOPED_TENSOR(each);
    TRY(op_binary(OP_mul, call->inputs[0], call->inputs[1], &left));
    TRY(op_binary(OP_mul, op_tensor(left), call->inputs[2], &each));
    return sum_last(each, results);
}

// The complex product of (a_re, a_im) and (b_re, b_im).
static Status complex_multiply(const OpInput *a, const OpInput *b, Tensor **re, Tensor **im) {
    SCOPED_TENSOR(rr);
    SCOPED_TENSOR(ii);
    SCOPED_TENSOR(ri);
    SCOPED_TENSOR(ir);
    TRY(op_binary(OP_mul, a[0], b[0], &rr));
    TRY(op_binary(OP_mul, a[1], b[1], &ii));
    TRY(op_binary(OP_mul, a[0], b[1], &ri));
    TRY(op_binary(OP_mul, a[1], b[0], &ir));
    TRY(op_binary(OP_sub, op_tensor(rr), op_tensor(ii), re));
    return op_binary(OP_add, op_tensor(ri), op_tensor(ir), im);
}

// Re(sum(h * r * conj(t)))
Status op_run_complex_score(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(re);
    SCOPED_TENSOR(im);
    SCOPED_TENSOR(first);
    SCOPED_TENSOR(second);
    SCOPED_TENSOR(each);
    TRY(complex_multiply(&call->inputs[0], &call->inputs[2], &re, &im));
    TRY(op_binary(OP_mul, op_tensor(re), call->inputs[4], &first));
    TRY(op_binary(OP_mul, op_tensor(im), call->inputs[5], &second));
    TRY(op_binary(OP_add, op_tensor(first), op_tensor(second), &each));
    return sum_last(each, results);
}

// Minus the sum of |h * r - t| over complex numbers; each argument is a pair (re, im).
static Status rotate_score(const OpInput *h, const OpInput *r, const OpInput *t, Tensor **out) {
    SCOPED_TENSOR(re);
    SCOPED_TENSOR(im);
    SCOPED_TENSOR(far_re);
    SCOPED_TENSOR(far_im);
    TRY(complex_multiply(h, r, &re, &im));
    TRY(op_binary(OP_sub, op_tensor(re), t[0], &far_re));
    TRY(op_binary(OP_sub, op_tensor(im), t[1], &far_im));
    SCOPED_TENSOR(square_re);
    SCOPED_TENSOR(square_im);
    SCOPED_TENSOR(squares);
    SCOPED_TENSOR(lengths);
    SCOPED_TENSOR(total);
    TRY(op_unary(OP_square, far_re, &square_re));
    TRY(op_unary(OP_square, far_im, &square_im));
    TRY(op_binary(OP_add, op_tensor(square_re), op_tensor(square_im), &squares));
    TRY(op_unary(OP_sqrt, squares, &lengths));
    TRY(sum_last(lengths, &total));
    return op_unary(OP_neg, total, out);
}

Status op_run_rotate_score(const OpCall *call, Tensor **results) {
    return rotate_score(&call->inputs[0], &call->inputs[2], &call->inputs[4], results);
}

Status op_run_rotate_score_phase(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(cosine);
    SCOPED_TENSOR(sine);
    TRY(op_unary(OP_cos, call->inputs[2].tensor, &cosine));
    TRY(op_unary(OP_sin, call->inputs[2].tensor, &sine));
    OpInput turn[2] = {op_tensor(cosine), op_tensor(sine)};
    return rotate_score(&call->inputs[0], turn, &call->inputs[3], results);
}

// 1 + how many scores are better than that of the target, which is its index or its score.
Status op_run_compute_rank(const OpCall *call, Tensor **results) {
    Tensor *scores = call->inputs[0].tensor, *target = call->inputs[1].tensor;
    if (tensor_rank(scores) == 0) { // the order that older scripts use
        scores = call->inputs[1].tensor;
        target = call->inputs[0].tensor;
    }
    SCOPED_TENSOR(score);
    SCOPED_TENSOR(better);
    SCOPED_TENSOR(count);
    if (tensor_rank(scores) != 1 || tensor_rank(target) != 0)
        return fail(STATUS_SHAPE, "compute_rank takes scores [n] and one target, not %s and %s",
                    tensor_type_name(call->inputs[0].tensor).text,
                    tensor_type_name(call->inputs[1].tensor).text);
    if (dtype_is_float(tensor_dtype(target))) {
        score = tensor_retain(target);
    } else {
        int64_t index;
        TRY(tensor_read_integers(target, &index));
        TRY(tensor_select(scores, 0, index, &score));
    }
    TRY(op_binary(OP_gt, op_tensor(scores), op_tensor(score), &better));
    TRY(op_unary(OP_count_nonzero, better, &count));
    return op_binary(OP_add, op_tensor(count), op_int(1), results);
}

Status op_run_compute_mrr(const OpCall *call, Tensor **results) {
    return op_binary(OP_div, op_float(1.0), call->inputs[0], results);
}

Status op_run_compute_hits_at_k(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(hit);
    TRY(op_binary(OP_le, call->inputs[0], op_int(call->attributes->k), &hit));
    return tensor_cast(hit, DTYPE_FLOAT32, results);
}

Status op_run_compute_mean_rank(const OpCall *call, Tensor **results) {
    return compose_with_number(OP_div, call->inputs[0].tensor, (double)call->attributes->n,
                               results);
}

// x: [neighbours, dim], of which the first n count.
Status op_run_aggregate_neighbors(const OpCall *call, Tensor **results) {
    const char *mode = ATTRIBUTE_OR(call, mode, "mean");
    bool mean = strcmp(mode, "mean") == 0;
    Tensor *x = call->inputs[0].tensor;
    if (!mean && strcmp(mode, "sum") != 0) {
        (void)fail(STATUS_VALUE, "aggregate_neighbors: there is no mode \"%s\"", mode);
        return fail_help("\"mean\" and \"sum\" are known");
    }
    if (tensor_rank(x) < 1)
        return fail(STATUS_SHAPE, "aggregate_neighbors: x must be [neighbours, dim], but it is %s",
                    tensor_type_name(x).text);
    int64_t n = ATTRIBUTE_OR(call, n, x->view.dims[0]);
    if (n < 0 || n > x->view.dims[0])
        return fail(STATUS_VALUE, "aggregate_neighbors: n is %lld, but x is %s", (long long)n,
                    tensor_type_name(x).text);
    SCOPED_TENSOR(counted);
    TRY(tensor_slice(x, 0, 0, n, &counted));
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = 0};
    // Without neighbours there is no message, rather than a message of nan.
    return op_with(mean && n > 0 ? OP_mean : OP_sum, &counted, 1, &attributes, results);
}

// node + relation * neighbour
Status op_run_relational_aggregate(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(message);
    TRY(op_binary(OP_mul, call->inputs[1], call->inputs[2], &message));
    return op_binary(OP_add, call->inputs[0], op_tensor(message), results);
}

// sigmoid(sum(q * k)) * v
Status op_run_graph_attention(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(each);
    SCOPED_TENSOR(score);
    SCOPED_TENSOR(weight);
    SCOPED_TENSOR(column);
    TRY(op_binary(OP_mul, call->inputs[0], call->inputs[1], &each));
    TRY(sum_last(each, &score));
    TRY(op_unary(OP_sigmoid, score, &weight));
    TRY(tensor_unsqueeze(weight, -1, &column));
    return op_binary(OP_mul, op_tensor(column), call->inputs[2], results);
}
