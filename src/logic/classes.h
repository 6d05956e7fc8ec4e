// Equivalences by union-find: how many pairs they have, and whether two members are equivalent,
// without making any pair.
#ifndef LOGIC_CLASSES_H
#define LOGIC_CLASSES_H

#include "logic/store.h"

// Whether facts alone say what is equivalent: no rule but the laws gives pairs.
bool classes_fit(const Relation *relation);
Status classes_count(Store *store, Relation *relation, uint64_t *out) MUST_USE;
Status classes_join(Store *store, Relation *relation, const Datum *values, bool *out) MUST_USE;
// Whether all pairs are few enough to be made, as far as their number is known before.
Status classes_are_small(Store *store, Relation *relation, bool *out) MUST_USE;
void classes_free(Classes *classes); // NULL is allowed

#endif
