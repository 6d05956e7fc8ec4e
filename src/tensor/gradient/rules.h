// The gradient rules of rows, one function each.
#ifndef TENSOR_RULES_H
#define TENSOR_RULES_H

#include "tensor/gradient/gradient.h"

#define GRADIENT(id, function, x, y, z) Status rule_##function(Gradient *g);
#define COMPOSED(id)
#define CONSTANT(id)
#define NO_GRADIENT(id)
#include "tensor/gradient/gradients.def"
#undef GRADIENT
#undef COMPOSED
#undef CONSTANT
#undef NO_GRADIENT

#endif
