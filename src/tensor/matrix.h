// The matrix product for the operations that contain one.
#ifndef TENSOR_MATRIX_H
#define TENSOR_MATRIX_H

#include "tensor/compose.h"

// a @ b by the rules of matmul: rank-1 operands are a row and a column, leading dimensions
// broadcast, one operand may be quantised. The call names the op in failures.
Status matrix_product(const OpCall *call, Tensor *a, Tensor *b, Tensor **out) MUST_USE;

#endif
