// Goal-directed evaluation: of a relation only the rows that a query with some given values can
// reach, in the order that complete evaluation would give them.
#ifndef LOGIC_DEMAND_H
#define LOGIC_DEMAND_H

#include "logic/seek.h"

typedef struct Demand Demand;

// The rows of a relation that matter to a question: at least those with its values. NULL through
// *out: complete evaluation is the way. The relation is not complete yet; the store is analysed.
Status demand_evaluate(Store *store, const Question *question, Demand **out) MUST_USE;
// Those with these values, never without rules and rounds, which proofs go by.
Status demand_evaluate_rules(Store *store, Relation *relation, const Datum *values,
                             Demand **out) MUST_USE;
// A relation whose rows are those (and others that they rest on).
Relation *demand_relation(const Demand *demand);
uint32_t demand_rows_made(const Demand *demand); // to have those
void demand_free(Demand *demand);                // NULL is allowed

#endif
