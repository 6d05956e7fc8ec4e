// What an equation such as "bij,bjk->bik" says of its operands.
#ifndef SHAPE_EINSUM_H
#define SHAPE_EINSUM_H

#include "shape/shape.h"

// Letters are labels 0..51; the dimensions of an ellipsis, counted from its right end, follow.
enum { LETTERS = 52, LABELS_MAX = LETTERS + RANK_MAX, OPERANDS_MAX = 16 };

typedef struct Labels {
    int count;
    int items[RANK_MAX];
} Labels;

typedef struct EinsumPlan {
    // given
    const char *equation;
    int n_terms;
    TensorType types[OPERANDS_MAX];
    // read
    Labels labels[OPERANDS_MAX], output;
    int ellipsis_rank;         // the longest ellipsis of an operand
    int64_t sizes[LABELS_MAX]; // -1: not seen
    int seen_in[LABELS_MAX];   // the operand that gave the size
} EinsumPlan;

// STATUS_VALUE: the equation is none; STATUS_ARITY: it has another number of operands;
// STATUS_SHAPE: an operand does not fit it.
Status einsum_parse(EinsumPlan *plan) MUST_USE;
Shape einsum_shape(const EinsumPlan *plan);
char einsum_letter(int label);

#endif
