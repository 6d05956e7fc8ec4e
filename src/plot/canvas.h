// A drawing of characters: cells of two by four dots each (braille), or of one mark a series where
// there is no colour to tell several apart. Only the terminal's drawing includes it.
#ifndef PLOT_CANVAS_H
#define PLOT_CANVAS_H

#include "base/text.h"

typedef struct CanvasCell {
    uint8_t dots;   // of a braille pattern
    uint8_t series; // the last that came here, from 1; 0: none
} CanvasCell;

typedef struct Canvas {
    int columns, rows; // of cells
    bool marks;        // a mark a series, not dots
    bool color;
    CanvasCell *cells;
} Canvas;

enum { DOTS_ACROSS = 2, DOTS_DOWN = 4 };

void canvas_new(int columns, int rows, Canvas *out);
void canvas_free(Canvas *canvas);
void canvas_line(Canvas *canvas, const int from[2], const int to[2], size_t series);
// Appends a row without blanks at its end.
void canvas_row(const Canvas *canvas, int row, Text *out);
// What stands for a series: its mark or a full cell, coloured.
void canvas_sample(const Canvas *canvas, size_t series, Text *out);

#endif
