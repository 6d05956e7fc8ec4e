// Elementwise operations, and what map.c shares with other operations.
#ifndef TENSOR_MAP_H
#define TENSOR_MAP_H

#include "tensor/op.h"

// Runs the formula of a MAP row: dtypes by its rule, shapes by broadcasting, in place where an
// input is donated. Inputs are materialised here.
Status map_apply(const OpRow *op, const OpInput *inputs, int n, Tensor **out) MUST_USE;

// Called when a binary operation between [n] and [n, 1] (or batched forms) made something larger
// than both; the interpreter warns once per source line. NULL: nobody wants to know.
void op_set_broadcast_warning(void (*warn)(const char *op_name, const Shape *x, const Shape *y));

#endif
