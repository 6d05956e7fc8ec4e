// Keeping complete relations complete while facts come and go: what a change adds and takes away is
// followed through the rules. Every row has a height, and a proof from rows of its component that
// are lower, so that no cycle keeps itself: 0 for facts, at first the round of naive evaluation
// that finds it. A row that loses its proof is raised above another one, in between two rounds, and
// what lies above that stays as it is. Heights are rounds again once an order is asked for
// (rounds.c); the order of rows is not kept (order.h makes it then).
#ifndef LOGIC_UPKEEP_H
#define LOGIC_UPKEEP_H

#include "logic/store.h"

#define HEIGHT_NONE UINT64_MAX
static inline Height height_of_round(uint32_t round) {
    return (Height)round << 32;
}
// Whether it may be that of a round; else it lies in between.
static inline bool height_is_round(Height height) {
    return (uint32_t)height == 0;
}

// A fact comes (`was`: false) or goes. Before the table changes.
void relation_touch(Store *store, Relation *relation, const Datum *values, bool was);
// Brings every complete relation up to date, or forgets it where that would cost more than to make
// it anew. A failure is an interrupt.
Status store_settle(Store *store) MUST_USE;
// Heights become the rounds of naive evaluation; relations where that would cost more than to make
// them anew are forgotten. A failure is an interrupt.
Status store_tighten(Store *store) MUST_USE;
// The heights of a complete relation's rows are there.
void relation_measure(Relation *relation);
void relation_compact(Relation *relation); // dead rows go, the others keep their heights

#endif
