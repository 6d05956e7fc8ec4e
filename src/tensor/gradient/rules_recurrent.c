// Gradient rules of the cells of recurrent layers.
#include "tensor/gradient/rules.h"

#define RULE(name) Status rule_##name(Gradient *g)

// The n numbers of a gate in the last dimension.
static Term gate(Gradient *g, Term gates, int index, int64_t n) {
    Tensor *x = term_tensor(g, gates), *part = NULL;
    if (!x) return (Term){0};
    ASSERT(index >= 0 && n >= 0);
    return term_take(g, tensor_slice(x, -1, index * n, (index + 1) * n, &part), &part);
}

static Term computed(Gradient *g, Term x) {
    (void)term_tensor(g, x); // used more than once
    return x;
}

static Term incoming(Gradient *g, int output) {
    Tensor *arrived = g->incoming[output];
    return arrived ? term_own(g, tensor_retain(arrived)) : term_number(g, 0);
}

static Term less(Gradient *g, double from, Term x) {
    return term_sub(g, term_number(g, from), x);
}
// v times the derivative of a sigmoid s, of a hyperbolic tangent t.
static Term through_sigmoid(Gradient *g, Term s, Term v) {
    return term_mul(g, v, term_mul(g, s, less(g, 1, s)));
}
static Term through_tanh(Gradient *g, Term t, Term v) {
    return term_mul(g, v, less(g, 1, term_unary(g, OP_square, t)));
}

// A function of a gate, used more than once.
static Term active(Gradient *g, OpId op, Term gates, int index, int64_t n) {
    return computed(g, term_unary(g, op, gate(g, gates, index, n)));
}

RULE(lstm_cell) {
    Shape shape = gradient_shape(g, 1);
    int64_t n = shape.dims[shape.rank - 1];
    Term gates = gradient_input(g, 0), up = incoming(g, 0);
    Term i = active(g, OP_sigmoid, gates, 0, n), f = active(g, OP_sigmoid, gates, 1, n);
    Term cell = active(g, OP_tanh, gates, 2, n), o = active(g, OP_sigmoid, gates, 3, n);
    Term tanh_c = computed(g, term_unary(g, OP_tanh, gradient_saved_output(g, 1)));
    Term up_c = term_add(g, incoming(g, 1), through_tanh(g, tanh_c, term_mul(g, up, o)));
    up_c = computed(g, up_c);
    if (gradient_wants(g, 0)) {
        Term up_f = through_sigmoid(g, f, term_mul(g, up_c, gradient_input(g, 1)));
        Term parts[4] = {through_sigmoid(g, i, term_mul(g, up_c, cell)), up_f,
                         through_tanh(g, cell, term_mul(g, up_c, i)),
                         through_sigmoid(g, o, term_mul(g, up, tanh_c))};
        gradient_give(g, 0, term_joined(g, parts, 4));
    }
    gradient_give(g, 1, term_mul(g, up_c, f));
    return g->status;
}

RULE(gru_cell) {
    Shape shape = gradient_shape(g, 2);
    int64_t n = shape.dims[shape.rank - 1];
    Term x = gradient_input(g, 0), hidden = gradient_input(g, 1), h = gradient_input(g, 2);
    Term up = gradient_up(g), hidden_n = gate(g, hidden, 2, n);
    Term r = term_unary(g, OP_sigmoid, term_add(g, gate(g, x, 0, n), gate(g, hidden, 0, n)));
    Term z = term_unary(g, OP_sigmoid, term_add(g, gate(g, x, 1, n), gate(g, hidden, 1, n)));
    r = computed(g, r);
    z = computed(g, z);
    Term next = term_unary(g, OP_tanh, term_add(g, gate(g, x, 2, n), term_mul(g, r, hidden_n)));
    next = computed(g, next);
    Term up_z = through_sigmoid(g, z, term_mul(g, up, term_sub(g, h, next)));
    Term up_n = computed(g, through_tanh(g, next, term_mul(g, up, less(g, 1, z))));
    Term up_r = computed(g, through_sigmoid(g, r, term_mul(g, up_n, hidden_n)));
    up_z = computed(g, up_z);
    gradient_give(g, 0, term_joined(g, (Term[]){up_r, up_z, up_n}, 3));
    if (gradient_wants(g, 1))
        gradient_give(g, 1, term_joined(g, (Term[]){up_r, up_z, term_mul(g, up_n, r)}, 3));
    gradient_give(g, 2, term_mul(g, up, z));
    return g->status;
}
