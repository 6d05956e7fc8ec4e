// Picture formats as image_file.c sees them: samples out of the bytes of a file, and back.
#ifndef DATA_IMAGE_FORMAT_H
#define DATA_IMAGE_FORMAT_H

#include <stdio.h>
#include <string.h>

#include "base/status.h"

// Samples as files have them.
typedef struct Pixels {
    int64_t channels, height, width; // 1 gray, 2 gray with alpha, 3 RGB, 4 RGBA
    int64_t most;                    // what is white: samples are bytes up to 255, else uint16_t
    void *samples;                   // [height, width, channels]; from malloc
} Pixels;

// A file in memory, which may change: nothing is read twice of which the first time was the check.
typedef struct ImageBytes {
    const char *path; // for errors
    const uint8_t *bytes;
    size_t length;
} ImageBytes;

typedef struct ImageFormat {
    const char *name;
    const char *endings[2]; // of file names, the second may be NULL
    int channels;           // bits 1 << n: with how many it can be written
    bool (*recognise)(const ImageBytes *file);
    Status (*read)(const ImageBytes *file, Pixels *out);
    // Samples of bytes; quality from 1 to 100.
    Status (*write)(const Pixels *pixels, int quality, FILE *stream);
} ImageFormat;

extern const ImageFormat image_png, image_jpeg, image_webp, image_bmp, image_netpbm;

// Memory for such a picture; STATUS_FORMAT or STATUS_MEMORY when it is too large.
Status pixels_new(const char *path, Pixels *pixels) MUST_USE;
static inline size_t pixels_row_bytes(const Pixels *pixels) {
    return (size_t)(pixels->width * pixels->channels) * (pixels->most > 255 ? 2 : 1);
}
static inline void *pixels_row(const Pixels *pixels, int64_t row) {
    return (uint8_t *)pixels->samples + (size_t)row * pixels_row_bytes(pixels);
}
static inline bool image_begins(const ImageBytes *file, const char *mark, size_t length) {
    return file->length > length && memcmp(file->bytes, mark, length) == 0;
}

#endif
