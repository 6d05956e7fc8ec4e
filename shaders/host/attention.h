// What attention.comp is given.
#ifndef HOST_ATTENTION_H
#define HOST_ATTENTION_H

#include "attention_shape.h"

CONSTANTS(AttentionConstants)
    CONSTANT(0, uint32_t, DTYPES, 0) // q, k, v, out, mask (NO_DTYPE: none)
    CONSTANT(1, bool, CAUSAL, false)
    CONSTANT(2, uint32_t, WIDTH, 128)          // of a head
    CONSTANT(3, uint32_t, WIDE, 1)             // columns of the result per thread
    CONSTANT(4, bool, K_FOURS, false)          // keys can be read four numbers at a time
    CONSTANT(5, uint32_t, QUERY_NUMBERS, 2048) // ROWS * WIDTH
    CONSTANT(6, bool, CAPPED, false)
    CONSTANT(7, uint32_t, SINKS_DTYPE, 15) // NO_DTYPE: none
CONSTANTS_END(AttentionConstants, 8)

PUSHED(AttentionPush)
    ARGUMENTS(AttentionShape, shape)
    uint64_t q_address, out_address;
    REAL(scale)
    REAL(cap)
END(AttentionPush, 32)

#endif
