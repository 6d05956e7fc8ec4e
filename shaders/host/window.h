// What window.comp is given.
#ifndef HOST_WINDOW_H
#define HOST_WINDOW_H

#include "language.h"

CONSTANTS(WindowConstants)
    CONSTANT(0, uint32_t, DTYPES, 0) // image, out
    CONSTANT(1, bool, MEAN, false)   // else the largest
CONSTANTS_END(WindowConstants, 2)

STORED(WindowShape)
    int64_t image[4], to[4]; // strides
    int64_t stride[2], padding[2], window[2];
    uint32_t image_dims[4], out_dims[4];
END(WindowShape, 144)

PUSHED(WindowPush)
    ARGUMENTS(WindowShape, shape)
    uint64_t image_address, out_address, count;
END(WindowPush, 24)

#endif
