// Declarations of tensors: values that take the declared shape.
#ifndef EVAL_DECLARED_H
#define EVAL_DECLARED_H

#include "eval/annotations.h"
#include "eval/pattern.h"

typedef struct DeclareCode {
    Code head;
    const Annotation *type;
    const Code *value; // NULL: zeros, or no value yet
    const VariableCode *variable;
    const PatternCode *pattern; // of let with several names
    const char *name;
    bool learnable;
} DeclareCode;

// The initialiser of a tensor declaration. `zeros()`, `ones()`, `random_normal(m, s)` take the
// declared shape. NULL gives NULL.
const Code *lower_declared_value(Lowering *lowering, const Node *node, const Annotation *type);

// A tensor (taken) that is a parameter: the same one, or a copy where it is shared.
Value tensor_make_parameter(Value value);

#endif
