// What index_put.comp is given.
#ifndef HOST_INDEX_PUT_H
#define HOST_INDEX_PUT_H

#include "walk.h"

CONSTANTS(IndexPutConstants)
    WALK_CONSTANTS
    CONSTANT(1, uint32_t, DTYPES, 0) // source, out
    CONSTANT(2, bool, IMMEDIATE, false)
    CONSTANT(3, uint32_t, WIDTH, 1) // 1 or 4
CONSTANTS_END(IndexPutConstants, 4)

PUSHED(IndexPutPush)
    ARGUMENTS(WalkStrides, shape)                   // where WIDTH is 4, of fours
    uint64_t in_address, out_address, mask_address; // in_address: the bits, when IMMEDIATE
    uint32_t count, unused;
END(IndexPutPush, 32)

#endif
