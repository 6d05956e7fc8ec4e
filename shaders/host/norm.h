// What norm.comp is given.
#ifndef HOST_NORM_H
#define HOST_NORM_H

#include "rows.h"

CONSTANTS(NormConstants)
    ROWS_CONSTANTS
    CONSTANT(1, uint32_t, DTYPES, 0) // in, out, weight, bias; NO_DTYPE for none
    CONSTANT(2, bool, CENTRED, false)
    CONSTANT(3, uint32_t, GROUP, 256)
    CONSTANT(4, uint32_t, LANES, 256)
    CONSTANT(5, uint32_t, HELD, 0) // items a thread holds of a row; 0: it is read again
    CONSTANT(6, uint32_t, ITEMS, 0)
    // Weight and bias are asked for with the row, not when they are wanted: where few rows leave
    // registers free and nothing else to do meanwhile.
    CONSTANT(7, bool, EARLY, false)
CONSTANTS_END(NormConstants, 8)

PUSHED(NormPush)
    ARGUMENTS(RowStrides, rows)
    ROWS_PUSH
    uint64_t weight_address, bias_address;
    REAL(eps)
END(NormPush, 56)

#endif
