// What operations ask of the shapes of their operands, and the shapes they give. Each fails as the
// operation would, in the words that a script's author reads; a size that is not known never makes
// one fail. `op` is the operation's name in messages.
#ifndef SHAPE_RULES_H
#define SHAPE_RULES_H

#include "shape/shape.h"

// --- products (products.c)
// a [.., m, k] by b [.., k, n]; a vector is a row on the left, a column on the right.
Status shape_matmul(const char *op, const TensorType *a, const TensorType *b, Shape *out) MUST_USE;
Status shape_bmm(const TensorType *a, const TensorType *b) MUST_USE;
// x [.., in], weight [out, in], bias NULL or [out].
Status shape_linear(const char *op, const TensorType *x, const TensorType *weight,
                    const TensorType *bias, Shape *out) MUST_USE;
Status shape_outer(const TensorType *a, const TensorType *b, Shape *out) MUST_USE;
Status shape_needs_matrix(const char *op, const TensorType *x) MUST_USE;
Status shape_needs_square(const char *op, const TensorType *x) MUST_USE;
// The right side b of a system with the matrices a [.., n, n]: [n] or [.., n, k].
Status shape_solve_side(const TensorType *a, const TensorType *b) MUST_USE;

// --- views and joins (views.c)
// `wanted` may hold one -1, the rest; *out is what it then is.
Status shape_reshape(const TensorType *x, const Shape *wanted, Shape *out) MUST_USE;
// *order: the dims as 0..rank-1.
Status shape_permute(const TensorType *x, const Shape *dims, Shape *order) MUST_USE;
// `wanted` may hold -1 where x's own size stays.
Status shape_broadcast_to(const TensorType *x, const Shape *wanted, Shape *out) MUST_USE;
Status shape_unsqueeze(const TensorType *x, int64_t dim, int *at) MUST_USE;
// An index along `dim` of x, from -size up to size.
Status shape_select(const TensorType *x, int dim, int64_t index) MUST_USE;
// Whether x can follow `first`.
Status shape_concat(const TensorType *first, const TensorType *x, int dim) MUST_USE;
Status shape_stack(const TensorType *first, const TensorType *x) MUST_USE;
Status shape_split(const TensorType *x, int dim, const int64_t *sizes, size_t count) MUST_USE;
// [rows, columns] only.
Status shape_slice_row(const TensorType *x) MUST_USE;

// --- layers of networks (layers.c)
// Height and width of an option.
typedef struct Pair {
    int64_t h, w;
} Pair;

typedef struct Convolution {
    Pair stride, padding, dilation;
    int64_t groups;
} Convolution;

typedef struct Pooling {
    Pair size, stride, padding;
} Pooling;

// x's trailing dimensions are those of `trailing`, which `what` names.
Status shape_trailing(const char *op, const TensorType *x, const Shape *trailing,
                      const char *what) MUST_USE;
// The same of what broadcasts to x.
Status shape_stretched(const char *op, const TensorType *x, const Shape *trailing,
                       const char *what) MUST_USE;
Status shape_per_channel(const char *op, const TensorType *x, const TensorType *weight,
                         const char *what) MUST_USE;
Status shape_groups(const TensorType *x, int64_t groups) MUST_USE;
// Of a recurrent cell: `gates` has the state's shape, its last dimension `count` times as long.
Status shape_gates(const char *op, const char *name, const TensorType *gates,
                   const TensorType *state, int count) MUST_USE;
// Ranks of a convolution's operands; `line`: one dimension instead of two.
Status shape_convolution_ranks(const char *op, bool line, const TensorType *x,
                               const TensorType *weight) MUST_USE;
// x [N, C, H, W], weight [O, C / groups, KH, KW], bias NULL or [O].
typedef struct Convolved {
    const TensorType *x, *weight, *bias;
} Convolved;
// *out [N, O, H', W'].
Status shape_convolve(const char *op, const Convolved *operands, const Convolution *options,
                      Shape *out) MUST_USE;
// x [N, C, H, W].
Status shape_pool(const char *op, const TensorType *x, const Pooling *options, Shape *out) MUST_USE;

// --- attention (attention.c)
// q [.., sq, hq, d], k [.., sk, hkv, d], v [.., sk, hkv, dv], mask NULL or broadcast to the scores
// [.., hq, sq, sk]; *leading is what their leading dimensions broadcast to.
Status shape_attention_sinks(const TensorType *q, const TensorType *sinks);
Status shape_attention(const TensorType *q, const TensorType *k, const TensorType *v,
                       const TensorType *mask, Shape *leading) MUST_USE;
// q, k, v, decay, state, beta; the last two may be NULL. out: of the result.
Status shape_linear_attention(const TensorType *const inputs[6], Shape *out) MUST_USE;
Status shape_rope(const TensorType *x, int64_t rotary) MUST_USE; // rotary SIZE_UNKNOWN: any
Status shape_rope_table(const TensorType *x, const TensorType *table, int64_t rotary,
                        int64_t offset) MUST_USE;
Status shape_repeat_heads(const TensorType *x) MUST_USE;
// inputs: q [sq, E], k and v [sk, Ekv], weight.
Status shape_cached_attention(const TensorType *const *inputs, int64_t heads) MUST_USE;

// --- indexes and losses (indexes.c)
Status shape_embedding(const TensorType *table) MUST_USE;
// An index of x's rank, no larger than x but along dim.
Status shape_gather(const char *op, const TensorType *x, int dim, const TensorType *index) MUST_USE;
Status shape_gather_rank(const char *op, const TensorType *x, const TensorType *index) MUST_USE;
Status shape_index_line(const TensorType *index) MUST_USE;
Status shape_scatter_source(const char *op, const TensorType *source, const TensorType *x,
                            const Shape *selected) MUST_USE;
// An index of so many dimensions on x.
Status shape_index_rank(const TensorType *x, int dimensions, int ellipses) MUST_USE;
// A mask on the dimensions of x from `first` on.
Status shape_mask(const TensorType *x, int first, const TensorType *mask) MUST_USE;
Status shape_assign(const TensorType *target, const Shape *part, const TensorType *value) MUST_USE;
// Operands of one shape, or one of them a number.
Status shape_same(const char *op, const TensorType *x, const TensorType *y) MUST_USE;
// One class for each row of logits.
Status shape_classes(const char *op, const TensorType *logits, const TensorType *target) MUST_USE;
// A weight for each class of logits.
Status shape_class_weights(const char *op, const TensorType *logits,
                           const TensorType *weight) MUST_USE;
// What becomes of the losses of elements or rows.
typedef enum Reduction { REDUCTION_MEAN, REDUCTION_SUM, REDUCTION_NONE } Reduction;
Status shape_reduction(const char *op, const char *name, size_t length, Reduction *out) MUST_USE;

#endif
