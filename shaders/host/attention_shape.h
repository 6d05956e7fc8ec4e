// What the shaders of ATTENTION know of their operands.
#ifndef HOST_ATTENTION_SHAPE_H
#define HOST_ATTENTION_SHAPE_H

#include "language.h"

// Strides in elements: q and out [query, head, number], k and v [key, head, number], mask [head,
// query, key]; then those of the leading dims.
STORED(AttentionShape)
    int64_t q[3], k[3], v[3], to[3], mask[3];
    int64_t batch_strides[5][RANK_MAX]; // q, k, v, out, mask
    uint64_t k_address, v_address, mask_address, sinks_address;
    uint32_t batch_dims[RANK_MAX];
    uint32_t batch_rank, queries, keys, shared_heads, key_heads, width, value_width, row_blocks;
    uint32_t part_keys, parts; // keys of a part, where they are seen in parts
    uint32_t window;           // how many of the last keys a row sees
    uint32_t unused;
END(AttentionShape, 552)

#endif
