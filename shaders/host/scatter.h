// What scatter.comp is given.
#ifndef HOST_SCATTER_H
#define HOST_SCATTER_H

#include "walk.h"

// In order without sorting; keys of indexes that are to be sorted; and of sorted lists the last
// number of each place, sums of tiles, and the sums' ends.
SHARED_NUMBER(SCATTER_DIRECT, 0)
SHARED_NUMBER(SCATTER_KEYS, 1)
SHARED_NUMBER(SCATTER_LAST, 2)
SHARED_NUMBER(SCATTER_SUMS, 3)
SHARED_NUMBER(SCATTER_ENDS, 4)

CONSTANTS(ScatterConstants)
    WALK_CONSTANTS
    CONSTANT(1, uint32_t, DTYPES, 0) // source, out, index
    CONSTANT(2, uint32_t, KIND, 0)
    CONSTANT(3, bool, ADD, false)
    CONSTANT(4, bool, SLICES, false)
    CONSTANT(5, uint32_t, WIDTH, 1) // of items: 1 or 4
CONSTANTS_END(ScatterConstants, 6)

PUSHED(ScatterPush)
    ARGUMENTS(WalkStrides, shape) // where WIDTH is 4, of four neighbours
    uint64_t in_address, out_address, index_address;
    int64_t size;
    int64_t out_stride, in_stride, index_stride; // along the dim
    uint32_t count, length;                      // others, or fours of them; indexes of a list
    uint64_t keys, places, partials;             // sorted lists; [2, tiles, others] sums
    uint32_t tiles, lanes;                       // of a list; threads of an end
    uint32_t first_other, unused;                // of those that this dispatch has lists of
END(ScatterPush, 104)

#endif
