// What the shaders of ATTENTION of many rows share (device/vulkan/kernels/heads.c).
#ifndef ATTENTION_GLSL
#define ATTENTION_GLSL

#include "types.glsl"

const uint NONE = 15;

// Strides in elements: q and out [query, head, number], k and v [key, head, number], mask [head,
// query, key]; then those of the leading dims.
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Shape {
    int64_t q[3], k[3], v[3], to[3], mask[3];
    int64_t batch_strides[5][8]; // q, k, v, out, mask
    uint64_t k_address, v_address, mask_address;
    uint batch_dims[8];
    uint batch_rank, queries, keys, shared_heads, key_heads, value_width, row_blocks;
    uint width;
};
layout(push_constant, scalar) uniform Push {
    Shape shape;
    uint64_t q_address, out_address;
    real scale; // times log2(e)
};

// The query head of a row.
uint head_of(uint key_head, uint row) {
    return key_head * shape.shared_heads + row % shape.shared_heads;
}

int64_t batch_offset(uint view, uint batch) {
    int64_t offset = 0L;
    for (int d = int(shape.batch_rank) - 1; d >= 0; d--) {
        offset += int64_t(batch % shape.batch_dims[d]) * shape.batch_strides[view][d];
        batch /= shape.batch_dims[d];
    }
    return offset;
}

// Whether the mask lets a row see a key; its numbers may be of any dtype.
bool mask_shows(int64_t place, uint dtype) {
    uint64_t address = element_address(shape.mask_address, place, dtype);
    uint size = element_bytes(dtype), bits;
    if (size == 1) {
        bits = uint(Byte(address).v);
    } else if (size == 2) {
        bits = uint(Short(address).v) << 16;
    } else {
        bits = Word(address).v;
        if (size == 8) bits = Word(address + 4UL).v | uint(bits != 0);
    }
    return (dtype >= FLOAT16 ? bits << 1 : bits) != 0; // -0 is 0
}

#endif
