// SVG pictures: text, so that what is written in a chart can be searched and edited.
#include <stdlib.h>

#include "base/file_replace.h"
#include "base/memory.h"
#include "plot/painter.h"

typedef struct SvgPainter {
    Painter painter;
    Text text;
} SvgPainter;

static Text *text_of(Painter *painter) {
    return &((SvgPainter *)painter)->text;
}

static void append_color(Text *text, const char *attribute, Color color) {
    text_format(text, " %s=\"#%02x%02x%02x\"", attribute, color.red, color.green, color.blue);
}

static void draw_lines(Painter *painter, const Point *points, size_t count, Color color) {
    Text *text = text_of(painter);
    text_append_string(text, "<polyline fill=\"none\"");
    append_color(text, "stroke", color);
    text_format(text, " stroke-width=\"%g\" stroke-linejoin=\"round\" points=\"",
                painter->line_width);
    for (size_t i = 0; i < count; i++)
        text_format(text, "%s%.2f,%.2f", i ? " " : "", points[i].x, points[i].y);
    text_append_string(text, "\"/>\n");
}

static void draw_rectangle(Painter *painter, Box box, Color color) {
    Text *text = text_of(painter);
    text_format(text, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"", box.x, box.y,
                box.width, box.height);
    append_color(text, "fill", color);
    text_append_string(text, "/>\n");
}

static void draw_dot(Painter *painter, Point at, Color color) {
    Text *text = text_of(painter);
    text_format(text, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%g\"", at.x, at.y, dot_radius);
    append_color(text, "fill", color);
    text_append_string(text, "/>\n");
}

// XML has no control characters at all.
static void append_escaped(Text *text, const char *words) {
    for (; *words; words++) switch (*words) {
        case '&': text_append_string(text, "&amp;"); break;
        case '<': text_append_string(text, "&lt;"); break;
        case '>': text_append_string(text, "&gt;"); break;
        default: text_append_char(text, (unsigned char)*words < ' ' ? ' ' : *words);
        }
}

static void draw_letters(Painter *painter, Point at, const char *words,
                         const Lettering *lettering) {
    static const char *const anchors[] = {"start", "middle", "end"};
    Text *text = text_of(painter);
    text_format(text, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%g\" text-anchor=\"%s\"", at.x, at.y,
                lettering->size, anchors[lettering->anchor]);
    append_color(text, "fill", lettering->color);
    if (lettering->upwards) text_format(text, " transform=\"rotate(-90 %.2f %.2f)\"", at.x, at.y);
    text_append_char(text, '>');
    append_escaped(text, words);
    text_append_string(text, "</text>\n");
}

static Status save(Painter *painter, FILE *stream) {
    Text *text = text_of(painter);
    text_append_string(text, "</svg>\n");
    return stream_write(stream, text_get(text), text->length);
}

static void destroy(Painter *painter) {
    text_free(text_of(painter));
    free(painter);
}

Status painter_svg(int width, int height, Painter **out) {
    SvgPainter *svg = memory_allocate_zeroed(1, sizeof *svg);
    svg->painter = (Painter){.lines = draw_lines,
                             .rectangle = draw_rectangle,
                             .dot = draw_dot,
                             .letters = draw_letters,
                             .save = save,
                             .free = destroy,
                             .line_width = 1};
    text_format(&svg->text,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n",
                width, height, width, height);
    draw_rectangle(&svg->painter, (Box){0, 0, width, height}, (Color){255, 255, 255});
    *out = &svg->painter;
    return STATUS_OK;
}
