// What the shaders that make CONV2D and CONV2D_IMAGE share (device/vulkan/kernels/convolution.c).
#ifndef CONVOLUTION_GLSL
#define CONVOLUTION_GLSL

#include "types.glsl"

layout(constant_id = 0) const uint DTYPES = 0; // image, out, bias (NONE: none), weight
const uint NONE = 15;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4 & 15u, BIAS = DTYPES >> 8 & 15u,
           WEIGHT = DTYPES >> 12;

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Shape {
    int64_t image[4], to[4]; // strides
    int64_t weight_group, weight_channel, weight_to, weight_window[2];
    int64_t bias;
    // Row y of the result sees the rows (y * stride + i * dilation - padding) / apart of the image
    // that are whole and inside.
    int stride[2], padding[2], dilation[2], apart[2];
    uint window[2], image_dims[2], out_dims[2];
    uint channels, outs; // of a group
    uint out_tiles, pixels;
};
layout(push_constant, scalar) uniform Push {
    Shape shape;
    uint64_t image_address, weight_address, bias_address, out_address, count;
};

// The row (axis 0) or column that place `at` sees through number i of the window; -1 for none.
int seen_at(int at, uint i, uint axis) {
    int place = at + int(i) * shape.dilation[axis];
    if (place < 0 || place % shape.apart[axis] != 0) return -1;
    place /= shape.apart[axis];
    return place < int(shape.image_dims[axis]) ? place : -1;
}

#endif
