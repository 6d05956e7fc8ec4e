// What matmul.comp is given.
#ifndef HOST_MATMUL_H
#define HOST_MATMUL_H

#include "product.h"

// How a panel is fetched: number by number or four at once, along k or along the other dim, its
// side.
SHARED_NUMBER(FETCH_DEPTH, 0)
SHARED_NUMBER(FETCH_SIDE, 1)
SHARED_NUMBER(FETCH_DEPTH_FOUR, 2)
SHARED_NUMBER(FETCH_SIDE_FOUR, 3)

CONSTANTS(MatmulConstants)
    PRODUCT_CONSTANTS
    CONSTANT(2, uint32_t, A_FETCH, FETCH_DEPTH)
    CONSTANT(3, uint32_t, B_FETCH, FETCH_DEPTH)
CONSTANTS_END(MatmulConstants, 4)

#endif
