// Why something holds, and why not: proofs are found anew from the rounds of evaluation, which tell
// what was there before a row was; nothing is kept for them.
#ifndef LOGIC_PROOF_H
#define LOGIC_PROOF_H

#include "logic/store.h"

// The proofs of rows, which hold and have these values where they are not CONSTANT_NONE: a line for
// each thing that one rests on, indented below what rests on it. A row is proved once; further down
// its name stands alone.
Status store_prove(Store *store, Relation *relation, const Datum *values, const Table *rows,
                   Text *out) MUST_USE;
// For each rule the first goal that nothing satisfies. Values that are CONSTANT_NONE are open.
Status store_refute(Store *store, Relation *relation, const Datum *values, Text *out) MUST_USE;
void proof_indent(uint32_t level, Text *out); // of a line; 1: the first
// Relation(a, b), with `_` for CONSTANT_NONE.
void atom_print(const Store *store, const Relation *relation, const Datum *values, Text *out);
// The rule as it is written, on one line.
void rule_print(const Rule *rule, Text *out);
// The goal as it is written, with names of variables; values that an argument computes are `_`.
void goal_print_open(const Store *store, const Rule *rule, const Goal *goal, Text *out);

#endif
