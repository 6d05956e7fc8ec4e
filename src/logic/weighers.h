// The ways of weighing answers: exact.c, topk.c, worlds.c, and the best ways, best.c.
#ifndef LOGIC_WEIGHERS_H
#define LOGIC_WEIGHERS_H

#include "logic/weigh.h"

// exact.c: every world counts, by decision diagrams. STATUS_VALUE: they grow too large.
Status weigh_exact(Weighing *weighing) MUST_USE;
// topk.c: the worlds of the best ways.
Status weigh_topk(Weighing *weighing) MUST_USE;
// worlds.c: drawn worlds.
Status weigh_sample(Weighing *weighing) MUST_USE;
// topk.c: weigh_best by worlds.
Status weigh_best_worlds(Weighing *weighing, BestWayFound *found, void *context) MUST_USE;
// best.c: the rows on the way, each above those that it rests on.
void way_print(const Store *store, const BestWay *way, const double *weights, Text *out);

#endif
