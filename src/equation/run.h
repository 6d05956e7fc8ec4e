// One evaluation of an equation.
#ifndef EQUATION_RUN_H
#define EQUATION_RUN_H

#include "equation/named.h"
#include "eval/code.h"

typedef struct EquationRun {
    Frame *frame;
    const Equation *plan;
    Value *values; // of plan->values
    Named *terms;  // of plan->terms: with the indexes of their positions
    EquationSizes sizes;
    int64_t step; // the number that the index of the plan's loop has
    Span at;      // of the part that is evaluated, for errors
} EquationRun;

// equation.c: STATUS_SHAPE when the size of one of the indexes is not known.
Status require_sizes(EquationRun *run, IndexSet indexes) MUST_USE;
// loop.c: the right side for each step of the plan's loop.
Status loop_evaluate(EquationRun *run, Named *out) MUST_USE;
// equation.c: reads a term by index arithmetic and takes diagonals.
Status place_term(EquationRun *run, const EquationTerm *term, Named *named) MUST_USE;
// tree.c: the value of a node, with its indexes.
Status tree_evaluate(EquationRun *run, const EquationNode *node, Named *out) MUST_USE;

#endif
