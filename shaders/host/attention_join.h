// What attention_join.comp is given.
#ifndef HOST_ATTENTION_JOIN_H
#define HOST_ATTENTION_JOIN_H

#include "language.h"

CONSTANTS(AttentionJoinConstants)
    CONSTANT(0, uint32_t, OUT_DTYPE, 0)
CONSTANTS_END(AttentionJoinConstants, 1)

STORED(AttentionJoinShape)
    int64_t to[3]; // strides: query, head, number
    int64_t batch_strides[RANK_MAX];
    uint32_t batch_dims[RANK_MAX];
    uint32_t batch_rank, queries, shared_heads, key_heads, value_width, parts;
END(AttentionJoinShape, 144)

PUSHED(AttentionJoinPush)
    ARGUMENTS(AttentionJoinShape, shape)
    uint64_t parts_address, out_address;
END(AttentionJoinPush, 16)

#endif
