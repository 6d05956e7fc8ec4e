// PGM and PPM: a line of text before the bytes.
#include <ctype.h>
#include <stdlib.h>

#include "base/file_replace.h"
#include "base/text.h"
#include "data/image_format.h"

enum { SIDE_MAX = 1 << 16 };

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

static bool recognise_netpbm(const ImageBytes *file) {
    return image_begins(file, "P5", 2) || image_begins(file, "P6", 2);
}

static Status read_netpbm(const ImageBytes *file, Pixels *out) {
    Reader reader = {file->bytes + 2, file->bytes + file->length};
    int64_t channels = file->bytes[1] == '6' ? 3 : 1;
    int64_t width = header_number(&reader), height = header_number(&reader);
    int64_t most = header_number(&reader), each = most > 255 ? 2 : 1;
    reader.at++; // one blank
    bool sound = width > 0 && height > 0 && width < SIDE_MAX && height < SIDE_MAX && most > 0 &&
                 most <= 65535 && reader.end - reader.at >= channels * width * height * each;
    if (!sound) return fail(STATUS_FORMAT, "%s: its header does not fit its bytes", file->path);
    *out = (Pixels){channels, height, width, most, NULL};
    TRY(pixels_new(file->path, out));
    if (each == 1) memcpy(out->samples, reader.at, (size_t)(channels * width * height));
    for (int64_t i = 0; each == 2 && i < channels * width * height; i++)
        ((uint16_t *)out->samples)[i] = (uint16_t)(reader.at[2 * i] << 8 | reader.at[2 * i + 1]);
    return STATUS_OK;
}

static Status write_netpbm(const Pixels *pixels, int quality, FILE *stream) {
    (void)quality;
    SCOPED_TEXT(header);
    text_format(&header, "P%d\n%lld %lld\n255\n", pixels->channels == 1 ? 5 : 6,
                (long long)pixels->width, (long long)pixels->height);
    TRY(stream_write(stream, text_get(&header), header.length));
    return stream_write(stream, pixels->samples, pixels_row_bytes(pixels) * (size_t)pixels->height);
}

const ImageFormat image_netpbm = {.name = "PGM or PPM",
                                  .endings = {".pgm", ".ppm"},
                                  .channels = 1 << 1 | 1 << 3,
                                  .recognise = recognise_netpbm,
                                  .read = read_netpbm,
                                  .write = write_netpbm};
