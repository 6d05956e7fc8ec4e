// The sizes of an equation's indexes.
#ifndef CHECK_EQUATION_SIZES_H
#define CHECK_EQUATION_SIZES_H

#include "check/equation.h"
#include "shape/shape.h"

typedef struct EquationSizes {
    // given
    const Equation *equation;
    const Shape *dims;     // of each term: a size for each position, those of slices cut already
    const int64_t *values; // of Equation.values, as integers
    // found; a size that is not known is SIZE_UNKNOWN
    int64_t sizes[INDEXES_MAX];
    int from[INDEXES_MAX]; // the term that gave the size
    int failed;            // the term that a failure is about
    int index;             // the index that it disagrees on; -1: none
} EquationSizes;

// STATUS_SHAPE: two terms disagree; STATUS_INDEX: index arithmetic leaves a tensor.
Status equation_sizes(EquationSizes *sizes) MUST_USE;
// STATUS_SHAPE: the tensor has another number of dimensions than the term has indexes.
Status equation_rank(const EquationTerm *term, const TensorType *type) MUST_USE;

#endif
