// Runs rows of ops.def on bound values.
#ifndef EVAL_CALL_OP_H
#define EVAL_CALL_OP_H

#include "eval/bind.h"
#include "tensor/op.h"

// Arguments in the order of the signature, as bind.c leaves them; bit i of `donated` is argument
// i's.
Value op_invoke(const BuiltinCall *call, uint32_t donated);
// The short way for calls whose arguments are what the parameters want, without a conversion or a
// choice among forms: false when the call is not of that kind.
bool op_invoke_plain(const Builtin *row, const BuiltinArguments *arguments, Value *result);

#endif
