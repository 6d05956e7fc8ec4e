// What a chart needs of a surface. A surface is one of these, given its functions by painter_png or
// painter_svg. Coordinates are pixels from the top left corner.
#ifndef PLOT_PAINTER_H
#define PLOT_PAINTER_H

#include <stdio.h>

#include "base/text.h"

typedef struct Color {
    uint8_t red, green, blue;
} Color;

typedef struct Point {
    double x, y;
} Point;

typedef struct Box {
    double x, y, width, height;
} Box;

typedef enum Anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END } Anchor;
typedef struct Lettering {
    double size;
    Anchor anchor;
    bool upwards; // turned a quarter to the left
    Color color;
} Lettering;

typedef struct Painter Painter;
struct Painter {
    void (*lines)(Painter *painter, const Point *points, size_t count, Color color);
    void (*rectangle)(Painter *painter, Box box, Color color);
    void (*dot)(Painter *painter, Point at, Color color);
    // `at` is on the line below the letters.
    void (*letters)(Painter *painter, Point at, const char *text, const Lettering *lettering);
    Status (*save)(Painter *painter, FILE *stream);
    void (*free)(Painter *painter);
    double line_width; // of lines
};

static const double dot_radius = 2.5;

// Both make a white surface.
Status painter_png(int width, int height, Painter **out) MUST_USE;
Status painter_svg(int width, int height, Painter **out) MUST_USE;

#endif
