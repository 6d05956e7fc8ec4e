// Shapes of matrix products and of what is read off matrices.
#include "shape/rules.h"

static Status fail_inner(const TensorType *a, const TensorType *b, int64_t inner_a,
                         int64_t inner_b) {
    (void)fail(STATUS_SHAPE, "cannot multiply %s by %s: inner sizes %lld and %lld differ",
               tensor_type_text(a).text, tensor_type_text(b).text, (long long)inner_a,
               (long long)inner_b);
    if (b->shape.rank < 2) return error_current()->code;
    TensorType turned = *b;
    int64_t *last = &turned.shape.dims[turned.shape.rank - 2];
    last[0] = b->shape.dims[b->shape.rank - 1];
    last[1] = b->shape.dims[b->shape.rank - 2];
    SCOPED_TEXT(inner);
    size_append(&inner, last[0]);
    return fail_help("transpose(b) is %s; its inner size is %s", tensor_type_text(&turned).text,
                     text_get(&inner));
}

// The dimensions before the last two; a vector has none.
static TensorType leading_of(const TensorType *x) {
    TensorType leading = *x;
    leading.shape.rank = x->shape.rank > 2 ? x->shape.rank - 2 : 0;
    return leading;
}

static Status fail_leading(const TensorType *a, const TensorType *b) {
    return fail(STATUS_SHAPE,
                "cannot multiply %s by %s: the dimensions before the last two do not broadcast",
                tensor_type_text(a).text, tensor_type_text(b).text);
}

Status shape_matmul(const char *op, const TensorType *a, const TensorType *b, Shape *out) {
    int rank_a = a->shape.rank, rank_b = b->shape.rank;
    if (rank_a == 0 || rank_b == 0) {
        (void)fail(STATUS_SHAPE, "cannot multiply %s by %s as matrices: %s is one number",
                   tensor_type_text(a).text, tensor_type_text(b).text,
                   tensor_type_text(rank_a == 0 ? a : b).text);
        return fail_help("use * to multiply by a number");
    }
    int64_t inner_a = a->shape.dims[rank_a - 1];
    int64_t inner_b = b->shape.dims[rank_b == 1 ? 0 : rank_b - 2];
    if (sizes_differ(inner_a, inner_b)) return fail_inner(a, b, inner_a, inner_b);
    TensorType left = leading_of(a), right = leading_of(b);
    if (shape_broadcast(op, &left, &right, out) != STATUS_OK) return fail_leading(a, b);
    if (rank_a > 1) out->dims[out->rank++] = a->shape.dims[rank_a - 2];
    if (rank_b > 1) out->dims[out->rank++] = b->shape.dims[rank_b - 1];
    return STATUS_OK;
}

Status shape_bmm(const TensorType *a, const TensorType *b) {
    if (a->shape.rank == 3 && b->shape.rank == 3 &&
        !sizes_differ(a->shape.dims[0], b->shape.dims[0]))
        return STATUS_OK;
    (void)fail(STATUS_SHAPE, "bmm multiplies [batch, m, k] by [batch, k, n], not %s by %s",
               tensor_type_text(a).text, tensor_type_text(b).text);
    return fail_help("matmul(a, b) broadcasts its leading dimensions");
}

Status shape_linear(const char *op, const TensorType *x, const TensorType *weight,
                    const TensorType *bias, Shape *out) {
    int rank = x->shape.rank;
    if (weight->shape.rank != 2)
        return fail(STATUS_SHAPE, "%s: the weight must be a matrix [out, in], but it is %s", op,
                    tensor_type_text(weight).text);
    int64_t in = weight->shape.dims[1], outs = weight->shape.dims[0];
    if (rank == 0 || sizes_differ(x->shape.dims[rank - 1], in)) {
        SCOPED_TEXT(takes);
        size_append(&takes, in);
        (void)fail(STATUS_SHAPE, "%s: x is %s, but the weight %s takes %s numbers in", op,
                   tensor_type_text(x).text, tensor_type_text(weight).text, text_get(&takes));
        if (rank > 0 && sizes_equal(x->shape.dims[rank - 1], outs))
            return fail_help("the weight is [out, in]: transpose(weight) would fit, or "
                             "matmul(x, weight)");
        return fail_help("the weight is [out, in]");
    }
    if (bias && (bias->shape.rank > 1 || (bias->shape.rank == 1 && bias->shape.dims[0] != 1 &&
                                          sizes_differ(bias->shape.dims[0], outs))))
        return fail(STATUS_SHAPE, "%s: the bias is %s, but the weight %s gives %lld numbers", op,
                    tensor_type_text(bias).text, tensor_type_text(weight).text, (long long)outs);
    *out = x->shape;
    out->dims[rank - 1] = outs;
    return STATUS_OK;
}

Status shape_outer(const TensorType *a, const TensorType *b, Shape *out) {
    int rank = a->shape.rank + b->shape.rank;
    if (rank > RANK_MAX)
        return fail(STATUS_SHAPE, "outer: %s and %s make %d dimensions; at most %d are possible",
                    tensor_type_text(a).text, tensor_type_text(b).text, rank, RANK_MAX);
    *out = a->shape;
    for (int i = 0; i < b->shape.rank; i++) out->dims[out->rank++] = b->shape.dims[i];
    return STATUS_OK;
}

Status shape_needs_matrix(const char *op, const TensorType *x) {
    if (x->shape.rank >= 2) return STATUS_OK;
    return fail(STATUS_SHAPE, "%s needs a matrix, but it is given %s", op,
                tensor_type_text(x).text);
}

Status shape_needs_square(const char *op, const TensorType *x) {
    TRY(shape_needs_matrix(op, x));
    int rank = x->shape.rank;
    if (!sizes_differ(x->shape.dims[rank - 2], x->shape.dims[rank - 1])) return STATUS_OK;
    return fail(STATUS_SHAPE, "%s needs a square matrix, but it is given %s", op,
                tensor_type_text(x).text);
}

Status shape_solve_side(const TensorType *a, const TensorType *b) {
    int rank = b->shape.rank;
    int64_t n = a->shape.dims[a->shape.rank - 1];
    if (rank > 0 && !sizes_differ(b->shape.dims[rank == 1 ? 0 : rank - 2], n)) return STATUS_OK;
    SCOPED_TEXT(rows);
    size_append(&rows, n);
    return fail(STATUS_SHAPE,
                "solve: the matrix is %s, so the right side needs %s rows, but it is %s",
                tensor_type_text(a).text, text_get(&rows), tensor_type_text(b).text);
}
