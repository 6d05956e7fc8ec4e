// What the shaders that make results of CONV2D are given.
#ifndef HOST_CONVOLUTION_RESULTS_H
#define HOST_CONVOLUTION_RESULTS_H

#include "convolution.h"

CONSTANTS(ConvolutionConstants)
    CONVOLUTION_CONSTANTS
    CONSTANT(1, bool, OUT_FOURS, false) // four pixels of the result are neighbours
CONSTANTS_END(ConvolutionConstants, 2)

#endif
