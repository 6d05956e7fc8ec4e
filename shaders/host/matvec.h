// What matvec.comp is given.
#ifndef HOST_MATVEC_H
#define HOST_MATVEC_H

#include "product.h"

CONSTANTS(MatvecConstants)
    JOIN_CONSTANTS
    CONSTANT(3, uint32_t, ROWS, 1)
    CONSTANT(4, uint32_t, EACH, 1)  // columns of a team; with two matrices half of them of each
    CONSTANT(5, uint32_t, TEAMS, 1) // of a workgroup
    CONSTANT(6, bool, DOT, true)
    CONSTANT(7, uint32_t, VECTORS, 0)
CONSTANTS_END(MatvecConstants, 8)

#endif
