// What the shaders of CONV2D and its gradients are given.
#ifndef HOST_CONVOLUTION_H
#define HOST_CONVOLUTION_H

#include "language.h"

STORED(ConvolutionShape)
    int64_t image[4], to[4]; // strides
    int64_t weight_group, weight_channel, weight_to, weight_window[2];
    int64_t bias;
    // Row y of the result sees the rows (y * stride + i * dilation - padding) / apart of the image
    // that are integers and inside.
    int32_t stride[2], padding[2], dilation[2], apart[2];
    uint32_t window[2], image_dims[2], out_dims[2];
    uint32_t channels, outs;    // of a group
    uint32_t out_tiles, pixels; // of a group; all channels of the result for convolution_few.comp
END(ConvolutionShape, 184)

PUSHED(ConvolutionPush)
    ARGUMENTS(ConvolutionShape, shape)
    uint64_t image_address, weight_address, bias_address, out_address, count;
END(ConvolutionPush, 40)

// image, out, bias (NO_DTYPE: none), weight
#define CONVOLUTION_CONSTANTS CONSTANT(0, uint32_t, DTYPES, 0)

#endif
