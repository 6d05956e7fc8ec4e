// What scatter_add.comp is given.
#ifndef HOST_SCATTER_ADD_H
#define HOST_SCATTER_ADD_H

#include "walk.h"

// Integers into the output; and of floats the start, the small ones, the others, what comes of
// them, and all of it for lists whose places fit shared memory.
SHARED_NUMBER(ADD_INTEGERS, 0)
SHARED_NUMBER(ADD_START, 1)
SHARED_NUMBER(ADD_SMALL, 2)
SHARED_NUMBER(ADD_NUMBERS, 3)
SHARED_NUMBER(ADD_RESULTS, 4)
SHARED_NUMBER(ADD_LISTS, 5)
SHARED_NUMBER(ADD_EACH, 4) // numbers of a thread

CONSTANTS(ScatterAddConstants)
    CONSTANT(0, uint32_t, GROUP, 256)
    CONSTANT(1, uint32_t, RANK, 0)
    CONSTANT(2, uint32_t, DTYPES, 0) // source, out, index
    CONSTANT(3, uint32_t, KIND, 0)
    CONSTANT(4, bool, ADJACENT, false) // others lie side by side
    CONSTANT(5, uint32_t, WORDS, 128)  // of shared memory: three for each place of a list
    CONSTANT(6, bool, ALONE, false)    // there is one other
CONSTANTS_END(ScatterAddConstants, 7)

PUSHED(ScatterAddPush)
    ARGUMENTS(WalkStrides, shape)
    uint64_t in_address, out_address, index_address;
    int64_t out_stride, in_stride, index_stride; // along the dim
    uint64_t sums, tops;   // of each place: int64; 0, the largest exponent of small ones, or flags
    uint64_t small_sums;   // int64, where a place has small numbers
    uint64_t largest;      // and least exponents of ADD_START's groups; then the largest
    uint32_t size, length; // places and indexes of a list
    uint32_t count, first_other; // others, from this one on
    uint32_t shift, groups;      // bits below a sum's largest number; groups of ADD_START
END(ScatterAddPush, 104)

#endif
