// Reductions of lists and tuples of plain numbers.
#ifndef EVAL_NUMBERS_H
#define EVAL_NUMBERS_H

#include "value/builtin.h"

// Computes the call in int64 and float64 on the host, for a plain number; false when the row is no
// reduction to one number, or what it is given is not a flat list or tuple of plain numbers.
bool numbers_reduce(const BuiltinCall *call, Value *result);

#endif
