// Elementwise operations, and what map.c shares with other operations.
#ifndef TENSOR_MAP_H
#define TENSOR_MAP_H

#include "tensor/op.h"

// Runs the formula of a MAP row: dtypes by its rule, shapes by broadcasting, in place where an
// input is donated. Inputs are materialised here.
Status map_apply(const OpRow *op, const OpInput *inputs, int n, Tensor **out) MUST_USE;

// A literal's numbers in another dtype, no longer a literal.
Status tensor_from_host(const Tensor *literal, DType dtype, Tensor **out) MUST_USE;

Status op_fail_quantised(const char *op_name, const Tensor *x) MUST_USE;
Status op_fail_devices(const char *op_name, const Tensor *x, const Tensor *y) MUST_USE;

#endif
