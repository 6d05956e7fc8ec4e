// What softmax.comp is given.
#ifndef HOST_SOFTMAX_H
#define HOST_SOFTMAX_H

#include "rows.h"

CONSTANTS(SoftmaxConstants)
    ROWS_CONSTANTS
    CONSTANT(1, uint32_t, DTYPES, 0) // in, out
    CONSTANT(2, bool, LOGARITHM, false)
    CONSTANT(3, uint32_t, GROUP, 256)
    CONSTANT(4, uint32_t, LANES, 256)
    CONSTANT(5, uint32_t, HELD, 0) // items a thread holds of a row; 0: it is read again
    CONSTANT(6, uint32_t, ITEMS, 0)
CONSTANTS_END(SoftmaxConstants, 7)

PUSHED(SoftmaxPush)
    ARGUMENTS(RowStrides, rows)
    ROWS_PUSH
END(SoftmaxPush, 32)

#endif
