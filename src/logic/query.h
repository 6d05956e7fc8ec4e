// Questions to a store.
#ifndef LOGIC_QUERY_H
#define LOGIC_QUERY_H

#include "logic/store.h"

// How many rows a relation has; those of a closure are counted without being made.
Status store_count(Store *store, Relation *relation, uint64_t *out) MUST_USE;
// Whether a row is in a relation, of which only what it rests on is made.
Status store_has(Store *store, Relation *relation, const Datum *values, bool *out) MUST_USE;
// The answers to a rule without a relation: a row of its head's variables each. The
// initial values of variables that have one; CONSTANT_NONE for the others. Free with table_free.
Status store_query(Store *store, Rule *query, const Datum *initial, Table **out) MUST_USE;

#endif
