// PNG pictures through cairo.
#include <cairo.h>
#include <math.h>
#include <stdlib.h>

#include "base/file_replace.h"
#include "base/library.h"
#include "base/memory.h"
#include "plot/painter.h"

// clang-format off
#define CAIRO_FUNCTIONS(F) \
    F(cairo_, image_surface_create) F(cairo_, create) F(cairo_, destroy) \
    F(cairo_, surface_destroy) F(cairo_, surface_status) F(cairo_, surface_write_to_png_stream) \
    F(cairo_, status_to_string) F(cairo_, set_source_rgb) F(cairo_, paint) F(cairo_, rectangle) \
    F(cairo_, fill) F(cairo_, stroke) F(cairo_, move_to) F(cairo_, line_to) F(cairo_, arc) \
    F(cairo_, new_path) F(cairo_, set_line_width) F(cairo_, set_line_join) \
    F(cairo_, select_font_face) F(cairo_, set_font_size) F(cairo_, text_extents) \
    F(cairo_, show_text) F(cairo_, save) F(cairo_, restore) F(cairo_, rotate) \
    F(cairo_, set_antialias)
// clang-format on
LIBRARY(cairo_library, CAIRO_FUNCTIONS, .file = "libcairo.so.2", .purpose = ".png pictures",
        .package = "libcairo2");

typedef struct PngPainter {
    Painter painter;
    cairo_surface_t *surface;
    cairo_t *context;
} PngPainter;

static cairo_t *use(Painter *painter, Color color) {
    cairo_t *context = ((PngPainter *)painter)->context;
    cairo_library.set_source_rgb(context, color.red / 255.0, color.green / 255.0,
                                 color.blue / 255.0);
    return context;
}

static void draw_lines(Painter *painter, const Point *points, size_t count, Color color) {
    cairo_t *context = use(painter, color);
    cairo_library.set_line_width(context, painter->line_width);
    cairo_library.new_path(context);
    for (size_t i = 0; i < count; i++)
        (i ? cairo_library.line_to : cairo_library.move_to)(context, points[i].x, points[i].y);
    cairo_library.stroke(context);
}

static void draw_rectangle(Painter *painter, Box box, Color color) {
    cairo_t *context = use(painter, color);
    cairo_library.set_antialias(context, CAIRO_ANTIALIAS_NONE); // neighbours leave no seams
    cairo_library.rectangle(context, box.x, box.y, box.width, box.height);
    cairo_library.fill(context);
    cairo_library.set_antialias(context, CAIRO_ANTIALIAS_DEFAULT);
}

static void draw_dot(Painter *painter, Point at, Color color) {
    cairo_t *context = use(painter, color);
    cairo_library.new_path(context);
    cairo_library.arc(context, at.x, at.y, dot_radius, 0, 2 * M_PI);
    cairo_library.fill(context);
}

static void draw_letters(Painter *painter, Point at, const char *text, const Lettering *lettering) {
    cairo_t *context = use(painter, lettering->color);
    cairo_text_extents_t extents;
    cairo_library.set_font_size(context, lettering->size);
    cairo_library.text_extents(context, text, &extents);
    double back = extents.x_advance * (double)lettering->anchor / 2;
    cairo_library.save(context);
    cairo_library.move_to(context, at.x - (lettering->upwards ? 0 : back),
                          at.y + (lettering->upwards ? back : 0));
    if (lettering->upwards) cairo_library.rotate(context, -M_PI / 2);
    cairo_library.show_text(context, text);
    cairo_library.restore(context);
}

typedef struct PngStream {
    FILE *stream;
    Status status;
} PngStream;

static cairo_status_t write_part(void *closure, const unsigned char *bytes, unsigned int length) {
    PngStream *out = closure;
    out->status = stream_write(out->stream, bytes, length);
    return out->status == STATUS_OK ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static Status save(Painter *painter, FILE *stream) {
    PngStream out = {.stream = stream};
    cairo_surface_t *surface = ((PngPainter *)painter)->surface;
    cairo_status_t status = cairo_library.surface_write_to_png_stream(surface, write_part, &out);
    if (status == CAIRO_STATUS_SUCCESS) return STATUS_OK;
    if (out.status != STATUS_OK) return out.status;
    return fail(STATUS_IO, "cannot draw: %s", cairo_library.status_to_string(status));
}

static void destroy(Painter *painter) {
    PngPainter *png = (PngPainter *)painter;
    cairo_library.destroy(png->context);
    cairo_library.surface_destroy(png->surface);
    free(png);
}

Status painter_png(int width, int height, Painter **out) {
    TRY(library_load(&library));
    PngPainter *png = memory_allocate_zeroed(1, sizeof *png);
    png->painter = (Painter){.lines = draw_lines,
                             .rectangle = draw_rectangle,
                             .dot = draw_dot,
                             .letters = draw_letters,
                             .save = save,
                             .free = destroy,
                             .line_width = 1};
    png->surface = cairo_library.image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    png->context = cairo_library.create(png->surface);
    cairo_status_t status = cairo_library.surface_status(png->surface);
    if (status != CAIRO_STATUS_SUCCESS) {
        destroy(&png->painter);
        return fail(STATUS_MEMORY, "cannot make a picture of %d by %d: %s", width, height,
                    cairo_library.status_to_string(status));
    }
    cairo_library.select_font_face(png->context, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                                   CAIRO_FONT_WEIGHT_NORMAL);
    cairo_library.set_line_join(png->context, CAIRO_LINE_JOIN_ROUND);
    use(&png->painter, (Color){255, 255, 255});
    cairo_library.paint(png->context);
    *out = &png->painter;
    return STATUS_OK;
}
