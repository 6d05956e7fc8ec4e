// Relations that are the transitive closure of another: questions with one end given are answered
// by going through its edges once.
#ifndef LOGIC_CLOSURE_H
#define LOGIC_CLOSURE_H

#include "logic/store.h"

// The relation whose closure this one is, or NULL: two rules, P(X, Z) <- E(X, Z) and one of
// P(X, Z) <- P(X, Y), E(Y, Z) and P(X, Z) <- E(X, Y), P(Y, Z); no facts of its own.
Relation *closure_base(const Relation *relation);
// The same, and also of P(X, Z) <- P(X, Y), P(Y, Z), whose rows come in another order.
Relation *closure_base_of_set(const Relation *relation);
// The rows of the closure of a complete relation from or to what is given (CONSTANT_NONE: open), in
// the order of naive evaluation.
Status closure_rows(Store *store, const Relation *base, const Datum *values, Table **out) MUST_USE;

#endif
