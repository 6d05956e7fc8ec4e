// Gradient rules of normalisation and of the loss of classification.
#include "tensor/gradient/rules.h"
#include "tensor/gradient/tape_node.h"
#include "tensor/norm.h"

#define RULE(name) Status rule_##name(Gradient *g)

static void mark_dim(const Gradient *g, bool *gone) {
    int rank = gradient_shape(g, 0).rank;
    bool given = g->attributes && (g->attributes->given & ATTRIBUTE_BIT(dim));
    int64_t dim = given ? g->attributes->dim : -1;
    ASSERT(rank <= 0 || (dim >= -rank && dim < rank));
    if (rank > 0) gone[dim < 0 ? dim + rank : dim] = true;
}

// y (up - sum(up y))
RULE(softmax) {
    bool gone[RANK_MAX] = {false};
    mark_dim(g, gone);
    Term up = gradient_up(g), y = gradient_result(g);
    Term weighed = term_sum_kept(g, term_mul(g, up, y), gone);
    gradient_give(g, 0, term_mul(g, y, term_sub(g, up, weighed)));
    return g->status;
}

// up - exp(y) sum(up)
RULE(log_softmax) {
    bool gone[RANK_MAX] = {false};
    mark_dim(g, gone);
    Term up = gradient_up(g), shares = term_unary(g, OP_exp, gradient_result(g));
    gradient_give(g, 0, term_sub(g, up, term_mul(g, shares, term_sum_kept(g, up, gone))));
    return g->status;
}

static void mark_trailing(int rank, int count, bool *gone) {
    for (int i = rank - count; i < rank; i++) gone[i] = true;
}

static Term mean_kept(Gradient *g, Term x, const bool *gone) {
    Shape shape = term_shape(g, x);
    double count = 1;
    for (int i = 0; i < shape.rank; i++)
        if (gone[i]) count *= (double)shape.dims[i];
    return term_scaled(g, term_sum_kept(g, x, gone), count > 0 ? 1 / count : 0);
}

// y = x r w with r = 1 / sqrt(mean(x^2) + eps).
RULE(rms_norm) {
    bool has_weight = g->n_inputs > 1 && g->inputs[1].is_tensor, gone[RANK_MAX] = {false};
    int rank = gradient_shape(g, 0).rank;
    double eps =
        g->attributes && (g->attributes->given & ATTRIBUTE_BIT(eps)) ? g->attributes->eps : 1e-6;
    mark_trailing(rank, has_weight ? gradient_shape(g, 1).rank : 1, gone);
    Term up = gradient_up(g), x = gradient_input(g, 0);
    Term squares = mean_kept(g, term_unary(g, OP_square, x), gone);
    Term r = term_unary(g, OP_rsqrt, term_add(g, squares, term_number(g, eps)));
    (void)term_tensor(g, r); // one number a row: computed once, not in every element
    if (gradient_wants(g, 1)) gradient_give(g, 1, term_mul(g, term_mul(g, up, x), r));
    if (gradient_wants(g, 0)) {
        Term inner = has_weight ? term_mul(g, up, gradient_input(g, 1)) : up;
        Term share =
            term_mul(g, mean_kept(g, term_mul(g, inner, x), gone), term_unary(g, OP_square, r));
        gradient_give(g, 0, term_mul(g, r, term_sub(g, inner, term_mul(g, x, share))));
    }
    return g->status;
}

// The gradients of layer_norm by one kernel: of x, and of weight and bias where there are both.
static Status layer_norm_at_once(Gradient *g) {
    const LayerNormKept *kept = g->kept;
    bool has_weight = g->inputs[1].is_tensor;
    KernelOptions options = {.count = kept->count, .scalars = {kept->eps}};
    Term inputs[3] = {gradient_up(g), gradient_input(g, 0)}, outputs[3];
    if (has_weight) inputs[2] = gradient_input(g, 1);
    FusedCall call = {.kernel = KERNEL_LAYER_NORM_GRADIENT,
                      .options = &options,
                      .inputs = inputs,
                      .n_inputs = has_weight ? 3 : 2,
                      .outputs = outputs,
                      .n_outputs = has_weight && g->inputs[2].is_tensor ? 3 : 1};
    term_fused_all(g, &call);
    for (int i = 0; i < call.n_outputs && g->status == STATUS_OK; i++)
        gradient_give(g, i, outputs[i]);
    return g->status;
}

// y = (x - m) r w + b over the last `count` dimensions; inputs x, w, b.
static Status rule_layer_norm(Gradient *g) {
    const LayerNormKept *kept = g->kept;
    bool gone[RANK_MAX] = {false}, has_bias = g->inputs[2].is_tensor;
    mark_trailing(gradient_shape(g, 0).rank, kept->count, gone);
    if (gradient_wants(g, 0) && (has_bias || !gradient_wants(g, 1)) &&
        gradient_has(g, KERNEL_LAYER_NORM_GRADIENT))
        return layer_norm_at_once(g);
    Term up = gradient_up(g);
    gradient_give(g, 2, up);
    if (!gradient_wants(g, 0) && !gradient_wants(g, 1)) return g->status;
    Term x = gradient_input(g, 0), centred = term_sub(g, x, mean_kept(g, x, gone));
    Term variance = mean_kept(g, term_unary(g, OP_square, centred), gone);
    Term r = term_unary(g, OP_rsqrt, term_add(g, variance, term_number(g, kept->eps)));
    (void)term_tensor(g, r);
    Term normal = term_mul(g, centred, r);
    if (gradient_wants(g, 1)) gradient_give(g, 1, term_mul(g, up, normal));
    if (gradient_wants(g, 0)) {
        bool has_weight = g->inputs[1].is_tensor;
        Term inner = has_weight ? term_mul(g, up, gradient_input(g, 1)) : up;
        Term along = term_mul(g, normal, mean_kept(g, term_mul(g, inner, normal), gone));
        Term rest = term_sub(g, term_sub(g, inner, mean_kept(g, inner, gone)), along);
        gradient_give(g, 0, term_mul(g, r, rest));
    }
    return g->status;
}

static Status layer_norm_again(const TapeNode *node, Tensor *const *inputs, Tensor **result) {
    OpCall call = {.op = &op_rows[OP_layer_norm]};
    return layer_norm_kernel(&call, inputs, node->kept, result);
}
const GradientInfo gradient_layer_norm = {.name = "layer_norm",
                                          .rule = rule_layer_norm,
                                          .saves = {SAVE_X | SAVE_Y, SAVE_X, 0},
                                          .again = layer_norm_again};

// softmax(x) - 1 at the classes, over the rows.
static void classes_rule(Gradient *g, Term share) {
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(dim);
    attributes.dim = -1;
    Term logits = gradient_input(g, 0), target = gradient_input(g, 1);
    if (gradient_has(g, KERNEL_CROSS_ENTROPY_LOGITS)) {
        Term at_once[3] = {logits, target, share};
        KernelOptions options = {0};
        FusedCall call = {KERNEL_CROSS_ENTROPY_LOGITS, &options, at_once, .n_inputs = 3};
        gradient_give(g, 0, term_fused(g, call));
        return;
    }
    Shape column = gradient_shape(g, 1);
    column.dims[column.rank++] = 1;
    Term inputs[3] = {term_op(g, OP_softmax, &logits, 1, &attributes),
                      term_reshape(g, target, &column), term_number(g, -1)};
    gradient_give(g, 0, term_mul(g, term_op(g, OP_scatter_add, inputs, 3, &attributes), share));
}

static Status rule_cross_entropy(Gradient *g) {
    Shape shape = gradient_shape(g, 0), target = gradient_shape(g, 1);
    double rows = (double)compose_product(shape.dims, 0, shape.rank - 1);
    Term share = term_scaled(g, gradient_up(g), rows > 0 ? 1 / rows : 0);
    if (target.rank < shape.rank) {
        classes_rule(g, share);
        return g->status;
    }
    Term logits = gradient_input(g, 0), weights = gradient_input(g, 1);
    if (gradient_wants(g, 0)) {
        Term expected =
            term_mul(g, term_op(g, OP_softmax, &logits, 1, NULL), term_sum_last(g, weights));
        gradient_give(g, 0, term_mul(g, term_sub(g, expected, weights), share));
    }
    if (gradient_wants(g, 1)) {
        Term logs = term_op(g, OP_log_softmax, &logits, 1, NULL);
        gradient_give(g, 1, term_unary(g, OP_neg, term_mul(g, logs, share)));
    }
    return g->status;
}
const GradientInfo gradient_cross_entropy = {.name = "cross_entropy",
                                             .rule = rule_cross_entropy,
                                             .saves = {SAVE_X | SAVE_Y, SAVE_X | SAVE_Y}};
