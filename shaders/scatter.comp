// SCATTER: a thread has one element of every dim but the indexed one, and puts along that in order,
// so that the last of equal indexes wins and sums are made in order. Views without the dim: the
// output, the source, the index.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "walk.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 1) const uint DTYPES = 0; // source, out, index
layout(constant_id = 2) const bool ADD = false;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4 & 15u, INDEX_DTYPE = DTYPES >> 8;
layout(push_constant, scalar) uniform Push {
    Strides shape;
    uint64_t in_address, out_address, index_address;
    int64_t size;
    int64_t out_stride, in_stride, index_stride; // along the dim
    uint count, length;
};

void main() {
    uint64_t number = group_number() * 64UL + uint64_t(gl_LocalInvocationID.x);
    if (number >= uint64_t(count)) return;
    uint item = uint(number);
    int64_t to = walk_offset(shape, 0, item), from = walk_offset(shape, 1, item),
            at = walk_offset(shape, 2, item);
    for (uint j = 0; j < length; j++) {
        int64_t index = load_integer(index_address, at + int64_t(j) * index_stride, INDEX_DTYPE);
        int64_t place = to + place_of(index, size) * out_stride;
        real value = load(in_address, from + int64_t(j) * in_stride, IN_DTYPE);
        if (ADD) value = load(out_address, place, OUT_DTYPE) + value;
        store(out_address, place, OUT_DTYPE, value);
    }
}
