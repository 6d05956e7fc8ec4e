// PNG through cairo, which draws charts anyway; PGM and PPM are a line of text before the bytes.
#include "data/image_file.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file_map.h"
#include "base/memory.h"
#include "plot/cairo_library.h"

enum { SIDE_MAX = 1 << 16, PNG_COLOUR_AT = 25, PNG_HEADER_BYTES = 33 };

bool image_is_named(const char *path) {
    static const char *const endings[] = {".png", ".pgm", ".ppm"};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (length > 4 && strcasecmp(path + length - 4, endings[i]) == 0) return true;
    return false;
}

static void image_new(Image *image, int64_t channels, int64_t height, int64_t width) {
    *image = (Image){channels, height, width, NULL};
    image->numbers =
        memory_allocate((size_t)(channels * height * width + 1) * sizeof *image->numbers);
}

// --- PNG

static void take_pixels(cairo_surface_t *surface, Image *image) {
    const unsigned char *rows = cairo_library.image_surface_get_data(surface);
    int stride = cairo_library.image_surface_get_stride(surface);
    int64_t plane = image->height * image->width;
    for (int64_t y = 0; y < image->height; y++) {
        for (int64_t x = 0; x < image->width; x++) {
            uint32_t pixel;
            memcpy(&pixel, rows + y * stride + x * 4, sizeof pixel);
            for (int64_t c = 0; c < image->channels; c++)
                image->numbers[c * plane + y * image->width + x] =
                    (float)(pixel >> (16 - 8 * c) & 255u) / 255.0f;
        }
    }
}

// The pixels as 32 bits each, whatever the file has, over black.
static cairo_surface_t *flattened(cairo_surface_t *picture) {
    int width = cairo_library.image_surface_get_width(picture);
    int height = cairo_library.image_surface_get_height(picture);
    cairo_surface_t *flat = cairo_library.image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    cairo_t *painter = cairo_library.create(flat);
    cairo_library.set_source_surface(painter, picture, 0, 0);
    cairo_library.paint(painter);
    cairo_library.destroy(painter);
    return flat;
}

static Status read_png(const char *path, bool gray, Image *out) {
    TRY(cairo_library_load());
    cairo_surface_t *picture = cairo_library.image_surface_create_from_png(path);
    cairo_surface_t *flat = flattened(picture);
    cairo_status_t problem = cairo_library.surface_status(picture);
    if (!problem) problem = cairo_library.surface_status(flat);
    if (!problem) {
        image_new(out, gray ? 1 : 3, cairo_library.image_surface_get_height(flat),
                  cairo_library.image_surface_get_width(flat));
        take_pixels(flat, out);
    }
    cairo_library.surface_destroy(flat);
    cairo_library.surface_destroy(picture);
    if (!problem) return STATUS_OK;
    return fail(STATUS_FORMAT, "%s: %s", path, cairo_library.status_to_string(problem));
}

// --- PGM and PPM

typedef struct Reader {
    const uint8_t *at, *end;
} Reader;

// The next number of the header; -1 where there is none.
static int64_t header_number(Reader *reader) {
    while (reader->at < reader->end && (isspace(*reader->at) || *reader->at == '#')) {
        bool comment = *reader->at++ == '#';
        while (comment && reader->at < reader->end && *reader->at != '\n') reader->at++;
    }
    int64_t number = -1;
    for (; reader->at < reader->end && isdigit(*reader->at) && number < SIDE_MAX; reader->at++)
        number = (number < 0 ? 0 : number) * 10 + (*reader->at - '0');
    return number;
}

static Status read_netpbm(const char *path, const FileMap *map, Image *out) {
    const uint8_t *bytes = file_map_bytes(map);
    Reader reader = {bytes + 2, bytes + file_map_length(map)};
    int64_t channels = bytes[1] == '6' ? 3 : 1;
    int64_t width = header_number(&reader), height = header_number(&reader);
    int64_t most = header_number(&reader), each = most > 255 ? 2 : 1;
    reader.at++; // one blank
    bool sound = width > 0 && height > 0 && width < SIDE_MAX && height < SIDE_MAX && most > 0 &&
                 most <= 65535 && reader.end - reader.at >= channels * width * height * each;
    if (!sound) return fail(STATUS_FORMAT, "%s: its header does not fit its bytes", path);
    image_new(out, channels, height, width);
    int64_t plane = width * height;
    for (int64_t i = 0; i < plane * channels; i++) {
        int64_t number = each == 2 ? reader.at[2 * i] << 8 | reader.at[2 * i + 1] : reader.at[i];
        out->numbers[i % channels * plane + i / channels] = (float)number / (float)most;
    }
    return STATUS_OK;
}

Status image_read(const char *path, Image *out) {
    static const uint8_t png[] = {0x89, 'P', 'N', 'G'};
    FileMap *map;
    TRY(file_map_open(path, &map));
    const uint8_t *bytes = file_map_bytes(map);
    size_t length = file_map_length(map);
    Status status;
    if (length > PNG_HEADER_BYTES && memcmp(bytes, png, sizeof png) == 0)
        status = read_png(path, (bytes[PNG_COLOUR_AT] & 3) == 0, out);
    else if (length > 2 && bytes[0] == 'P' && (bytes[1] == '5' || bytes[1] == '6'))
        status = read_netpbm(path, map, out);
    else
        status = fail(STATUS_FORMAT, "%s is not a PNG, PGM or PPM file", path);
    if (status == STATUS_OK) status = file_map_faults();
    file_map_release(map);
    return status;
}

// --- fitting

static void fit_channels(Image *image, int64_t channels) {
    if (image->channels == channels) return;
    Image other;
    int64_t plane = image->height * image->width;
    const float *red = image->numbers, *green = red + plane, *blue = green + plane;
    image_new(&other, channels, image->height, image->width);
    for (int64_t i = 0; i < plane; i++) {
        if (channels == 1)
            other.numbers[i] = 0.299f * red[i] + 0.587f * green[i] + 0.114f * blue[i];
        else
            for (int64_t c = 0; c < channels; c++) other.numbers[c * plane + i] = red[i];
    }
    free(image->numbers);
    *image = other;
}

// Where pixel `at` of `size` lies among `from`: between which two, and how far.
typedef struct Place {
    int64_t first, second;
    float share;
} Place;

static Place place_of(int64_t at, int64_t size, int64_t from) {
    float x = ((float)at + 0.5f) * (float)from / (float)size - 0.5f;
    if (x < 0) x = 0;
    int64_t first = (int64_t)x;
    return (Place){first, first + 1 < from ? first + 1 : first, x - (float)first};
}

static void fit_size(Image *image, int64_t height, int64_t width) {
    if (image->height == height && image->width == width) return;
    Image other;
    image_new(&other, image->channels, height, width);
    for (int64_t row = 0; row < image->channels * height; row++) {
        Place y = place_of(row % height, height, image->height);
        const float *plane = image->numbers + row / height * image->height * image->width;
        const float *above = plane + y.first * image->width;
        const float *below = plane + y.second * image->width;
        for (int64_t column = 0; column < width; column++) {
            Place x = place_of(column, width, image->width);
            float top = above[x.first] + (above[x.second] - above[x.first]) * x.share;
            float bottom = below[x.first] + (below[x.second] - below[x.first]) * x.share;
            other.numbers[row * width + column] = top + (bottom - top) * y.share;
        }
    }
    free(image->numbers);
    *image = other;
}

void image_fit(Image *image, int64_t channels, int64_t height, int64_t width) {
    fit_channels(image, channels);
    fit_size(image, height, width);
}
