// What window_image.comp is given.
#ifndef HOST_WINDOW_IMAGE_H
#define HOST_WINDOW_IMAGE_H

#include "language.h"

CONSTANTS(WindowImageConstants)
    CONSTANT(0, uint32_t, DTYPE, 0)
    CONSTANT(1, bool, MEAN, false) // else the largest
CONSTANTS_END(WindowImageConstants, 2)

// All contiguous: planes of the image, and of what came from above.
PUSHED(WindowImagePush)
    uint64_t up_address, image_address, out_address, count;
    int32_t height, width, up_height, up_width;
    int32_t window[2], stride[2], padding[2];
END(WindowImagePush, 72)

#endif
