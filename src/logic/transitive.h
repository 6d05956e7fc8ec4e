// The transitive law of an equivalence, round by round.
#ifndef LOGIC_TRANSITIVE_H
#define LOGIC_TRANSITIVE_H

#include "logic/collect.h"
#include "logic/store.h"

typedef struct Transitive Transitive;

Transitive *transitive_new(Store *store, const Relation *relation);
void transitive_free(Transitive *transitive); // NULL is allowed
// Collects what the first `high` rows of the relation give with those that the last call did not
// see. *steps: pairs of rows gone through.
Status transitive_round(Transitive *transitive, uint32_t high, Collector *collector,
                        uint64_t *steps) MUST_USE;

#endif
