// Reductions: every OP_REDUCE row.
#ifndef TENSOR_REDUCE_H
#define TENSOR_REDUCE_H

#include "tensor/op.h"

Status op_run_reduction(const OpCall *call, Tensor **results);

#endif
