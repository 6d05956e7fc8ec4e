// Decision diagrams: Boolean functions of numbered variables, each kept once, so that two are equal
// exactly when their numbers are.
#ifndef LOGIC_DIAGRAM_H
#define LOGIC_DIAGRAM_H

#include "base/memory.h"
#include "base/status.h"

enum { DIAGRAM_FALSE, DIAGRAM_TRUE, DIAGRAM_FAIL = UINT32_MAX }; // FAIL: there are too many

typedef struct Decision {
    uint32_t variable, low, high; // where it is false, where it is true
} Decision;

typedef struct Diagrams {
    VECTOR(Decision) decisions; // 0 and 1: constants
    uint32_t *slots;            // numbers of decisions; 0: empty
    struct Combined *kept;
    size_t slot_count, limit;
} Diagrams;

void diagrams_init(Diagrams *diagrams, size_t limit);
void diagrams_free(Diagrams *diagrams);
uint32_t diagram_variable(Diagrams *diagrams, uint32_t variable);
uint32_t diagram_and(Diagrams *diagrams, uint32_t x, uint32_t y);
uint32_t diagram_not(Diagrams *diagrams, uint32_t x);
uint32_t diagram_or(Diagrams *diagrams, uint32_t x, uint32_t y);
// What variables weigh. Those of a group stand together and exclude each other: `groups` has of
// each the first of its group, itself where it is independent.
typedef struct Chances {
    const double *weights;
    const uint32_t *groups;
} Chances;
// The probability that it is true; adds to `slopes`, one a variable, how it changes with each,
// unless that is NULL.
double diagram_probability(const Diagrams *diagrams, uint32_t x, const Chances *chances,
                           double *slopes);
// STATUS_VALUE, in words.
Status diagrams_fail(const Diagrams *diagrams) MUST_USE;

#endif
