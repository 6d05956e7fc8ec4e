// Charts of numbers: lines, points, histograms and heatmaps, as a picture (PNG, SVG) or as text for
// a terminal. Knows neither tensors nor scripts: numbers are plain doubles, borrowed.
#ifndef PLOT_PLOT_H
#define PLOT_PLOT_H

#include <stddef.h>
#include <stdio.h>

#include "base/text.h"

typedef enum PlotKind {
    PLOT_LINE,
    PLOT_SCATTER,
    PLOT_HISTOGRAM,
    PLOT_HEATMAP,
    PLOT_KIND_COUNT
} PlotKind;

enum { PLOT_SERIES_MAX = 16, PLOT_BINS_MAX = 1000, PLOT_PIXELS_MAX = 10000 };

typedef struct PlotSeries {
    const char *label; // NULL: none
    const double *x;   // NULL: 0, 1, 2, ...
    const double *y;   // of a heatmap: [rows, columns]
    size_t count;
} PlotSeries;

typedef struct Plot {
    PlotKind kind;
    const char *title, *x_label, *y_label; // NULL: none
    bool x_log, y_log;                     // of lines and points
    PlotSeries series[PLOT_SERIES_MAX];    // histograms and heatmaps show one
    size_t series_count;
    size_t rows, columns; // of a heatmap
    int bins;             // of a histogram; 0: as many as Sturges' rule says
    int width, height;    // pixels, or characters of the drawing; 0: a usual size
    // Drawn in the lower third, with axes of its own; NULL: nothing. Sizes are those above.
    const struct Plot *below;
} Plot;

// The kind of that name: "line", "scatter", "histogram", "heatmap". STATUS_VALUE.
Status plot_kind_find(const char *word, PlotKind *out) MUST_USE;

// Numbers that are not finite, or not positive on a logarithmic axis, are left out, and the chart
// says how many. STATUS_VALUE when nothing is left, or when options do not fit the kind.
// Replaces the file; its ending chooses: .png (through cairo, loaded at its first use) or .svg.
Status plot_write(const Plot *plot, const char *path) MUST_USE;
// The same as the element <svg> of a page.
Status plot_draw(const Plot *plot, FILE *stream) MUST_USE;
// Appends lines of text, `columns` wide at most. Without colour series differ by their characters.
Status plot_print(const Plot *plot, int columns, bool color, Text *out) MUST_USE;

#endif
