// What arange.comp is given: FILL is an ARANGE of step 0.
#ifndef HOST_ARANGE_H
#define HOST_ARANGE_H

#include "language.h"

CONSTANTS(ArangeConstants)
    CONSTANT(0, uint32_t, OUT_DTYPE, 0)
CONSTANTS_END(ArangeConstants, 1)

PUSHED(ArangePush)
    uint64_t out_address, count;
    REAL(start)
    REAL(step)
END(ArangePush, 32)

#endif
