// What matmul_parts.comp is given.
#ifndef HOST_MATMUL_PARTS_H
#define HOST_MATMUL_PARTS_H

#include "product.h"

CONSTANTS(MatmulPartsConstants)
    PRODUCT_CONSTANTS
    CONSTANT(2, bool, A_ACROSS, false) // numbers are neighbours across k
    CONSTANT(3, bool, B_ACROSS, false)
    CONSTANT(4, bool, WHOLE, false)         // no tile and no panel is cut off
    CONSTANT(5, uint32_t, ALIGNED, 4)       // bytes; columns of blocks begin at multiples of it
    CONSTANT(6, uint32_t, SUPER_BYTES, 144) // of 256 weights
CONSTANTS_END(MatmulPartsConstants, 7)

#endif
