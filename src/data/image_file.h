// Pictures of files as numbers.
#ifndef DATA_IMAGE_FILE_H
#define DATA_IMAGE_FILE_H

#include "base/status.h"

typedef struct Image {
    int64_t channels, height, width; // 1 or 3 channels
    float *numbers;                  // [channels, height, width], from 0 to 1; from malloc
} Image;

// Whether a file of that name is read as a picture.
bool image_is_named(const char *path);
// PNG (transparent pixels lie over black), PGM, PPM; by content.
Status image_read(const char *path, Image *out) MUST_USE;
// The same picture with as many channels and of that size, by bilinear interpolation.
void image_fit(Image *image, int64_t channels, int64_t height, int64_t width);

#endif
