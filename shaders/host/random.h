// What random.comp is given.
#ifndef HOST_RANDOM_H
#define HOST_RANDOM_H

#include "language.h"

CONSTANTS(RandomConstants)
    CONSTANT(0, uint32_t, OUT_DTYPE, 0)
    CONSTANT(1, uint32_t, DISTRIBUTION, 0)
CONSTANTS_END(RandomConstants, 2)

PUSHED(RandomPush)
    uint64_t out_address, count, key, counter;
    REAL(a) // low and width; mean and deviation; low and range
    REAL(b)
    REAL(highest)       // of uniform numbers
    uint64_t threshold; // of bernoulli: of 53 random bits
END(RandomPush, 64)

#endif
