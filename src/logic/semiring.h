// How values are combined: along a way, and over several ways.
#ifndef LOGIC_SEMIRING_H
#define LOGIC_SEMIRING_H

typedef enum Semiring {
    SEMIRING_REAL,
    SEMIRING_BOOL,
    SEMIRING_COUNT,
    SEMIRING_MAX_PROD,
    SEMIRING_MIN_PLUS,
    SEMIRING_PROB, // as if ways were independent
    SEMIRING_LOG,
    SEMIRING_EXACT,  // of the worlds in which each weighted fact holds or does not
    SEMIRING_TOPK,   // the same, of the best ways alone
    SEMIRING_SAMPLE, // the same, by drawing worlds
} Semiring;

// Whether weights are probabilities of facts that hold or do not.
static inline int semiring_has_worlds(Semiring semiring) {
    return semiring >= SEMIRING_EXACT;
}

#endif
