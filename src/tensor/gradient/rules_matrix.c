// The gradient rule of matrix products.
#include "tensor/gradient/rules.h"

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
    if (lies_transposed) return term_transposed(g, term_matmul(g, term_transposed(g, up), a));
    return term_matmul(g, term_transposed(g, a), up);
}

static Status rule_matmul(Gradient *g) {
    Shape left = gradient_shape(g, 0), right = gradient_shape(g, 1);
    Term up = gradient_up(g);
    if (right.rank == 1) up = term_with_dim(g, up, 0);
    if (left.rank == 1) up = term_with_dim(g, up, 1);
    if (gradient_wants(g, 0)) {
        Term b = gradient_input(g, 1);
        if (right.rank == 1) b = term_with_dim(g, b, 0);
        Term result = term_matmul(g, up, term_transposed(g, b));
        gradient_give(g, 0, left.rank == 1 ? term_without_dim(g, result, 1) : result);
    }
    if (gradient_wants(g, 1)) {
        Term a = gradient_input(g, 0);
        if (left.rank == 1) a = term_with_dim(g, a, 1);
        Tensor *view = g->inputs[1].saved;
        Term result = right_gradient(g, a, up, view);
        gradient_give(g, 1, right.rank == 1 ? term_without_dim(g, result, 0) : result);
    }
    return g->status;
}

static Status matmul_again(const TapeNode *node, Tensor *const *inputs, Tensor **result) {
    (void)node;
    return op_with(OP_matmul, inputs, 2, NULL, result);
}
const GradientInfo gradient_matmul = {.name = "matmul",
                                      .rule = rule_matmul,
                                      .saves = {SAVE_Y, SAVE_X | SAVE_Y, 0},
                                      .again = matmul_again};
