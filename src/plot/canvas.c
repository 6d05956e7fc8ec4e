// Dots in braille patterns. Source: Unicode block U+2800, whose low eight bits are the dots.
#include "plot/canvas.h"

#include <stdlib.h>

#include "base/memory.h"

static const char marks[] = "*+ox#@%&=$~^ABCD"; // PLOT_SERIES_MAX
// Of the terminal's sixteen colours, the bright ones and then the plain ones.
static const int colors[] = {94, 91, 92, 95, 93, 96, 97, 90, 34, 31, 32, 35, 33, 36, 37, 94};

void canvas_new(int columns, int rows, Canvas *out) {
    *out = (Canvas){.columns = columns, .rows = rows};
    out->cells = memory_allocate_zeroed((size_t)columns * (size_t)rows, sizeof *out->cells);
}

void canvas_free(Canvas *canvas) {
    free(canvas->cells);
}

// Dots are counted from the top left corner; all must be inside.
static void canvas_dot(Canvas *canvas, int x, int y, size_t series) {
    static const uint8_t bits[DOTS_DOWN][DOTS_ACROSS] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    CanvasCell *cell = &canvas->cells[y / DOTS_DOWN * canvas->columns + x / DOTS_ACROSS];
    cell->dots |= bits[y % DOTS_DOWN][x % DOTS_ACROSS];
    cell->series = (uint8_t)(series + 1);
}

void canvas_line(Canvas *canvas, const int from[2], const int to[2], size_t series) {
    int across = to[0] - from[0], down = to[1] - from[1];
    int steps = abs(across) > abs(down) ? abs(across) : abs(down);
    for (int i = 0; i <= steps; i++) {
        // Rounded half away from the start, in integers: the same on every machine.
        int half = steps ? steps : 1;
        int x = from[0] + (2 * across * i + (across < 0 ? -half : half)) / (2 * half);
        int y = from[1] + (2 * down * i + (down < 0 ? -half : half)) / (2 * half);
        canvas_dot(canvas, x, y, series);
    }
}

static void append_cell(const Canvas *canvas, const CanvasCell *cell, Text *out) {
    if (cell->series == 0) {
        text_append_char(out, ' ');
        return;
    }
    size_t series = cell->series - 1u;
    if (canvas->color) text_format(out, "\033[%dm", colors[series]);
    if (canvas->marks)
        text_append_char(out, marks[series]);
    else
        text_append_codepoint(out, 0x2800u + cell->dots);
    if (canvas->color) text_append_string(out, "\033[0m");
}

void canvas_row(const Canvas *canvas, int row, Text *out) {
    const CanvasCell *cells = &canvas->cells[row * canvas->columns];
    int count = canvas->columns;
    while (count > 0 && cells[count - 1].series == 0) count--;
    for (int i = 0; i < count; i++) append_cell(canvas, &cells[i], out);
}

void canvas_sample(const Canvas *canvas, size_t series, Text *out) {
    append_cell(canvas, &(CanvasCell){.dots = 0xFF, .series = (uint8_t)(series + 1)}, out);
}
