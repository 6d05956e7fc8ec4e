// dtypes of operations on tensors.
#ifndef TENSOR_DTYPE_H
#define TENSOR_DTYPE_H

#include "tensor/op.h"

// The promoted dtype of n inputs (absent ones are skipped) with the rules for plain numbers and
// rank 0.
DType op_promote(const OpInput *inputs, int n);
// FLOAT32, FLOAT64 or INT64: the type that maps on `dtype` are evaluated in.
DType dtype_compute(DType dtype);

#endif
