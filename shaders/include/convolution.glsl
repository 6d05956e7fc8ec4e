// What the shaders that make CONV2D and CONV2D_IMAGE share; they include their header of host/ before.
#ifndef CONVOLUTION_GLSL
#define CONVOLUTION_GLSL

#include "types.glsl"

const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4 & 15u, BIAS = DTYPES >> 8 & 15u,
           WEIGHT = DTYPES >> 12;

uint64_t bytes_of(int64_t elements, uint dtype) {
    return uint64_t(elements * int64_t(element_bytes(dtype)));
}

// The row (axis 0) or column that place `at` sees through number i of the window; -1 for none.
int seen_at(int at, uint i, uint axis) {
    int place = at + int(i) * shape.dilation[axis];
    if (place < 0 || place % shape.apart[axis] != 0) return -1;
    place /= shape.apart[axis];
    return place < int(shape.image_dims[axis]) ? place : -1;
}

#endif
