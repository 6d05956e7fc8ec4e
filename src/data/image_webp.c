// WebP by libwebp: one picture, with or without alpha.
#include <stdlib.h>
#include <webp/decode.h>
#include <webp/encode.h>

#include "base/file_replace.h"
#include "base/library.h"
#include "data/image_format.h"

// clang-format off
#define WEBP_FUNCTIONS(F) \
    F(WebP, GetFeaturesInternal) F(WebP, DecodeRGBInto) F(WebP, DecodeRGBAInto) \
    F(WebP, EncodeRGB) F(WebP, EncodeRGBA) F(WebP, EncodeLosslessRGB) F(WebP, EncodeLosslessRGBA) \
    F(WebP, Free)
// clang-format on
LIBRARY(webp_library, WEBP_FUNCTIONS, .file = "libwebp.so.7", .purpose = ".webp pictures",
        .package = "libwebp7");

enum { LOSSLESS = 100 };

static bool recognise_webp(const ImageBytes *file) {
    return image_begins(file, "RIFF", 4) && file->length >= 12 &&
           memcmp(file->bytes + 8, "WEBP", 4) == 0;
}

static Status read_webp(const ImageBytes *file, Pixels *out) {
    TRY(library_load(&library));
    WebPBitstreamFeatures about;
    if (webp_library.GetFeaturesInternal(file->bytes, file->length, &about,
                                         WEBP_DECODER_ABI_VERSION) != VP8_STATUS_OK)
        return fail(STATUS_FORMAT, "%s: its WebP header cannot be read", file->path);
    if (about.has_animation)
        return fail(STATUS_FORMAT, "%s holds an animation, not one picture", file->path);
    *out = (Pixels){about.has_alpha ? 4 : 3, about.height, about.width, 255, NULL};
    TRY(pixels_new(file->path, out));
    size_t row = pixels_row_bytes(out);
    __typeof__(WebPDecodeRGBInto) *into =
        about.has_alpha ? webp_library.DecodeRGBAInto : webp_library.DecodeRGBInto;
    if (into(file->bytes, file->length, out->samples, row * (size_t)out->height, (int)row))
        return STATUS_OK;
    return fail(STATUS_FORMAT, "%s: its WebP data ends too early or is damaged", file->path);
}

static size_t encode(const Pixels *pixels, int quality, uint8_t **out) {
    int width = (int)pixels->width, height = (int)pixels->height;
    int stride = (int)pixels_row_bytes(pixels);
    if (quality == LOSSLESS)
        return (pixels->channels == 4
                    ? webp_library.EncodeLosslessRGBA
                    : webp_library.EncodeLosslessRGB)(pixels->samples, width, height, stride, out);
    return (pixels->channels == 4 ? webp_library.EncodeRGBA : webp_library.EncodeRGB)(
        pixels->samples, width, height, stride, (float)quality, out);
}

static Status write_webp(const Pixels *pixels, int quality, FILE *stream) {
    TRY(library_load(&library));
    if (pixels->height > WEBP_MAX_DIMENSION || pixels->width > WEBP_MAX_DIMENSION)
        return fail(STATUS_VALUE,
                    "a WebP picture has at most %d x %d pixels, but this has %lld x %lld",
                    WEBP_MAX_DIMENSION, WEBP_MAX_DIMENSION, (long long)pixels->height,
                    (long long)pixels->width);
    uint8_t *bytes = NULL;
    size_t length = encode(pixels, quality, &bytes);
    Status status = length ? stream_write(stream, bytes, length)
                           : fail(STATUS_MEMORY, "libwebp could not write the picture");
    webp_library.Free(bytes);
    return status;
}

const ImageFormat image_webp = {.name = "WebP",
                                .endings = {".webp"},
                                .channels = 1 << 3 | 1 << 4,
                                .recognise = recognise_webp,
                                .read = read_webp,
                                .write = write_webp};
