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

// The best way to an answer: of each node the number of its instance + 1 on that way, 0 where it is
// a fact, NO_WAY where it does not hold there. The weight is that of the way alone.
enum { NO_WAY = UINT32_MAX };
typedef struct BestWay {
    const Ground *ground;
    uint32_t answer;
    double weight;
    const uint32_t *ways;
} BestWay;
typedef Status BestWayFound(void *context, const BestWay *way);
// Calls `found` for each answer in its order. STATUS_VALUE where the semiring prefers no way.
Status weigh_best(Weighing *weighing, BestWayFound *found, void *context) MUST_USE;
#endif
