// What matmul_matrix.comp is given.
#ifndef HOST_MATMUL_MATRIX_H
#define HOST_MATMUL_MATRIX_H

#include "product.h"

CONSTANTS(MatmulMatrixConstants)
    PRODUCT_CONSTANTS
    CONSTANT(2, bool, A_ACROSS, false) // numbers are neighbours across k, not along it
    CONSTANT(3, bool, B_ACROSS, false)
    CONSTANT(4, bool, WHOLE, false) // no tile and no panel is cut off
CONSTANTS_END(MatmulMatrixConstants, 5)

#endif
