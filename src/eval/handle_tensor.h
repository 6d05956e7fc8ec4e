// Subscripts of a handle that is a tensor.
#ifndef EVAL_HANDLE_TENSOR_H
#define EVAL_HANDLE_TENSOR_H

#include "eval/subscripts.h"

// object[subscripts] as value_index, and the store of a part.
Value handle_tensor_index(Handle *handle, const SubscriptValue *subscripts, int count);
Status handle_tensor_set(Handle *handle, const SubscriptValue *subscripts, int count,
                         OpInput value) MUST_USE;

#endif
