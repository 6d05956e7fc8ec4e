// What map.comp is given.
#ifndef HOST_MAP_H
#define HOST_MAP_H

#include "language.h"

SHARED_NUMBER(MAP_OPERANDS_MAX, 8)
SHARED_NUMBER(MAP_VIEWS, 9)

CONSTANTS(MapConstants)
    CONSTANT(0, uint32_t, SHAPE, 0)  // inputs, steps, rank (0: all in one row), out dtype, VECTOR
    CONSTANT(1, uint32_t, DTYPES, 0) // of the inputs, four bits each
    CONSTANT(2, uint32_t, SINGLE, 0) // bit k: input k is one number, bit 8 + k: given here
    CONSTANT(3, uint32_t, STEP_0, 0) // op, then three registers of four bits
    CONSTANT(4, uint32_t, STEP_1, 0)
    CONSTANT(5, uint32_t, STEP_2, 0)
    CONSTANT(6, uint32_t, STEP_3, 0)
    CONSTANT(7, uint32_t, STEP_4, 0)
    CONSTANT(8, uint32_t, STEP_5, 0)
    CONSTANT(9, uint32_t, STEP_6, 0)
    CONSTANT(10, uint32_t, STEP_7, 0)
CONSTANTS_END(MapConstants, 11)

// dims and strides are those of items; a view's stride 0 in the last dim is one number for an item.
STORED(MapStrides)
    int64_t strides[MAP_VIEWS][RANK_MAX]; // of the output, then of the inputs, in elements
    uint32_t dims[RANK_MAX];
END(MapStrides, 608)

PUSHED(MapPush)
    ARGUMENTS(MapStrides, shape)
    uint64_t out_address;
    uint64_t inputs[MAP_OPERANDS_MAX]; // addresses, or the bits of a number of the compute type
    uint64_t count;                    // items
END(MapPush, 80)

#endif
