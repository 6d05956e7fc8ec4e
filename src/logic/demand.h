// Goal-directed evaluation: of a relation only the rows that a query with some given values can
// reach, in the order that complete evaluation would give them.
#ifndef LOGIC_DEMAND_H
#define LOGIC_DEMAND_H

#include "logic/store.h"

typedef struct Demand Demand;

// The rows of a relation with these values; those that are CONSTANT_NONE are open. NULL through
// *out: complete evaluation is the way. The relation is not complete yet; the store is analysed.
Status demand_evaluate(Store *store, Relation *relation, const Datum *values,
                       Demand **out) MUST_USE;
// The same, never without rules and rounds, which proofs go by.
Status demand_evaluate_rules(Store *store, Relation *relation, const Datum *values,
                             Demand **out) MUST_USE;
// A relation whose rows are those (and others that they rest on).
Relation *demand_relation(const Demand *demand);
void demand_free(Demand *demand); // NULL is allowed

#endif
