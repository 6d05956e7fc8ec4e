// What stands for + and * in the equations of a program over a semiring.
#ifndef EQUATION_SEMIRING_H
#define EQUATION_SEMIRING_H

#include "equation/named.h"
#include "eval/code.h"

// Whether its sum is not +: then Einstein sums are joins and reductions.
bool semiring_adds(Semiring semiring);
// The operator that stands for one as it is written.
Operator semiring_operator(Semiring semiring, Operator op);
double semiring_zero(Semiring semiring);
int semiring_one(Semiring semiring);
// The sum of two values; takes them.
Value semiring_add(Semiring semiring, const Operands *operands);
// Sums over the indexes of the set; replaces the value.
Status semiring_reduce(Semiring semiring, Named *named, IndexSet reduced) MUST_USE;
// Whether a value is there at all: tensors and numbers as bools. Takes the value.
Value semiring_holds(Value value);

#endif
