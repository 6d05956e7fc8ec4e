// Keeping complete relations complete while facts come and go: what a change adds and takes away is
// followed through the rules. The height of a row is the round of naive evaluation that finds it:
// 0 for facts, else one more than the highest row of its stratum that its lowest proof rests on. So
// a row that loses a proof is kept by another only when that rests on lower rows alone, and no
// cycle keeps itself. A row that a new proof would make lower stays where it is, which keeps that
// true, until an order is asked for. The order of rows is not kept (order.h makes it then).
#ifndef LOGIC_UPKEEP_H
#define LOGIC_UPKEEP_H

#include "logic/store.h"

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
