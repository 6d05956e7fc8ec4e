// A plot ready to be drawn: axes with their ticks, the bars of a histogram, the scale of a heatmap.
// Knows no pixels.
#ifndef PLOT_CHART_H
#define PLOT_CHART_H

#include "plot/plot.h"

enum { TICKS_MAX = 24, TICK_TEXT_MAX = 24 };

typedef struct Tick {
    double value;
    char text[TICK_TEXT_MAX];
} Tick;

typedef struct Axis {
    double low, high; // low < high
    bool log;
    bool down; // position 0 is at `high`: rows of a heatmap
    int tick_count;
    Tick ticks[TICKS_MAX];
} Axis;

typedef struct Chart {
    const Plot *plot;
    Axis x, y;
    size_t hidden; // numbers that are left out
    // of a histogram: bar i goes from edge(i) to edge(i + 1)
    int bar_count;
    size_t *bars;
    double bar_low, bar_width;
    // of a heatmap: what its colours stand for
    Axis scale;
} Chart;

// How many ticks an axis should have, about.
typedef struct ChartTicks {
    int x, y;
} ChartTicks;

Status chart_new(const Plot *plot, ChartTicks ticks, Chart *out) MUST_USE;
void chart_free(Chart *chart);
// Whether point i of a series is shown, and where.
bool chart_point(const Chart *chart, const PlotSeries *series, size_t i, double *x, double *y);
// Says what is left out; false when nothing is.
bool chart_note(const Chart *chart, Text *out);

// axis.c. An axis over low..high (finite, low <= high) with round ticks; `whole`: only at integers.
// A range of no extent is widened. STATUS_VALUE when the range is too wide for arithmetic.
typedef struct AxisWish {
    double low, high;
    bool log, whole;
    double margin; // empty space at both ends, of the range
    int ticks;
} AxisWish;

#endif
