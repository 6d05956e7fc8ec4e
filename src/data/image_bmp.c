// BMP: rows from the bottom, each of a multiple of 4 bytes, blue first.
#include <stdlib.h>

#include "base/file_replace.h"
#include "data/image_format.h"

enum {
    FILE_HEADER = 14,
    INFO_HEADER = 40,  // up to the palette
    ALPHA_HEADER = 56, // with masks of four channels
    V4_HEADER = 108,
    COLOURS_MAX = 256,
};
enum { COMPRESSION_NONE = 0, COMPRESSION_MASKS = 3, COMPRESSION_ALPHA_MASKS = 6 };

static uint32_t number_at(const uint8_t *bytes, int size) {
    uint32_t number = 0;
    for (int i = 0; i < size; i++) number |= (uint32_t)bytes[i] << 8 * i;
    return number;
}

typedef struct Bitmap {
    const ImageBytes *file;
    uint32_t header, bits, compression, data; // data: where the rows begin
    int64_t width, height;
    bool from_top;
    uint32_t masks[4]; // of red, green, blue, alpha
    uint8_t palette[COLOURS_MAX][3];
    bool gray; // all colours of the palette
} Bitmap;

static bool recognise_bmp(const ImageBytes *file) {
    return image_begins(file, "BM", 2) && file->length > FILE_HEADER + INFO_HEADER;
}

static void read_masks(Bitmap *map, const uint8_t *info) {
    static const uint32_t plain[] = {0xff0000, 0xff00, 0xff, 0}, five[] = {0x7c00, 0x3e0, 0x1f, 0};
    memcpy(map->masks, map->bits == 16 ? five : plain, sizeof plain);
    bool masked =
        map->compression == COMPRESSION_MASKS || map->compression == COMPRESSION_ALPHA_MASKS;
    if (!masked) return;
    bool alpha = map->header >= ALPHA_HEADER || map->compression == COMPRESSION_ALPHA_MASKS;
    for (int c = 0; c < (alpha ? 4 : 3); c++)
        map->masks[c] = number_at(info + INFO_HEADER + 4 * c, 4);
}

static Status read_palette(Bitmap *map, uint32_t colours) {
    const ImageBytes *file = map->file;
    uint32_t most = 1u << map->bits;
    if (colours == 0 || colours > most) colours = most;
    size_t begin = FILE_HEADER + map->header;
    if (begin + 4 * (size_t)colours > file->length)
        return fail(STATUS_FORMAT, "%s: its palette does not fit its bytes", file->path);
    map->gray = true;
    for (uint32_t i = 0; i < colours; i++) {
        const uint8_t *colour = file->bytes + begin + 4 * (size_t)i;
        for (int c = 0; c < 3; c++) map->palette[i][c] = colour[2 - c];
        map->gray = map->gray && colour[0] == colour[1] && colour[1] == colour[2];
    }
    return STATUS_OK;
}

static Status read_header(Bitmap *map) {
    const ImageBytes *file = map->file;
    const uint8_t *info = file->bytes + FILE_HEADER;
    int32_t height = (int32_t)number_at(info + 8, 4);
    map->data = number_at(file->bytes + 10, 4);
    map->header = number_at(info, 4);
    map->width = (int32_t)number_at(info + 4, 4);
    map->height = height < 0 ? -(int64_t)height : height;
    map->from_top = height < 0;
    map->bits = number_at(info + 14, 2);
    map->compression = number_at(info + 16, 4);
    size_t masks_end = FILE_HEADER + INFO_HEADER + 16;
    bool masked =
        map->compression == COMPRESSION_MASKS || map->compression == COMPRESSION_ALPHA_MASKS;
    bool palette = map->bits == 1 || map->bits == 4 || map->bits == 8;
    bool direct = map->bits == 16 || map->bits == 24 || map->bits == 32;
    if (map->header < INFO_HEADER || map->header > file->length ||
        (masked && masks_end > file->length))
        return fail(STATUS_FORMAT, "%s: its header does not fit its bytes", file->path);
    if (!(palette || direct) || (map->compression != COMPRESSION_NONE && !(masked && direct)))
        return fail(STATUS_FORMAT, "%s: BMP with %u bits and compression %u is not supported",
                    file->path, map->bits, map->compression);
    read_masks(map, info);
    return palette ? read_palette(map, number_at(info + 32, 4)) : STATUS_OK;
}

// The bits of a mask, spread over 0..255.
static uint8_t masked(uint32_t pixel, uint32_t mask) {
    if (mask == 0) return 0;
    uint32_t shift = (uint32_t)__builtin_ctz(mask), most = mask >> shift;
    return (uint8_t)((uint64_t)((pixel & mask) >> shift) * 255 / most);
}

static void read_row(const Bitmap *map, const uint8_t *row, Pixels *out, uint8_t *to) {
    uint32_t bits = map->bits;
    for (int64_t x = 0; x < out->width; x++, to += out->channels) {
        if (bits <= 8) {
            int64_t at = x * bits;
            uint32_t shift = 8 - bits - (uint32_t)(at % 8);
            uint32_t index = ((uint32_t)row[at / 8] >> shift) & ((1u << bits) - 1);
            memcpy(to, map->palette[index], (size_t)out->channels);
            continue;
        }
        uint32_t pixel = number_at(row + x * bits / 8, (int)bits / 8);
        for (int64_t c = 0; c < out->channels; c++) to[c] = masked(pixel, map->masks[c]);
    }
}

static Status read_bmp(const ImageBytes *file, Pixels *out) {
    Bitmap map = {.file = file};
    TRY(read_header(&map));
    *out = (Pixels){map.bits <= 8 ? (map.gray ? 1 : 3) : (map.masks[3] ? 4 : 3), map.height,
                    map.width, 255, NULL};
    TRY(pixels_new(file->path, out));
    size_t stride = ((size_t)map.width * map.bits + 31) / 32 * 4;
    if (map.data > file->length || stride * (size_t)map.height > file->length - map.data)
        return fail(STATUS_FORMAT, "%s: its header does not fit its bytes", file->path);
    for (int64_t y = 0; y < map.height; y++) {
        const uint8_t *row = file->bytes + map.data + (size_t)y * stride;
        read_row(&map, row, out, pixels_row(out, map.from_top ? y : map.height - 1 - y));
    }
    return STATUS_OK;
}

static void put(uint8_t *bytes, uint32_t number, int size) {
    for (int i = 0; i < size; i++) bytes[i] = (uint8_t)(number >> 8 * i);
}

static Status write_header(const Pixels *pixels, size_t stride, FILE *stream) {
    uint8_t bytes[FILE_HEADER + V4_HEADER + 4 * COLOURS_MAX] = {'B', 'M'};
    bool gray = pixels->channels == 1, alpha = pixels->channels == 4;
    uint32_t header = alpha ? V4_HEADER : INFO_HEADER;
    uint32_t begin = FILE_HEADER + header + (gray ? 4 * COLOURS_MAX : 0);
    uint8_t *info = bytes + FILE_HEADER;
    put(bytes + 2, begin + (uint32_t)(stride * (size_t)pixels->height), 4);
    put(bytes + 10, begin, 4);
    put(info, header, 4);
    put(info + 4, (uint32_t)pixels->width, 4);
    put(info + 8, (uint32_t)pixels->height, 4);
    put(info + 12, 1, 2); // planes
    put(info + 14, (uint32_t)pixels->channels * 8, 2);
    put(info + 16, alpha ? COMPRESSION_MASKS : COMPRESSION_NONE, 4);
    for (int c = 0; c < 4 && alpha; c++)
        put(info + INFO_HEADER + 4 * c, c < 3 ? 0xffu << (16 - 8 * c) : 0xff000000u, 4);
    if (alpha) memcpy(info + ALPHA_HEADER, "BGRs", 4); // the colour space: sRGB
    for (uint32_t i = 0; i < COLOURS_MAX && gray; i++) put(info + header + 4 * i, i * 0x10101, 4);
    return stream_write(stream, bytes, begin);
}

static Status write_bmp(const Pixels *pixels, int quality, FILE *stream) {
    (void)quality;
    int64_t channels = pixels->channels;
    size_t row_bytes = pixels_row_bytes(pixels), padding = (4 - row_bytes % 4) % 4;
    TRY(write_header(pixels, row_bytes + padding, stream));
    for (int64_t y = pixels->height - 1; y >= 0; y--) {
        uint8_t *row = pixels_row(pixels, y); // blue and red change places, in the caller's copy
        for (int64_t x = 0; x < pixels->width && channels > 1; x++) {
            uint8_t red = row[x * channels];
            row[x * channels] = row[x * channels + 2];
            row[x * channels + 2] = red;
        }
        TRY(stream_write(stream, row, row_bytes));
        TRY(stream_write(stream, "\0\0\0", padding));
    }
    return STATUS_OK;
}

const ImageFormat image_bmp = {.name = "BMP",
                               .endings = {".bmp"},
                               .channels = 1 << 1 | 1 << 3 | 1 << 4,
                               .recognise = recognise_bmp,
                               .read = read_bmp,
                               .write = write_bmp};
