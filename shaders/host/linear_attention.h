// What linear_attention.comp is given.
#ifndef HOST_LINEAR_ATTENTION_H
#define HOST_LINEAR_ATTENTION_H

#include "language.h"

SHARED_NUMBER(LINEAR_THREADS, 64)

CONSTANTS(LinearAttentionConstants)
    CONSTANT(0, uint32_t, DTYPE, 0) // of all operands
    CONSTANT(1, bool, DELTA, false)
CONSTANTS_END(LinearAttentionConstants, 2)

STORED(LinearAttentionShape)
    uint64_t q, k, v, decay, state, beta;                                       // addresses
    int64_t q_steps[3], k_steps[3], v_steps[3], decay_steps[3], state_steps[3]; // in elements
    int64_t beta_steps[3]; // of which two count
    uint32_t rows, heads, keys, values;
END(LinearAttentionShape, 208)

PUSHED(LinearAttentionPush)
    ARGUMENTS(LinearAttentionShape, shape)
    uint64_t out_address;
    uint32_t blocks, unused; // of a head's columns, LINEAR_THREADS each
END(LinearAttentionPush, 16)

#endif
