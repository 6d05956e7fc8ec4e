// Assignments to parameters: tensors with identity, which every holder sees change.
#ifndef EVAL_PARAMETER_H
#define EVAL_PARAMETER_H

#include "value/value.h"

bool value_is_parameter(Value value);
// Before a write: the value loses its tape (only then can be told whether anything else holds the
// parameter). Fails while something recorded still reads the parameter.
Status parameter_prepare_write(const Tensor *parameter, Value *value) MUST_USE;
// The parameter takes the numbers of the value over, which loses its tape; `what` names it.
Status parameter_write(Tensor *parameter, Value *value, const char *what) MUST_USE;

#endif
