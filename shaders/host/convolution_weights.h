// What convolution_weights.comp is given.
#ifndef HOST_CONVOLUTION_WEIGHTS_H
#define HOST_CONVOLUTION_WEIGHTS_H

#include "convolution.h"

CONSTANTS(ConvolutionWeightsConstants)
    CONVOLUTION_CONSTANTS
    CONSTANT(1, uint32_t, DEPTH, 8)
    CONSTANT(2, uint32_t, TILE, 64)
    CONSTANT(3, uint32_t, PACKED_AS, FLOAT32)
CONSTANTS_END(ConvolutionWeightsConstants, 4)

#endif
