// What gather.comp is given.
#ifndef HOST_GATHER_H
#define HOST_GATHER_H

#include "walk.h"

CONSTANTS(GatherConstants)
    WALK_CONSTANTS
    CONSTANT(1, uint32_t, DTYPES, 0) // out, index, in
    CONSTANT(2, uint32_t, WIDTH, 1)  // 1 or 4
    CONSTANT(3, bool, OWN, false)    // four neighbours have each an index
CONSTANTS_END(GatherConstants, 4)

PUSHED(GatherPush)
    ARGUMENTS(WalkStrides, shape) // where WIDTH is 4, of fours
    uint64_t in_address, out_address, index_address;
    int64_t size, stride;          // of the dim
    int64_t in_apart, index_apart; // from one of four to the next
    uint32_t count, unused;
END(GatherPush, 64)

#endif
