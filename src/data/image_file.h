// Pictures of files as numbers.
#ifndef DATA_IMAGE_FILE_H
#define DATA_IMAGE_FILE_H

#include "base/status.h"

typedef struct Image {
    int64_t channels, height, width; // 1 gray, 2 gray with alpha, 3 RGB, 4 RGBA
    float *numbers;                  // [channels, height, width], from 0 to 1; from malloc
} Image;

// Whether a file of that name is read as a picture.
bool image_is_named(const char *path);
// PNG, JPEG, WebP, BMP, PGM, PPM; by content. STATUS_FORMAT names the file and what is wrong.
Status image_read(const char *path, Image *out) MUST_USE;
// The same picture with as many channels and of that size, by bilinear interpolation. What is
// transparent and loses its alpha lies over black.
Status image_fit(Image *image, int64_t channels, int64_t height, int64_t width) MUST_USE;
// Samples of 8 bits in the format that the path's ending names; numbers outside 0 to 1 are clipped.
// quality: from 1 to 100, of formats that lose some. The image may change its channels on the way.
Status image_write(const char *path, Image *image, int quality) MUST_USE;

#endif
