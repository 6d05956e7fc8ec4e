// What arg_reduce.comp is given.
#ifndef HOST_ARG_REDUCE_H
#define HOST_ARG_REDUCE_H

#include "rows.h"

CONSTANTS(ArgReduceConstants)
    ROWS_CONSTANTS
    CONSTANT(1, uint32_t, IN_DTYPE, 0)
    CONSTANT(2, bool, SMALLEST, false)
    CONSTANT(3, uint32_t, LANES, 256)
CONSTANTS_END(ArgReduceConstants, 4)

PUSHED(ArgReducePush)
    ARGUMENTS(RowStrides, rows)
    ROWS_PUSH
END(ArgReducePush, 32)

#endif
