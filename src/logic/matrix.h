// Relations as dense bit matrices: how many pairs a relation has whose rules are chains of
// relations of two columns, the relation itself at most once in each, as in the same generation of
// a tree.
#ifndef LOGIC_MATRIX_H
#define LOGIC_MATRIX_H

#include "logic/store.h"

// *done: false where the rules are others, or the matrices would take more than the store allows.
// What lies below is made complete.
Status matrix_count(Store *store, Relation *relation, uint64_t *out, bool *done) MUST_USE;

#endif
