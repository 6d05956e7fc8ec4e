// What gradient rules are written with. A rule builds the gradients of inputs as terms; elementwise
// terms are not computed one by one but as programs of the map kernel, unless their own gradient is
// recorded. After a failure every function is harmless, so rules need no checks.
#ifndef TENSOR_GRADIENT_GRADIENT_H
#define TENSOR_GRADIENT_GRADIENT_H

#include "tensor/compose.h"
#include "tensor/gradient/record.h"

enum { GRADIENT_TERMS_MAX = 96 };

typedef struct Term {
    int16_t slot; // 0: none
} Term;

typedef enum TermKind { TERM_TENSOR, TERM_NUMBER, TERM_MAP } TermKind;
typedef struct TermSlot {
    TermKind kind;
    Tensor *tensor; // owned
    Scalar number;
    OpId op; // of a map, computed or not; OP_COUNT: it is none
    Term operands[3];
} TermSlot;

typedef struct GradientInput {
    TapeNode *producer; // NULL: needs no gradient
    int output;         // which of the producer's
    Tensor *saved;      // owned, without a node of its own; NULL unless the rule asked for it
    Scalar number;      // of a plain number
    bool is_tensor;
    DType dtype;
    Shape shape;
} GradientInput;

struct Gradient {
    Status status;
    TapeNode *node;
    const GradientInfo *info;
    const OpAttributes *attributes;
    const void *kept;        // of tape_keep
    Tensor *const *incoming; // gradients of the results, NULL where none arrived
    GradientInput *inputs;
    int n_inputs, n_terms;
    Tensor **results; // per input, NULL until given
    TermSlot terms[GRADIENT_TERMS_MAX];
};

bool gradient_wants(const Gradient *g, int input);
// The gradient of the result (of the first one), its input and itself.
Term gradient_up(Gradient *g);
Term gradient_input(Gradient *g, int input);
Term gradient_result(Gradient *g);
Term gradient_saved_output(Gradient *g, int output);
Shape gradient_shape(const Gradient *g, int input);
// The gradient of an input: summed over what was broadcast, converted to the input's dtype.
void gradient_give(Gradient *g, int input, Term term);
void gradient_fail(Gradient *g, Status status);

Term term_number(Gradient *g, double number);
Term term_own(Gradient *g, Tensor *tensor); // takes the reference
// The same for what a call gave, unless it failed.
Term term_take(Gradient *g, Status status, Tensor *const *tensor);
Term term_map(Gradient *g, OpId op, Term x, Term y, Term z);
bool term_is_number(const Gradient *g, Term term);
// Whether it is a map of maps, none of which is computed yet.
bool term_has_steps(const Gradient *g, Term term);
// The term computed; borrowed, NULL after a failure.
Tensor *term_tensor(Gradient *g, Term term);
Term term_op(Gradient *g, OpId op, const Term *inputs, int n_inputs,
             const OpAttributes *attributes);
Term term_reshape(Gradient *g, Term x, const Shape *shape);
Term term_permute(Gradient *g, Term x, const Shape *order);
Term term_broadcast(Gradient *g, Term x, const Shape *shape);
Term term_transposed(Gradient *g, Term x); // the last two dimensions
// A dimension of size 1 in front of the last `behind` ones; and without it again.
Term term_with_dim(Gradient *g, Term x, int behind);
Term term_without_dim(Gradient *g, Term x, int behind);
Term term_joined(Gradient *g, const Term *pieces, int count); // along the last dimension
// Sums over the marked dimensions, which stay with size 1.
Term term_sum_kept(Gradient *g, Term x, const bool *gone);
Term term_sum_last(Gradient *g, Term x);                 // over the last dimension, kept
Term term_filled(Gradient *g, int input, double number); // the shape and dtype of an input
Shape term_shape(Gradient *g, Term x);
// Whether the rule may use a FUSED kernel: the device has it and nothing is recorded.
bool gradient_has(const Gradient *g, KernelId kernel);
// One kernel from terms, which become contiguous tensors of float32 or wider (integers: of
// int64), to a tensor of the input's shape and that dtype.
typedef struct FusedCall {
    KernelId kernel;
    const KernelOptions *options;
    const Term *inputs;
    int n_inputs, first; // outputs have the shapes of the node's inputs from `first` on
    Term *outputs;
    int n_outputs;
} FusedCall;
void term_fused_all(Gradient *g, const FusedCall *call);
// The same for one result, which the call need not name.
Term term_fused(Gradient *g, FusedCall call);

static inline Term term_add(Gradient *g, Term x, Term y) {
    return term_map(g, OP_add, x, y, (Term){0});
}
static inline Term term_sub(Gradient *g, Term x, Term y) {
    return term_map(g, OP_sub, x, y, (Term){0});
}
static inline Term term_mul(Gradient *g, Term x, Term y) {
    return term_map(g, OP_mul, x, y, (Term){0});
}
static inline Term term_div(Gradient *g, Term x, Term y) {
    return term_map(g, OP_div, x, y, (Term){0});
}
static inline Term term_unary(Gradient *g, OpId op, Term x) {
    return term_map(g, op, x, (Term){0}, (Term){0});
}
static inline Term term_binary(Gradient *g, OpId op, Term x, Term y) {
    return term_map(g, op, x, y, (Term){0});
}
static inline Term term_where(Gradient *g, Term condition, Term x, Term y) {
    return term_map(g, OP_where, condition, x, y);
}
static inline Term term_matmul(Gradient *g, Term a, Term b) {
    Term inputs[2] = {a, b};
    return term_op(g, OP_matmul, inputs, 2, NULL);
}
static inline Term term_scaled(Gradient *g, Term x, double factor) {
    return term_mul(g, x, term_number(g, factor));
}

// Rules below the level of rows.
extern const GradientInfo gradient_matmul, gradient_layer_norm, gradient_gather_slices,
    gradient_convolve, gradient_max_pool, gradient_average_pool, gradient_sort, gradient_attention,
    gradient_concat, gradient_repeat, gradient_rope_tables, gradient_assignment, gradient_device,
    gradient_index_slices, gradient_cross_entropy;

#endif
