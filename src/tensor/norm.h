// Normalisation over trailing dimensions, for its row and its gradient.
#ifndef TENSOR_NORM_H
#define TENSOR_NORM_H

#include "tensor/op.h"

// What the tape keeps of it.
typedef struct LayerNormKept {
    int count; // of the trailing dimensions
    double eps;
} LayerNormKept;
// inputs: x, and weight and bias or NULL, floating; the result has x's shape and dtype. `call` is
// for messages.
Status layer_norm_kernel(const OpCall *call, Tensor *const *inputs, const LayerNormKept *kept,
                         Tensor **out) MUST_USE;

#endif
