// The gradient rules of rows, one function each.
#ifndef TENSOR_RULES_H
#define TENSOR_RULES_H

#include "tensor/gradient/gradient.h"

// Of every OP_MAP row: the derivatives of its formula, which stand next to it in maps.def.
Status rule_map(Gradient *g);

// Of every OP_REDUCE row with DERIVED: the derivative in its row of reductions.def.
Status rule_reduction(Gradient *g);
// The dimensions that a reduction removed, its input's shape with 1 for them, their elements.
typedef struct ReducedDims {
    bool gone[RANK_MAX];
    Shape kept;
    double count;
} ReducedDims;
ReducedDims gradient_reduced(const Gradient *g);

#define DERIVED(reduction)
#define RULE(function, x, y, z) Status rule_##function(Gradient *g);
#define COMPOSED
#define CONSTANT
#define NO_GRADIENT
#define OP_MAP(id, ...)
#define OP_RUN(id, outputs, shape, gradient, ...) gradient
#define OP_OVERLOAD(id, name, outputs, shape, gradient, ...) gradient
#include "catalog/ops.def"
#undef RULE
#undef DERIVED
#undef COMPOSED
#undef CONSTANT
#undef NO_GRADIENT

#endif
