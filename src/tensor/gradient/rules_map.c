// Gradients of elementwise operations and of reductions: the derivatives that stand next to the
// formulas of catalog/maps.def and catalog/reductions.def, as terms.
#include "device/walk.h"
#include "tensor/gradient/rules.h"

// What derivatives are made of; of the operands only those that were saved.
typedef struct Leaves {
    Gradient *g;
    Term up, operands[3], result;
    ReducedDims reduction; // of reductions: up and result have the dimensions that were removed
} Leaves;

typedef Term (*Derivative)(const Leaves *leaves);

static Term apply(const Leaves *leaves, OpId op, Term a, Term b, Term c) {
    return term_map(leaves->g, op, a, b, c);
}

#define of(op, ...) OPERANDS(OP_##op, __VA_ARGS__, NOTHING, NOTHING)
#define OPERANDS(op, a, b, c, ...) apply(leaves, op, a, b, c)
#define NOTHING ((Term){0})
#include "catalog/derivatives.h"
#define number(value) term_number(leaves->g, value)
#define up leaves->up
#define x leaves->operands[0]
#define y leaves->operands[1]
#define z leaves->operands[2]
#define result leaves->result
#define none ((void)leaves, NOTHING)

#define DERIVATIVE(code, operand, term)                                                            \
    static Term derivative_##code##_##operand(const Leaves *leaves) {                              \
        return term;                                                                               \
    }
#define MAP1(code, formula, dx) DERIVATIVE(code, 0, dx)
#define MAP2(code, formula, dx, dy) DERIVATIVE(code, 0, dx) DERIVATIVE(code, 1, dy)
#define MAP3(code, formula, dx, dy, dz)                                                            \
    DERIVATIVE(code, 0, dx) DERIVATIVE(code, 1, dy) DERIVATIVE(code, 2, dz)
#include "catalog/maps.def"
#undef MAP1
#undef MAP2
#undef MAP3

static Term mean_of(const Leaves *leaves) {
    const ReducedDims *reduction = &leaves->reduction;
    Term total = term_sum_kept(leaves->g, x, reduction->gone);
    return mul(total, number(1 / reduction->count));
}
static double correction_of(const Gradient *g) {
    bool given = g->attributes && (g->attributes->given & ATTRIBUTE_BIT(correction));
    return given ? (double)g->attributes->correction : 0;
}
#define mean mean_of(leaves)
#define n leaves->reduction.count
#define c correction_of(leaves->g)
#define REDUCTION(code, first, second, integers, finish, derivative)                               \
    static Term derivative_of_##code(const Leaves *leaves) {                                       \
        return derivative;                                                                         \
    }
#include "catalog/reductions.def"
#undef mean
#undef n
#undef c

static const Derivative reduction_derivatives[REDUCE_COUNT] = {
#define REDUCTION(code, ...) derivative_of_##code,
#include "catalog/reductions.def"
};

#undef up
#undef x
#undef y
#undef z
#undef result

static const Derivative derivatives[MAP_COUNT][3] = {
#define MAP1(code, ...) {derivative_##code##_0},
#define MAP2(code, ...) {derivative_##code##_0, derivative_##code##_1},
#define MAP3(code, ...) {derivative_##code##_0, derivative_##code##_1, derivative_##code##_2},
#include "catalog/maps.def"
};

static Leaves find_leaves(Gradient *g) {
    Leaves leaves = {.g = g, .up = gradient_up(g)};
    unsigned reads = 0;
    for (int i = 0; i < g->n_inputs; i++)
        if (gradient_wants(g, i)) reads |= g->info->saves[i];
    for (int i = 0; i < g->n_inputs; i++)
        if (reads >> i & 1u) leaves.operands[i] = gradient_input(g, i);
    if (reads & SAVE_RESULT) leaves.result = gradient_result(g);
    return leaves;
}

Status rule_reduction(Gradient *g) {
    Leaves leaves = find_leaves(g);
    const Shape *kept = &leaves.reduction.kept;
    leaves.reduction = gradient_reduced(g);
    leaves.up = term_reshape(g, leaves.up, kept);
    if (g->info->saves[0] & SAVE_RESULT) leaves.result = term_reshape(g, leaves.result, kept);
    ReduceOp reduction = op_rows[g->info - gradient_table].reduction;
    gradient_give(g, 0, reduction_derivatives[reduction](&leaves));
    return g->status;
}

// Whether a leaf is of the shape and the dtype of `like`, without gaps. No leaf is.
static bool is_alike(Gradient *g, Term leaf, const Tensor *like) {
    if (!leaf.slot) return true;
    if (term_is_number(g, leaf)) return false;
    const TensorView *view = &term_tensor(g, leaf)->view;
    bool same = view->dtype == like->view.dtype && view->rank == like->view.rank;
    for (int i = 0; same && i < view->rank; i++) same = view->dims[i] == like->view.dims[i];
    return same && view_is_contiguous(view);
}

// Floats of the input's shape, which are not repeated on the way in.
static bool suits_kernel(const Leaves *leaves, int input) {
    Gradient *g = leaves->g;
    const Tensor *upstream = term_tensor(g, leaves->up);
    if (!upstream || !gradient_has(g, KERNEL_MAP_GRADIENT)) return false;
    Shape shape = tensor_shape(upstream), wanted = gradient_shape(g, input);
    DType dtype = tensor_dtype(upstream);
    if (dtype != DTYPE_FLOAT32 && dtype != DTYPE_FLOAT64) return false;
    bool same = shape.rank == wanted.rank;
    for (int i = 0; same && i < shape.rank; i++) same = shape.dims[i] == wanted.dims[i];
    return same && is_alike(g, leaves->up, upstream) &&
           is_alike(g, leaves->operands[0], upstream) &&
           is_alike(g, leaves->operands[1], upstream) && is_alike(g, leaves->result, upstream);
}

// The derivative by an operand. One that takes several steps is one kernel where the device has it.
static Term derivative_by(const Leaves *leaves, MapOp map, int input) {
    Gradient *g = leaves->g;
    Term steps = derivatives[map][input](leaves);
    if (leaves->operands[2].slot || !term_has_steps(g, steps) || !suits_kernel(leaves, input))
        return steps;
    const Term given[4] = {leaves->up, leaves->operands[0], leaves->operands[1], leaves->result};
    Term inputs[4];
    for (int i = 0; i < 4; i++) inputs[i] = given[i].slot ? given[i] : leaves->up;
    KernelOptions options = {.op = (int)map, .dim = input};
    return term_fused(g, (FusedCall){.kernel = KERNEL_MAP_GRADIENT,
                                     .options = &options,
                                     .inputs = inputs,
                                     .n_inputs = 4,
                                     .first = input});
}

Status rule_map(Gradient *g) {
    Leaves leaves = find_leaves(g);
    ASSERT(g->info >= gradient_table);
    MapOp map = op_rows[g->info - gradient_table].map;
    for (int i = 0; i < g->n_inputs; i++)
        if (gradient_wants(g, i)) gradient_give(g, i, derivative_by(&leaves, map, i));
    return g->status;
}

// The choice of formula is an argument, so the row is not an elementwise one.
Status rule_gelu_choice(Gradient *g) {
    Leaves leaves = find_leaves(g);
    MapOp map = g->attributes->exact ? MAP_GELU_EXACT : MAP_GELU;
    gradient_give(g, 0, derivative_by(&leaves, map, 0));
    return g->status;
}
