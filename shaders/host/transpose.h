// What transpose.comp and transpose_words.comp are given.
#ifndef HOST_TRANSPOSE_H
#define HOST_TRANSPOSE_H

#include "walk.h"

CONSTANTS(TransposeConstants)
    WALK_CONSTANTS
    CONSTANT(1, uint32_t, X, 1)             // the dim along which the output's neighbours are
    CONSTANT(2, uint32_t, Y, 0)             // and the input's
    CONSTANT(3, uint32_t, ELEMENT_BYTES, 4) // where the shader is not made for a size
CONSTANTS_END(TransposeConstants, 4)

PUSHED(TransposePush)
    ARGUMENTS(WalkStrides, shape) // of the output, then of the input
    uint64_t out_address, in_address;
END(TransposePush, 16)

#endif
