// What the shaders of ATTENTION share that are given an AttentionShape; they include
// their header of host/ before.
#ifndef ATTENTION_GLSL
#define ATTENTION_GLSL

#include "types.glsl"

const uint Q_DTYPE = DTYPES & 15u, K_DTYPE = DTYPES >> 4 & 15u, V_DTYPE = DTYPES >> 8 & 15u,
           OUT_DTYPE = DTYPES >> 12 & 15u, MASK_DTYPE = DTYPES >> 16 & 15u;

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
