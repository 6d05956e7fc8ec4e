// Pictures of files: which format one has, and its samples as planes of numbers.
#include "data/image_file.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file_map.h"
#include "base/file_replace.h"
#include "base/memory.h"
#include "data/image_format.h"

enum { PIXELS_MAX = 1 << 28 };

static const ImageFormat *const formats[] = {&image_png, &image_jpeg, &image_webp, &image_bmp,
                                             &image_netpbm};
enum { FORMATS = sizeof formats / sizeof *formats };

static const ImageFormat *format_named(const char *path) {
    size_t length = strlen(path);
    for (size_t i = 0; i < 2 * FORMATS; i++) {
        const char *ending = formats[i / 2]->endings[i % 2];
        size_t size = ending ? strlen(ending) : 0;
        if (size && length > size && strcasecmp(path + length - size, ending) == 0)
            return formats[i / 2];
    }
    return NULL;
}

bool image_is_named(const char *path) {
    return format_named(path) != NULL;
}

static Status fail_room(const char *path, int64_t height, int64_t width) {
    return fail(STATUS_MEMORY, "%s: there is not enough memory for %lld x %lld pixels", path,
                (long long)height, (long long)width);
}

Status pixels_new(const char *path, Pixels *pixels) {
    ASSERT(pixels->channels >= 1 && pixels->channels <= 4);
    ASSERT(pixels->most >= 1 && pixels->most <= UINT16_MAX);
    if (pixels->height < 1 || pixels->width < 1)
        return fail(STATUS_FORMAT, "%s: a picture of %lld x %lld pixels has none", path,
                    (long long)pixels->height, (long long)pixels->width);
    if (pixels->height > PIXELS_MAX / pixels->width)
        return fail(STATUS_FORMAT, "%s: %lld x %lld pixels are more than the %d that are read",
                    path, (long long)pixels->height, (long long)pixels->width, PIXELS_MAX);
    pixels->samples = memory_try_resize(NULL, pixels_row_bytes(pixels) * (size_t)pixels->height);
    return pixels->samples ? STATUS_OK : fail_room(path, pixels->height, pixels->width);
}

static Status image_new(const char *path, Image *image) {
    size_t count = (size_t)(image->channels * image->height * image->width);
    image->numbers = memory_try_resize(NULL, count * sizeof *image->numbers);
    return image->numbers ? STATUS_OK : fail_room(path, image->height, image->width);
}

// --- reading

static void spread(const Pixels *pixels, Image *out) {
    int64_t plane = out->height * out->width, channels = out->channels;
    float numbers[256], most = (float)pixels->most;
    for (int i = 0; i < 256; i++) numbers[i] = (float)i / most;
    for (int64_t c = 0; c < channels; c++) {
        float *to = out->numbers + c * plane;
        const uint8_t *bytes = pixels->samples;
        const uint16_t *words = pixels->samples;
        if (pixels->most <= 255)
            for (int64_t i = 0; i < plane; i++) to[i] = numbers[bytes[i * channels + c]];
        else
            for (int64_t i = 0; i < plane; i++) to[i] = (float)words[i * channels + c] / most;
    }
}

static Status read_bytes(const ImageBytes *file, Image *out) {
    const ImageFormat *format = NULL;
    for (size_t i = 0; i < FORMATS && !format; i++)
        if (formats[i]->recognise(file)) format = formats[i];
    if (!format)
        return fail(STATUS_FORMAT, "%s is not a PNG, JPEG, WebP, BMP, PGM or PPM file", file->path);
    Pixels pixels = {0};
    Status status = format->read(file, &pixels);
    *out = (Image){pixels.channels, pixels.height, pixels.width, NULL};
    if (status == STATUS_OK) status = image_new(file->path, out);
    if (status == STATUS_OK) spread(&pixels, out);
    free(pixels.samples);
    return status;
}

Status image_read(const char *path, Image *out) {
    FileMap *map;
    TRY(file_map_open(path, &map));
    ImageBytes file = {path, file_map_bytes(map), file_map_length(map)};
    Status status = read_bytes(&file, out);
    if (status == STATUS_OK) {
        status = file_map_faults();
        if (status != STATUS_OK) free(out->numbers);
    }
    file_map_release(map);
    return status;
}

// --- writing

typedef struct Writing {
    const ImageFormat *format;
    Pixels pixels;
    int quality;
} Writing;

static Status write_stream(FILE *stream, void *context) {
    Writing *writing = context;
    return writing->format->write(&writing->pixels, writing->quality, stream);
}

// As many channels as the format can have: gray is also three that are equal.
static Status fit_format(const char *path, const ImageFormat *format, Image *image) {
    if (format->channels & 1 << image->channels) return STATUS_OK;
    if (image->channels == 1) return image_fit(image, 3, image->height, image->width);
    return fail(STATUS_VALUE, "%s: a %s file has no %s", path, format->name,
                image->channels == 2 ? "gray with alpha" : "alpha channel");
}

static void pack(const Image *image, uint8_t *out) {
    int64_t plane = image->height * image->width, channels = image->channels;
    for (int64_t c = 0; c < channels; c++) {
        const float *from = image->numbers + c * plane;
        for (int64_t i = 0; i < plane; i++) {
            float x = from[i] < 0.0f ? 0.0f : from[i] > 1.0f ? 1.0f : from[i];
            out[i * channels + c] = (uint8_t)(x * 255.0f + 0.5f);
        }
    }
}

Status image_write(const char *path, Image *image, int quality) {
    Writing writing = {.format = format_named(path), .quality = quality};
    if (!writing.format)
        return fail(STATUS_VALUE,
                    "%s: pictures are written to .png, .jpg, .webp, .bmp, .pgm and .ppm", path);
    TRY(fit_format(path, writing.format, image));
    writing.pixels = (Pixels){image->channels, image->height, image->width, 255, NULL};
    TRY(pixels_new(path, &writing.pixels));
    pack(image, writing.pixels.samples);
    Status status = file_replace_stream(path, write_stream, &writing);
    free(writing.pixels.samples);
    return status;
}

// --- fitting

// One pixel of `from` channels as one of `to`: without alpha it lies over black, with it is opaque.
static void fit_pixel(const float *in, int64_t from, float *out, int64_t to) {
    float alpha = from % 2 == 0 ? in[from - 1] : 1.0f, shown = to % 2 == 0 ? 1.0f : alpha;
    float red = in[0] * shown;
    float green = from >= 3 ? in[1] * shown : red, blue = from >= 3 ? in[2] * shown : red;
    if (to >= 3) {
        out[0] = red, out[1] = green, out[2] = blue;
    } else {
        out[0] = from >= 3 ? 0.299f * red + 0.587f * green + 0.114f * blue : red;
    }
    if (to % 2 == 0) out[to - 1] = alpha;
}

static Status fit_channels(Image *image, int64_t channels) {
    ASSERT(channels >= 1 && channels <= 4);
    if (image->channels == channels) return STATUS_OK;
    Image other = {channels, image->height, image->width, NULL};
    TRY(image_new("the picture", &other));
    int64_t plane = image->height * image->width;
    for (int64_t i = 0; i < plane; i++) {
        float in[4], out[4];
        for (int64_t c = 0; c < image->channels; c++) in[c] = image->numbers[c * plane + i];
        fit_pixel(in, image->channels, out, channels);
        for (int64_t c = 0; c < channels; c++) other.numbers[c * plane + i] = out[c];
    }
    free(image->numbers);
    *image = other;
    return STATUS_OK;
}

// Where pixel `at` of `size` lies among `from`: between which two, and how far.
typedef struct Place {
    int64_t first, second;
    float share;
} Place;

static Place sampled_place(int64_t at, int64_t size, int64_t from) {
    float x = ((float)at + 0.5f) * (float)from / (float)size - 0.5f;
    if (x < 0) x = 0;
    int64_t first = (int64_t)x;
    return (Place){first, first + 1 < from ? first + 1 : first, x - (float)first};
}

static Status fit_size(Image *image, int64_t height, int64_t width) {
    if (image->height == height && image->width == width) return STATUS_OK;
    Image other = {image->channels, height, width, NULL};
    TRY(image_new("the picture", &other));
    for (int64_t row = 0; row < image->channels * height; row++) {
        Place y = sampled_place(row % height, height, image->height);
        const float *plane = image->numbers + row / height * image->height * image->width;
        const float *above = plane + y.first * image->width;
        const float *below = plane + y.second * image->width;
        for (int64_t column = 0; column < width; column++) {
            Place x = sampled_place(column, width, image->width);
            float top = above[x.first] + (above[x.second] - above[x.first]) * x.share;
            float bottom = below[x.first] + (below[x.second] - below[x.first]) * x.share;
            other.numbers[row * width + column] = top + (bottom - top) * y.share;
        }
    }
    free(image->numbers);
    *image = other;
    return STATUS_OK;
}

Status image_fit(Image *image, int64_t channels, int64_t height, int64_t width) {
    TRY(fit_channels(image, channels));
    return fit_size(image, height, width);
}
