// Gradient rules of linear algebra, made of products and solutions so that they differentiate
// again. Where a matrix is symmetric by contract (cholesky, eigh) its gradient is that of symmetric
// changes.
#include "tensor/gradient/rules.h"
#include "tensor/gradient/tape_node.h"

#define RULE(name) Status rule_##name(Gradient *g)

// -transpose(y) @ up @ transpose(y)
RULE(inv) {
    Term turned = term_transposed(g, gradient_result(g));
    Term inner = term_matmul(g, turned, gradient_up(g));
    gradient_give(g, 0, term_unary(g, OP_neg, term_matmul(g, inner, turned)));
    return g->status;
}

// The products of all singular values but one.
static Term products_of_others(Gradient *g, Term s) {
    Shape shape = term_shape(g, s);
    if (g->status != STATUS_OK) return s;
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(n) | ATTRIBUTE_BIT(device);
    attributes.n = shape.dims[shape.rank - 1];
    attributes.device = g->incoming[0]->device;
    Term diagonal = term_op(g, OP_eye, NULL, 0, &attributes);
    Term others = term_where(g, term_binary(g, OP_gt, diagonal, term_number(g, 0)),
                             term_number(g, 1), term_with_dim(g, s, 1));
    attributes.given = ATTRIBUTE_BIT(dims) | ATTRIBUTE_BIT(keepdim);
    attributes.dims = (Shape){.rank = 1, .dims = {-1}};
    attributes.keepdim = false;
    return term_op(g, OP_prod_dims, &others, 1, &attributes);
}

// The matrix of cofactors, which a singular matrix has too.
static Term cofactors(Gradient *g, Term x) {
    Tensor *matrix = term_tensor(g, x), *parts[3] = {NULL};
    if (!matrix) return (Term){0};
    Status status = op_with(OP_svd, &matrix, 1, NULL, parts);
    Term terms[3];
    for (int i = 0; i < 3; i++) terms[i] = term_take(g, status, &parts[i]);
    Term u = terms[0], vt = terms[2];
    Term sign = term_mul(g, term_op(g, OP_det, &u, 1, NULL), term_op(g, OP_det, &vt, 1, NULL));
    Term scale = term_mul(g, products_of_others(g, terms[1]), term_with_dim(g, sign, 0));
    return term_matmul(g, term_mul(g, u, term_with_dim(g, scale, 1)), vt);
}

// up * det * transpose(inv(x)), where there is an inverse
RULE(det) {
    Term x = gradient_input(g, 0), up = gradient_up(g);
    Tensor *matrix = term_tensor(g, x), *inverse = NULL;
    if (!matrix) return g->status;
    Status status = op_with(OP_inv, &matrix, 1, NULL, &inverse);
    if (status == STATUS_VALUE) {
        error_clear();
        gradient_give(g, 0,
                      term_mul(g, term_with_dim(g, term_with_dim(g, up, 0), 0), cofactors(g, x)));
        return g->status;
    }
    Term turned = term_transposed(g, term_take(g, status, &inverse));
    Term factor = term_with_dim(g, term_with_dim(g, term_mul(g, up, gradient_result(g)), 0), 0);
    gradient_give(g, 0, term_mul(g, factor, turned));
    return g->status;
}

// With b's gradient w = solve(transpose(a), up), that of a is -w @ transpose(y).
RULE(solve) {
    bool vector = gradient_shape(g, 1).rank == 1;
    Term up = gradient_up(g);
    if (vector) up = term_with_dim(g, up, 0);
    Term inputs[2] = {term_transposed(g, gradient_input(g, 0)), up};
    Term w = term_op(g, OP_solve, inputs, 2, NULL);
    if (gradient_wants(g, 0)) {
        Term y = gradient_result(g);
        if (vector) y = term_with_dim(g, y, 0);
        gradient_give(g, 0, term_unary(g, OP_neg, term_matmul(g, w, term_transposed(g, y))));
    }
    if (gradient_wants(g, 1)) gradient_give(g, 1, vector ? term_without_dim(g, w, 0) : w);
    return g->status;
}

// --- decompositions

static Term turned(Gradient *g, Term x) {
    return term_transposed(g, x);
}

static Term solved(Gradient *g, Term a, Term b) {
    Term inputs[2] = {a, b};
    return term_op(g, OP_solve, inputs, 2, NULL);
}

// b @ inverse(a)
static Term solved_from_right(Gradient *g, Term b, Term a) {
    return turned(g, solved(g, turned(g, a), turned(g, b)));
}

// The triangle below diagonal k and on it.
static Term lower_triangle(Gradient *g, Term x, int64_t k) {
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(k);
    attributes.k = k;
    return term_op(g, OP_tril, &x, 1, &attributes);
}

// bool [n, n]
static Term diagonal_mask(Gradient *g, int64_t n) {
    OpAttributes attributes;
    ASSERT(n >= 0);
    attributes.given = ATTRIBUTE_BIT(n) | ATTRIBUTE_BIT(dtype) | ATTRIBUTE_BIT(device);
    attributes.n = n;
    attributes.dtype = DTYPE_BOOL;
    attributes.device = g->node->saved_outputs[0]->device;
    return term_op(g, OP_eye, NULL, 0, &attributes);
}

static bool arrived(const Gradient *g, int output) {
    return g->incoming[output] != NULL;
}

static Term up_of(Gradient *g, int output) {
    return term_own(g, tensor_retain(g->incoming[output]));
}

static Term as_row(Gradient *g, Term x) {
    return term_with_dim(g, x, 1);
}

static Term as_column(Gradient *g, Term x) {
    return term_with_dim(g, x, 0);
}

static Term last_sizes(Gradient *g, Term x, int64_t *rows, int64_t *columns) {
    Shape shape = term_shape(g, x);
    *rows = shape.rank >= 2 ? shape.dims[shape.rank - 2] : 0;
    *columns = shape.rank >= 2 ? shape.dims[shape.rank - 1] : 0;
    return x;
}

// With P the lower triangle of transpose(L) @ up, its diagonal halved: the symmetric part of
// inverse(transpose(L)) @ P @ inverse(L).
RULE(cholesky) {
    int64_t n, columns;
    Term l = last_sizes(g, gradient_result(g), &n, &columns);
    Term inner = lower_triangle(g, term_matmul(g, turned(g, l), gradient_up(g)), 0);
    Term halved = term_where(g, diagonal_mask(g, n), term_scaled(g, inner, 0.5), inner);
    Term whole = solved_from_right(g, solved(g, turned(g, l), halved), l);
    gradient_give(g, 0, term_scaled(g, term_add(g, whole, turned(g, whole)), 0.5));
    return g->status;
}

// x / (value_j - value_i) off the diagonal, 0 on it.
static Term by_gaps(Gradient *g, Term x, Term values, int64_t n) {
    Term gaps = term_sub(g, as_row(g, values), as_column(g, values)), mask = diagonal_mask(g, n);
    Term safe = term_where(g, mask, term_number(g, 1), gaps);
    return term_where(g, mask, term_number(g, 0), term_div(g, x, safe));
}

// V (diag(up_values) + (transpose(V) @ up_vectors) / gaps) transpose(V)
RULE(eigh) {
    int64_t n, columns;
    Term vectors = last_sizes(g, gradient_saved_output(g, 1), &n, &columns), inner = {0};
    if (arrived(g, 1))
        inner = by_gaps(g, term_matmul(g, turned(g, vectors), up_of(g, 1)),
                        gradient_saved_output(g, 0), n);
    if (arrived(g, 0)) {
        Term diagonal =
            term_where(g, diagonal_mask(g, n), as_row(g, up_of(g, 0)), term_number(g, 0));
        inner = inner.slot ? term_add(g, inner, diagonal) : diagonal;
    }
    Term whole = term_matmul(g, term_matmul(g, vectors, inner), turned(g, vectors));
    gradient_give(g, 0, term_scaled(g, term_add(g, whole, turned(g, whole)), 0.5));
    return g->status;
}

// x - basis @ transpose(basis) @ x: what lies outside the columns of an orthonormal basis.
static Term outside(Gradient *g, Term basis, Term x) {
    return term_sub(g, x, term_matmul(g, basis, term_matmul(g, turned(g, basis), x)));
}

static Term skew(Gradient *g, Term x) {
    return term_sub(g, x, turned(g, x));
}

// With F / G the skew parts of transpose(U) @ up_U and transpose(V) @ up_V over the gaps of the
// squares: U (F S + S G + diag(up_S)) transpose(V), and what U and V cannot reach themselves.
RULE(svd) {
    int64_t m, n, k;
    Term u = last_sizes(g, gradient_saved_output(g, 0), &m, &k);
    Term s = gradient_saved_output(g, 1);
    Term vt = last_sizes(g, gradient_saved_output(g, 2), &k, &n), v = turned(g, vt);
    Term squares = term_unary(g, OP_square, s), inner = {0}, more = {0};
    if (arrived(g, 1))
        inner = term_where(g, diagonal_mask(g, k), as_row(g, up_of(g, 1)), term_number(g, 0));
    if (arrived(g, 0)) {
        Term up = up_of(g, 0),
             turn = by_gaps(g, skew(g, term_matmul(g, turned(g, u), up)), squares, k);
        Term part = term_mul(g, turn, as_row(g, s));
        inner = inner.slot ? term_add(g, inner, part) : part;
        if (m > k) more = term_matmul(g, term_div(g, outside(g, u, up), as_row(g, s)), vt);
    }
    if (arrived(g, 2)) {
        Term up = turned(g, up_of(g, 2));
        Term turn = by_gaps(g, skew(g, term_matmul(g, vt, up)), squares, k);
        Term part = term_mul(g, turn, as_column(g, s));
        inner = inner.slot ? term_add(g, inner, part) : part;
        if (n > k) {
            Term rest = term_div(g, outside(g, v, up), as_row(g, s)); // [n, k]
            Term part_outside = term_matmul(g, u, turned(g, rest));
            more = more.slot ? term_add(g, more, part_outside) : part_outside;
        }
    }
    Term result = term_matmul(g, term_matmul(g, u, inner), vt);
    gradient_give(g, 0, more.slot ? term_add(g, result, more) : result);
    return g->status;
}

static Term columns_of(Gradient *g, Term x, int64_t first, int64_t last) {
    ASSERT(first <= last);
    Tensor *tensor = term_tensor(g, x), *result = NULL;
    if (!tensor) return (Term){0};
    return term_take(g, tensor_slice(tensor, tensor_rank(tensor) - 1, first, last, &result),
                     &result);
}

// Of a square or tall matrix: with M = R transpose(up_R) - transpose(up_Q) Q, mirrored from its
// lower triangle, (up_Q + Q M) inverse(transpose(R)). Terms without a slot are zeros.
static Term qr_tall(Gradient *g, Term q, Term r, Term up_q, Term up_r) {
    Term inner = {0};
    if (up_r.slot) inner = term_matmul(g, r, turned(g, up_r));
    if (up_q.slot) {
        Term part = term_matmul(g, turned(g, up_q), q);
        inner = inner.slot ? term_sub(g, inner, part) : term_unary(g, OP_neg, part);
    }
    Term mirrored =
        term_add(g, lower_triangle(g, inner, 0), turned(g, lower_triangle(g, inner, -1)));
    Term along = term_matmul(g, q, mirrored);
    return solved_from_right(g, up_q.slot ? term_add(g, up_q, along) : along, turned(g, r));
}

// A wide matrix [X, Y] has Q of X and R = [U, transpose(Q) Y].
RULE(qr) {
    int64_t m, n, k;
    Term q = last_sizes(g, gradient_saved_output(g, 0), &m, &k);
    Term r = last_sizes(g, gradient_saved_output(g, 1), &k, &n);
    Term up_q = arrived(g, 0) ? up_of(g, 0) : (Term){0};
    Term up_r = arrived(g, 1) ? up_of(g, 1) : (Term){0};
    if (m >= n) {
        gradient_give(g, 0, qr_tall(g, q, r, up_q, up_r));
        return g->status;
    }
    Term right = {0}, square = columns_of(g, r, 0, m);
    if (up_r.slot) {
        Term up_right = columns_of(g, up_r, m, n);
        Term y = columns_of(g, gradient_input(g, 0), m, n);
        Term part = term_matmul(g, y, turned(g, up_right));
        up_q = up_q.slot ? term_add(g, up_q, part) : part;
        up_r = columns_of(g, up_r, 0, m);
        right = term_matmul(g, q, up_right);
    }
    Term pieces[2] = {qr_tall(g, q, square, up_q, up_r), right};
    if (!right.slot) pieces[1] = columns_of(g, term_filled(g, 0, 0), m, n);
    gradient_give(g, 0, term_joined(g, pieces, 2));
    return g->status;
}
