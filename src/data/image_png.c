// PNG by libpng, whose errors leave its functions by longjmp: both ends of each jump are here.
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>

#include "base/file_replace.h"
#include "base/library.h"
#include "data/image_format.h"

// clang-format off
#define PNG_FUNCTIONS(F) \
    F(png_, create_read_struct) F(png_, create_write_struct) F(png_, create_info_struct) \
    F(png_, destroy_read_struct) F(png_, destroy_write_struct) F(png_, get_error_ptr) \
    F(png_, get_io_ptr) F(png_, error) F(png_, set_read_fn) F(png_, set_write_fn) \
    F(png_, set_expand) F(png_, set_swap) F(png_, set_interlace_handling) F(png_, read_info) \
    F(png_, read_update_info) F(png_, get_IHDR) F(png_, get_channels) F(png_, read_row) \
    F(png_, read_end) F(png_, set_IHDR) F(png_, write_info) F(png_, write_row) F(png_, write_end)
// clang-format on
LIBRARY(png_library, PNG_FUNCTIONS, .file = "libpng16.so.16", .purpose = ".png pictures",
        .package = "libpng16-16");

// One picture on its way in or out. What is set between jumps lies here, not in locals.
typedef struct Passage {
    jmp_buf back;
    png_structp png;
    png_infop info;
    const ImageBytes *file;
    size_t at;
    FILE *stream;
    Pixels *pixels;
    Status status; // of what failed outside libpng
    char problem[200];
} Passage;

static _Noreturn void leave(png_structp png, png_const_charp problem) {
    Passage *passage = png_library.get_error_ptr(png);
    snprintf(passage->problem, sizeof passage->problem, "%s", problem);
    longjmp(passage->back, 1);
}

// What can be read in spite of it is read.
static void ignore(png_structp png, png_const_charp problem) {
    (void)png, (void)problem;
}

static void take_bytes(png_structp png, png_bytep out, size_t count) {
    Passage *passage = png_library.get_io_ptr(png);
    if (count > passage->file->length - passage->at) png_library.error(png, "it ends too early");
    memcpy(out, passage->file->bytes + passage->at, count);
    passage->at += count;
}

static void read_header(Passage *passage) {
    png_structp png = passage->png;
    png_uint_32 width, height;
    int bits, colour, interlace, passes;
    png_library.read_info(png, passage->info);
    png_library.get_IHDR(png, passage->info, &width, &height, &bits, &colour, &interlace, NULL,
                         NULL);
    png_library.set_expand(png); // palettes to RGB, less than 8 bits to 8, tRNS to alpha
    if (bits == 16) png_library.set_swap(png);
    passes = png_library.set_interlace_handling(png);
    png_library.read_update_info(png, passage->info);
    *passage->pixels = (Pixels){.channels = png_library.get_channels(png, passage->info),
                                .height = height,
                                .width = width,
                                .most = bits == 16 ? 65535 : 255};
    passage->status = pixels_new(passage->file->path, passage->pixels);
    if (passage->status != STATUS_OK) return;
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < height; y++)
            png_library.read_row(png, pixels_row(passage->pixels, y), NULL);
    png_library.read_end(png, NULL);
}

static bool recognise_png(const ImageBytes *file) {
    return image_begins(file, "\x89PNG\r\n\x1a\n", 8);
}

static Status read_png(const ImageBytes *file, Pixels *out) {
    TRY(library_load(&library));
    Passage passage = {.file = file, .pixels = out};
    passage.png = png_library.create_read_struct(PNG_LIBPNG_VER_STRING, &passage, leave, ignore);
    if (!passage.png) return fail(STATUS_MEMORY, "%s: libpng has no memory", file->path);
    if (setjmp(passage.back) == 0) {
        passage.info = png_library.create_info_struct(passage.png);
        png_library.set_read_fn(passage.png, &passage, take_bytes);
        read_header(&passage);
    }
    png_library.destroy_read_struct(&passage.png, &passage.info, NULL);
    if (passage.problem[0])
        passage.status = fail(STATUS_FORMAT, "%s: %s", file->path, passage.problem);
    return passage.status;
}

static void give_bytes(png_structp png, png_bytep bytes, size_t count) {
    Passage *passage = png_library.get_io_ptr(png);
    if (passage->status == STATUS_OK) passage->status = stream_write(passage->stream, bytes, count);
}

static void flush(png_structp png) {
    (void)png;
}

static void write_picture(Passage *passage) {
    static const int colours[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                  PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    const Pixels *pixels = passage->pixels;
    png_library.set_IHDR(passage->png, passage->info, (png_uint_32)pixels->width,
                         (png_uint_32)pixels->height, 8, colours[pixels->channels],
                         PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_library.write_info(passage->png, passage->info);
    for (int64_t y = 0; y < pixels->height; y++)
        png_library.write_row(passage->png, pixels_row(pixels, y));
    png_library.write_end(passage->png, NULL);
}

static Status write_png(const Pixels *pixels, int quality, FILE *stream) {
    (void)quality;
    TRY(library_load(&library));
    Pixels copy = *pixels;
    Passage passage = {.stream = stream, .pixels = &copy};
    passage.png = png_library.create_write_struct(PNG_LIBPNG_VER_STRING, &passage, leave, ignore);
    if (!passage.png) return fail(STATUS_MEMORY, "libpng has no memory");
    if (setjmp(passage.back) == 0) {
        passage.info = png_library.create_info_struct(passage.png);
        png_library.set_write_fn(passage.png, &passage, give_bytes, flush);
        write_picture(&passage);
    }
    png_library.destroy_write_struct(&passage.png, &passage.info);
    if (passage.problem[0]) return fail(STATUS_FORMAT, "libpng: %s", passage.problem);
    return passage.status;
}

const ImageFormat image_png = {.name = "PNG",
                               .endings = {".png"},
                               .channels = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4,
                               .recognise = recognise_png,
                               .read = read_png,
                               .write = write_png};
