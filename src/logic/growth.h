// Recursion that makes new values in every round.
#ifndef LOGIC_GROWTH_H
#define LOGIC_GROWTH_H

#include "logic/store.h"

// Whether arithmetic of the rule gives a column of its head values that lead to further ones, with
// nothing in the rules between that bounds them. The store is analysed. Rules that go along facts,
// as from parents to children, end where those have no cycle: `surely` leaves them out.
bool rule_grows(const Store *store, const Rule *rule, bool surely, uint32_t *column);
// The rule of the program whose place this one has, as what narrow.c and demand.c make of it does,
// if it grows; or NULL.
const Rule *rule_endless(const Store *store, const Rule *rule);

#endif
