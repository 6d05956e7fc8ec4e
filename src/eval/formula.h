// Arithmetic of several operators, and of elements and fields, in one list of steps.
#ifndef EVAL_FORMULA_H
#define EVAL_FORMULA_H

#include "eval/code.h"

// What lower_scalar_binary made as a formula, or where it is none the code itself.
const Code *lower_formula(Lowering *lowering, const Code *general);
// `target = value`, or `target op= value`, where `target` reads what is assigned; else `general`,
// which does the same.
const Code *lower_formula_store(Lowering *lowering, Operator op, const Code *target,
                                const Code *value, const Code *general);
// An if by a comparison; of the branches the first is for false, or NULL.
const Code *lower_formula_branch(Lowering *lowering, const Code *condition,
                                 const Code *const *branches, const Code *general);
// See lower_follow.
bool formula_store_follow(Lowering *lowering, const Code *store, const Code *next);
// What a formula was made from; any other code is itself.
const Code *formula_general(const Code *code);

#endif
