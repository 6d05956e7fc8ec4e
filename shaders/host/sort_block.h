// What sort_block.comp is given.
#ifndef HOST_SORT_BLOCK_H
#define HOST_SORT_BLOCK_H

#include "language.h"

SHARED_NUMBER(SORT_COUNT, 0)
SHARED_NUMBER(SORT_MOVE, 1)
SHARED_NUMBER(SORT_WHOLE, 2)
SHARED_NUMBER(SORT_EACH, 16) // numbers of a thread

CONSTANTS(SortBlockConstants)
    CONSTANT(0, uint32_t, GROUP, 256)
    CONSTANT(1, uint32_t, SUBGROUPS, 8) // in a workgroup, at most
    CONSTANT(2, uint32_t, KIND, 0)
    CONSTANT(3, uint32_t, DTYPE, 0) // of numbers
    CONSTANT(4, bool, DESCENDING, false)
    CONSTANT(5, bool, FIRST, false) // `keys` are numbers
    CONSTANT(6, bool, LAST, false)  // the output: numbers and places of int64
    CONSTANT(7, bool, NARROW, true) // subgroups of at most 32
CONSTANTS_END(SortBlockConstants, 8)

PUSHED(SortBlockPush)
    uint64_t keys, places;         // places 0: elements are in order
    uint64_t out_keys, out_places; // 0: not wanted
    uint64_t counts;      // [rows, DIGITS, blocks]: counts, or their running sums over blocks
    uint64_t numbers;     // of LAST: what is sorted, `numbers_count` a row
    uint32_t rows, count; // count: of a row
    uint32_t blocks;      // of a row; 1 where a block has `together` rows
    uint32_t together;
    uint32_t wanted;    // first numbers of each block, or row
    uint32_t out_count; // length of a row of the output
    uint32_t first_bit, end_bit;
    uint32_t numbers_count;
    uint32_t unused;
END(SortBlockPush, 88)

#endif
