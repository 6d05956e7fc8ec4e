// Gradient rules of matrix products and linear algebra.
#include "tensor/rules.h"

#define RULE(name) Status rule_##name(Gradient *g)

static Term product(Gradient *g, Term a, Term b) {
    Term inputs[2] = {a, b};
    return term_op(g, OP_matmul, inputs, 2, NULL);
}

// A dimension of size 1 in front of the last `behind` ones.
static Term with_dim(Gradient *g, Term x, int behind) {
    Shape shape = term_shape(g, x), wide = {.rank = shape.rank + 1};
    int at = shape.rank - behind;
    for (int i = 0; i < wide.rank; i++) wide.dims[i] = i == at ? 1 : shape.dims[i < at ? i : i - 1];
    return term_reshape(g, x, &wide);
}

static Term without_dim(Gradient *g, Term x, int behind) {
    Shape shape = term_shape(g, x), narrow = {.rank = shape.rank - 1};
    int gone = shape.rank - 1 - behind;
    for (int i = 0; i < narrow.rank; i++) narrow.dims[i] = shape.dims[i < gone ? i : i + 1];
    return term_reshape(g, x, &narrow);
}

// [.., m, n] as [rows, n].
static Term as_rows(Gradient *g, Term x) {
    Shape shape = term_shape(g, x), rows = {.rank = 2, .dims = {1, 0}};
    if (shape.rank < 2) return x;
    rows.dims[0] = compose_product(shape.dims, 0, shape.rank - 1);
    rows.dims[1] = shape.dims[shape.rank - 1];
    return term_reshape(g, x, &rows);
}

// transpose(a) @ up. Where b lies transposed in memory its gradient is made so as well, so that
// the gradient of what b is a view of needs no copy.
static Term right_gradient(Gradient *g, Term a, Term up, const Tensor *b) {
    bool lies_transposed = tensor_rank(b) >= 2 && b->view.strides[tensor_rank(b) - 2] == 1 &&
                           b->view.strides[tensor_rank(b) - 1] != 1;
    if (tensor_rank(b) == 2) { // leading dimensions are more rows
        a = as_rows(g, a);
        up = as_rows(g, up);
    }
    if (lies_transposed) return term_transposed(g, product(g, term_transposed(g, up), a));
    return product(g, term_transposed(g, a), up);
}

static Status rule_matmul(Gradient *g) {
    Shape left = gradient_shape(g, 0), right = gradient_shape(g, 1);
    Term up = gradient_up(g);
    if (right.rank == 1) up = with_dim(g, up, 0);
    if (left.rank == 1) up = with_dim(g, up, 1);
    if (gradient_wants(g, 0)) {
        Term b = gradient_input(g, 1);
        if (right.rank == 1) b = with_dim(g, b, 0);
        Term result = product(g, up, term_transposed(g, b));
        gradient_give(g, 0, left.rank == 1 ? without_dim(g, result, 1) : result);
    }
    if (gradient_wants(g, 1)) {
        Term a = gradient_input(g, 0);
        if (left.rank == 1) a = with_dim(g, a, 1);
        Tensor *view = g->inputs[1].saved;
        Term result = right_gradient(g, a, up, view);
        gradient_give(g, 1, right.rank == 1 ? without_dim(g, result, 0) : result);
    }
    return g->status;
}
const GradientInfo gradient_matmul = {
    .name = "matmul", .rule = rule_matmul, .saves = {SAVE_Y, SAVE_X | SAVE_Y, 0}};

// -transpose(y) @ up @ transpose(y)
RULE(inv) {
    Term turned = term_transposed(g, gradient_result(g));
    Term inner = product(g, turned, gradient_up(g));
    gradient_give(g, 0, unary(g, OP_neg, product(g, inner, turned)));
    return g->status;
}

// up * det * transpose(inv(x))
RULE(det) {
    Term x = gradient_input(g, 0);
    Term turned = term_transposed(g, term_op(g, OP_inv, &x, 1, NULL));
    Term factor = with_dim(g, with_dim(g, mul(g, gradient_up(g), gradient_result(g)), 0), 0);
    gradient_give(g, 0, mul(g, factor, turned));
    return g->status;
}

// With b's gradient w = solve(transpose(a), up), that of a is -w @ transpose(y).
RULE(solve) {
    bool vector = gradient_shape(g, 1).rank == 1;
    Term up = gradient_up(g);
    if (vector) up = with_dim(g, up, 0);
    Term inputs[2] = {term_transposed(g, gradient_input(g, 0)), up};
    Term w = term_op(g, OP_solve, inputs, 2, NULL);
    if (gradient_wants(g, 0)) {
        Term y = gradient_result(g);
        if (vector) y = with_dim(g, y, 0);
        gradient_give(g, 0, unary(g, OP_neg, product(g, w, term_transposed(g, y))));
    }
    if (gradient_wants(g, 1)) gradient_give(g, 1, vector ? without_dim(g, w, 0) : w);
    return g->status;
}
