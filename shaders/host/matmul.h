// What matmul.comp is given.
#ifndef HOST_MATMUL_H
#define HOST_MATMUL_H

#include "product.h"

CONSTANTS(MatmulConstants)
    PRODUCT_CONSTANTS
    CONSTANT(2, uint32_t, A_FETCH, 0)
    CONSTANT(3, uint32_t, B_FETCH, 0)
CONSTANTS_END(MatmulConstants, 4)

#endif
