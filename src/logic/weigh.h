// What the answers of a ground query weigh, and how that changes with the weights.
#ifndef LOGIC_WEIGH_H
#define LOGIC_WEIGH_H

#include "logic/ground.h"
#include "logic/semiring.h"

typedef struct Weighing {
    const Ground *ground;
    Semiring semiring;
    const double *weights; // of each leaf
    int64_t argument;      // of topk and sample
    int64_t iterations_max;
    uint64_t seed;     // of sample
    double *values;    // of each answer: filled
    double *gradients; // of each answer by each leaf: filled, unless NULL
} Weighing;

// weigh.c: STATUS_VALUE where the weights of ways that go in circles have no sum.
Status ground_weigh(Weighing *weighing) MUST_USE;

// exact.c: every world counts, by decision diagrams. STATUS_VALUE: they grow too large.
Status weigh_exact(Weighing *weighing) MUST_USE;
// topk.c: the worlds of the best ways.
Status weigh_topk(Weighing *weighing) MUST_USE;
// worlds.c: drawn worlds.
Status weigh_sample(Weighing *weighing) MUST_USE;

#endif
