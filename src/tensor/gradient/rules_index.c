// Gradient rules of selecting and placing by index tensors.
#include "tensor/gradient/rules.h"

#define RULE(name) Status rule_##name(Gradient *g)

static OpAttributes along(int64_t dim) {
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(dim);
    attributes.dim = dim;
    return attributes;
}

// Zeros with up added where it was read.
static Status give_back(Gradient *g, Term index, int64_t dim) {
    OpAttributes attributes = along(dim);
    Term inputs[3] = {term_filled(g, 0, 0), index, gradient_up(g)};
    gradient_give(g, 0, term_op(g, OP_scatter_add, inputs, 3, &attributes));
    return g->status;
}

RULE(gather) {
    return give_back(g, gradient_input(g, 1), g->attributes->dim);
}

// Whole slices by a 1-D index, which is input 1; kept: the dimension.
static Status rule_gather_slices(Gradient *g) {
    return give_back(g, gradient_input(g, 1), *(const int *)g->kept);
}
const GradientInfo gradient_gather_slices = {
    .name = "index_select", .rule = rule_gather_slices, .saves = {SAVE_Y, GIVES_NONE, GIVES_NONE}};

static void give_source(Gradient *g) {
    if (!gradient_wants(g, 2)) return;
    OpAttributes attributes = along(g->attributes->dim);
    Term inputs[2] = {gradient_up(g), gradient_input(g, 1)};
    gradient_give(g, 2, term_op(g, OP_gather, inputs, 2, &attributes));
}

RULE(scatter) {
    if (gradient_wants(g, 0)) {
        OpAttributes attributes = along(g->attributes->dim);
        Term inputs[3] = {gradient_up(g), gradient_input(g, 1), term_number(g, 0)};
        gradient_give(g, 0, term_op(g, OP_scatter, inputs, 3, &attributes));
    }
    give_source(g);
    return g->status;
}

RULE(scatter_add) {
    gradient_give(g, 0, gradient_up(g));
    give_source(g);
    return g->status;
}
