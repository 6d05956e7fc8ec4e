// Mixed precision: while it is set, what is recorded of products, convolutions and attention is
// computed in 16 bits, and what sums, exponentiates or normalises in float32. Parameters keep their
// dtype; gradients come back through the casts.
#ifndef TENSOR_PRECISION_H
#define TENSOR_PRECISION_H

#include "tensor/op.h"

// DTYPE_COUNT: operations take what they are given. Returns what was set.
DType precision_set(DType dtype);
// Runs a call by `apply` with its operands as the precision wants them.
Status precision_apply(const OpCall *call, Tensor **outputs,
                       Status (*apply)(const OpCall *call, Tensor **outputs)) MUST_USE;

#endif
