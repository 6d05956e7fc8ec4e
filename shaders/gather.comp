// GATHER: views are the output, the input with stride 0 along the dim, and the index.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "walk.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 1) const uint DTYPES = 0; // out, index, in
const uint OUT_DTYPE = DTYPES & 15u, INDEX_DTYPE = DTYPES >> 4 & 15u, IN_DTYPE = DTYPES >> 8;
layout(push_constant, scalar) uniform Push {
    Strides shape;
    uint64_t in_address, out_address, index_address;
    int64_t size, stride; // of the dim
    uint count;
};

void main() {
    uint64_t number = group_number() * 256UL + uint64_t(gl_LocalInvocationID.x);
    if (number >= uint64_t(count)) return;
    uint item = uint(number);
    int64_t index = load_integer(index_address, walk_offset(shape, 2, item), INDEX_DTYPE);
    int64_t from = walk_offset(shape, 1, item) + place_of(index, size) * stride;
    store(out_address, walk_offset(shape, 0, item), OUT_DTYPE, load(in_address, from, IN_DTYPE));
}
