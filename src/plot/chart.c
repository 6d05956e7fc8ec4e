// From numbers to a chart: what is left out, ranges, bars.
#include "plot/chart.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "plot/axis.h"

static const char *const kind_words[PLOT_KIND_COUNT] = {
    [PLOT_LINE] = "line",
    [PLOT_SCATTER] = "scatter",
    [PLOT_HISTOGRAM] = "histogram",
    [PLOT_HEATMAP] = "heatmap",
};

Status plot_kind_find(const char *word, PlotKind *out) {
    for (int i = 0; i < PLOT_KIND_COUNT; i++)
        if (strcmp(kind_words[i], word) == 0) {
            *out = (PlotKind)i;
            return STATUS_OK;
        }
    return fail(STATUS_VALUE,
                "kind is \"line\", \"scatter\", \"histogram\" or \"heatmap\", not \"%s\"", word);
}

static bool is_shown(double value, bool log_axis) {
    return isfinite(value) && (!log_axis || value > 0);
}

bool chart_point(const Chart *chart, const PlotSeries *series, size_t i, double *x, double *y) {
    *x = series->x ? series->x[i] : (double)i;
    *y = series->y[i];
    return is_shown(*x, chart->plot->x_log) && is_shown(*y, chart->plot->y_log);
}

typedef struct Bounds {
    double low, high;
} Bounds;
static const Bounds no_bounds = {INFINITY, -INFINITY};

static void bounds_add(Bounds *bounds, double value) {
    bounds->low = fmin(bounds->low, value);
    bounds->high = fmax(bounds->high, value);
}

static Status nothing_left(const Chart *chart, size_t count) {
    if (count == 0) return fail(STATUS_VALUE, "there is nothing to plot: there are no values");
    return fail(STATUS_VALUE, "there is nothing to plot: none of the %zu values is finite%s", count,
                chart->plot->x_log || chart->plot->y_log ? " and above 0" : "");
}

static Status find_points(Chart *chart, Bounds *x_bounds, Bounds *y_bounds) {
    size_t shown = 0, count = 0;
    *x_bounds = *y_bounds = no_bounds;
    for (size_t s = 0; s < chart->plot->series_count; s++) {
        const PlotSeries *series = &chart->plot->series[s];
        count += series->count;
        for (size_t i = 0; i < series->count; i++) {
            double x, y;
            if (!chart_point(chart, series, i, &x, &y)) continue;
            shown++;
            bounds_add(x_bounds, x);
            bounds_add(y_bounds, y);
        }
    }
    chart->hidden = count - shown;
    return shown ? STATUS_OK : nothing_left(chart, count);
}

static Status new_points(Chart *chart, ChartTicks ticks) {
    const Plot *plot = chart->plot;
    Bounds x = no_bounds, y = no_bounds;
    TRY(find_points(chart, &x, &y));
    bool counted = true; // x runs over the numbers of points
    for (size_t s = 0; s < plot->series_count; s++) counted = counted && !plot->series[s].x;
    TRY(axis_new(&(AxisWish){.low = x.low,
                             .high = x.high,
                             .log = plot->x_log,
                             .whole = counted,
                             .margin = 0.02,
                             .ticks = ticks.x},
                 &chart->x));
    return axis_new(
        &(AxisWish){
            .low = y.low, .high = y.high, .log = plot->y_log, .margin = 0.05, .ticks = ticks.y},
        &chart->y);
}

// Sturges' rule: log2 of the count, and one more.
static int usual_bins(size_t count) {
    return (int)ceil(log2((double)count)) + 1;
}

static Status find_range(Chart *chart, Bounds *bounds) {
    const PlotSeries *series = &chart->plot->series[0];
    size_t shown = 0;
    *bounds = no_bounds;
    for (size_t i = 0; i < series->count; i++) {
        if (!isfinite(series->y[i])) continue;
        shown++;
        bounds_add(bounds, series->y[i]);
    }
    chart->hidden = series->count - shown;
    return shown ? STATUS_OK : nothing_left(chart, series->count);
}

static void count_bars(Chart *chart) {
    const PlotSeries *series = &chart->plot->series[0];
    chart->bars = memory_allocate_zeroed((size_t)chart->bar_count, sizeof *chart->bars);
    for (size_t i = 0; i < series->count; i++) {
        if (!isfinite(series->y[i])) continue;
        int bar = (int)((series->y[i] - chart->bar_low) / chart->bar_width);
        ASSERT(bar >= 0 && bar <= chart->bar_count);
        chart->bars[bar < chart->bar_count ? bar : chart->bar_count - 1]++; // the last has its end
    }
}

static Status new_bars(Chart *chart, ChartTicks ticks) {
    Bounds range = no_bounds;
    TRY(find_range(chart, &range));
    size_t shown = chart->plot->series[0].count - chart->hidden;
    chart->bar_count = chart->plot->bins ? chart->plot->bins : usual_bins(shown);
    AxisWish x = {.low = range.low, .high = range.high, .ticks = ticks.x};
    TRY(axis_new(&x, &chart->x));
    chart->bar_low = chart->x.low;
    chart->bar_width = (chart->x.high - chart->x.low) / chart->bar_count;
    count_bars(chart);
    double highest = 0;
    for (int i = 0; i < chart->bar_count; i++) highest = fmax(highest, (double)chart->bars[i]);
    AxisWish y = {.high = highest * 1.05, .whole = true, .ticks = ticks.y};
    return axis_new(&y, &chart->y);
}

static Status new_heat(Chart *chart, ChartTicks ticks) {
    const Plot *plot = chart->plot;
    Bounds range = no_bounds;
    TRY(find_range(chart, &range));
    TRY(axis_new(&(AxisWish){.low = range.low, .high = range.high, .ticks = 6}, &chart->scale));
    TRY(axis_new(
        &(AxisWish){
            .low = -0.5, .high = (double)plot->columns - 0.5, .whole = true, .ticks = ticks.x},
        &chart->x));
    TRY(axis_new(
        &(AxisWish){.low = -0.5, .high = (double)plot->rows - 0.5, .whole = true, .ticks = ticks.y},
        &chart->y));
    chart->y.down = true;
    return STATUS_OK;
}

static Status check_options(const Plot *plot) {
    bool points = plot->kind == PLOT_LINE || plot->kind == PLOT_SCATTER;
    const char *kind = kind_words[plot->kind];
    if (!points && plot->series_count != 1)
        return fail(STATUS_VALUE, "a %s shows one series of values, not %zu", kind,
                    plot->series_count);
    if (!points && (plot->x_log || plot->y_log))
        return fail(STATUS_VALUE, "logarithmic axes are for lines and scatters, not for a %s",
                    kind);
    if (plot->kind != PLOT_HISTOGRAM && plot->bins)
        return fail(STATUS_VALUE, "bins are for histograms, not for a %s", kind);
    if (plot->bins < 0 || plot->bins > PLOT_BINS_MAX)
        return fail(STATUS_VALUE, "bins must be 1 to %d, not %d", PLOT_BINS_MAX, plot->bins);
    return STATUS_OK;
}

Status chart_new(const Plot *plot, ChartTicks ticks, Chart *out) {
    static Status (*const makers[PLOT_KIND_COUNT])(Chart *, ChartTicks) = {
        [PLOT_LINE] = new_points,
        [PLOT_SCATTER] = new_points,
        [PLOT_HISTOGRAM] = new_bars,
        [PLOT_HEATMAP] = new_heat,
    };
    *out = (Chart){.plot = plot};
    TRY(check_options(plot));
    Status status = makers[plot->kind](out, ticks);
    if (status != STATUS_OK) chart_free(out);
    return status;
}

void chart_free(Chart *chart) {
    free(chart->bars);
    chart->bars = NULL;
}

bool chart_note(const Chart *chart, Text *out) {
    if (chart->hidden == 0) return false;
    bool log_axis = chart->plot->x_log || chart->plot->y_log;
    text_format(out, "%zu value%s not shown: not finite%s", chart->hidden,
                chart->hidden == 1 ? "" : "s", log_axis ? " or not above 0" : "");
    return true;
}
