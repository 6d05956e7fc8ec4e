// What attention_few.comp is given.
#ifndef HOST_ATTENTION_FEW_H
#define HOST_ATTENTION_FEW_H

#include "attention_shape.h"

CONSTANTS(AttentionFewConstants)
    CONSTANT(0, uint32_t, DTYPES, 0) // q, k, v, out, mask (NO_DTYPE: none); then Q, K, V_FOURS
    CONSTANT(1, bool, CAUSAL, false)
    CONSTANT(2, uint32_t, WIDTH, 128) // of a head, in fours; that of values in bits 16..
    CONSTANT(3, uint32_t, LANES, 32)
    CONSTANT(4, uint32_t, WIDE, 1) // fours of a thread
    CONSTANT(5, uint32_t, ROWS, 1)
    CONSTANT(6, bool, PARTED, false)
    CONSTANT(7, uint32_t, SHARED_NUMBERS, 2304)
    CONSTANT(8, uint32_t, GROUP, 256)
CONSTANTS_END(AttentionFewConstants, 9)

// The shape has what only masks and leading dims need.
PUSHED(AttentionFewPush)
    ARGUMENTS(AttentionShape, shape)
    uint64_t q_address, k_address, v_address, out_address; // out: of the parts with PARTED
    uint32_t keys, heads;      // heads of keys; in bits 16.. how many queries share one
    uint32_t queries_and_rank; // queries; in bits 8.. how many leading dims there are
    uint32_t row_blocks, part_keys, parts;
    int32_t q_strides[3], k_strides[3], v_strides[3], to_strides[3];
    REAL(scale)
END(AttentionFewPush, 112)

#endif
