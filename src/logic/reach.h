// How many pairs the transitive closure of a relation has, without making them.
#ifndef LOGIC_REACH_H
#define LOGIC_REACH_H

#include "logic/store.h"

// Of a complete relation of two columns.
Status reach_count(Store *store, const Relation *base, uint64_t *out) MUST_USE;

#endif
