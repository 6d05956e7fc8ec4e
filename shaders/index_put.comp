// INDEX_PUT: views are the output, the mask, and the source unless it is a number.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "walk.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 1) const uint DTYPES = 0; // source, out
layout(constant_id = 2) const bool IMMEDIATE = false;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4 & 15u;
layout(push_constant, scalar) uniform Push {
    Strides shape;
    uint64_t in_address, out_address, mask_address; // in_address: the bits, when IMMEDIATE
    uint count;
};

void main() {
    uint64_t number = group_number() * 256UL + uint64_t(gl_LocalInvocationID.x);
    if (number >= uint64_t(count)) return;
    uint item = uint(number);
    if (Byte(mask_address + uint64_t(walk_offset(shape, 1, item))).v == uint8_t(0)) return;
    real value;
#ifdef REAL_I64
    if (IMMEDIATE) value = int64_t(in_address);
    else
#endif
        value = load(in_address, walk_offset(shape, 2, item), IN_DTYPE);
    store(out_address, walk_offset(shape, 0, item), OUT_DTYPE, value);
}
