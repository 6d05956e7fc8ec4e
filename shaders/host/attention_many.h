// What attention_many.comp and attention_matrix.comp are given.
#ifndef HOST_ATTENTION_MANY_H
#define HOST_ATTENTION_MANY_H

#include "attention_shape.h"

CONSTANTS(AttentionManyConstants)
    CONSTANT(0, uint32_t, DTYPES, 0) // q, k, v (all the same on matrix units), out, mask (NO_DTYPE)
    CONSTANT(1, bool, CAUSAL, false)
    CONSTANT(2, bool, IN_FOURS, false) // four numbers of q, k and v are neighbours
CONSTANTS_END(AttentionManyConstants, 3)

PUSHED(AttentionManyPush)
    ARGUMENTS(AttentionShape, shape)
    uint64_t q_address, out_address;
    REAL(scale) // times log2(e)
END(AttentionManyPush, 24)

#endif
