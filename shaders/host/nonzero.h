// What nonzero.comp is given.
#ifndef HOST_NONZERO_H
#define HOST_NONZERO_H

#include "walk.h"

CONSTANTS(NonzeroConstants)
    WALK_CONSTANTS
    CONSTANT(1, uint32_t, IN_DTYPE, 0)
    CONSTANT(2, bool, WRITES, false)
    CONSTANT(3, bool, FOURS, false) // contiguous, so that four can be read at once
CONSTANTS_END(NonzeroConstants, 4)

PUSHED(NonzeroPush)
    ARGUMENTS(WalkStrides, shape) // in the order of the dims, not merged: RANK is the tensor's
    uint64_t in_address, out_address;
    uint64_t counts; // [blocks]: counts, then their running sums
    int64_t out_row, out_column;
    uint32_t count, unused;
END(NonzeroPush, 48)

#endif
