// What check_index.comp is given.
#ifndef HOST_CHECK_INDEX_H
#define HOST_CHECK_INDEX_H

#include "walk.h"

CONSTANTS(CheckIndexConstants)
    WALK_CONSTANTS
    CONSTANT(1, uint32_t, INDEX_DTYPE, 0)
CONSTANTS_END(CheckIndexConstants, 2)

PUSHED(CheckIndexPush)
    ARGUMENTS(WalkStrides, shape)
    uint64_t index_address, result;
    int64_t size;
    uint32_t count, unused;
END(CheckIndexPush, 32)

#endif
