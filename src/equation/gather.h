// Elements of a tensor with named dimensions at computed places.
#ifndef EQUATION_GATHER_H
#define EQUATION_GATHER_H

#include "equation/named.h"

// The dimension at `dim` read at the places of a sum of indexes, which it is replaced by. `sizes`
// are complete.
Status named_gather(Named *named, int dim, const Position *position, const EquationSizes *sizes,
                    Tensor **out) MUST_USE;

#endif
