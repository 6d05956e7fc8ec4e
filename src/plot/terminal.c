// Draws a chart as lines of text.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "plot/axis.h"
#include "plot/canvas.h"
#include "plot/chart.h"
#include "plot/colors.h"

enum {
    USUAL_ROWS = 16,
    HEAT_ROWS_MAX = 24,
    TICKS_DOWN = 6,
    COLUMNS_MIN = 20,
    COLUMNS_MAX = 1000,
    ROWS_MIN = 4
};

typedef struct Page {
    const Chart *chart;
    int columns, rows; // of the page; of the drawing
    bool color;
    Text *out;
} Page;

static int columns_of(const char *text) {
    int columns = 0;
    size_t length = strlen(text);
    uint32_t codepoint = 0;
    for (size_t at = 0, size; at < length; at += size ? size : 1) {
        size = utf8_decode(text + at, length - at, &codepoint);
        columns += size ? utf8_width(codepoint) : 1;
    }
    return columns;
}

static void append_blanks(Text *out, int count) {
    if (count > 0) text_append_repeated(out, ' ', (size_t)count);
}

static void append_right(Text *out, const char *text, int columns) {
    append_blanks(out, columns - columns_of(text));
    text_append_string(out, text);
}

// A line of its own, in the middle of the columns from `left` on.
static void append_centered(const Page *page, const char *text, int left) {
    append_blanks(page->out, left + (page->columns - left - columns_of(text)) / 2);
    text_append_string(page->out, text);
    text_append_char(page->out, '\n');
}

static int widest(const Axis *axis) {
    int most = 0;
    for (int i = 0; i < axis->tick_count; i++) {
        int columns = columns_of(axis->ticks[i].text);
        if (columns > most) most = columns;
    }
    return most;
}

// Which of `count` cells a value falls into, from the left or the bottom.
static int cell_of(const Axis *axis, double value, int count) {
    double position = axis_position(axis, value);
    int cell = (int)floor(position * count);
    return cell < 0 ? 0 : cell >= count ? count - 1 : cell;
}

// The lines under a drawing that begins at column `left`: the axis, its numbers, its name.
static void append_x_axis(const Page *page, int left, int columns) {
    const Axis *axis = &page->chart->x;
    Text *out = page->out;
    SCOPED_TEXT(numbers);
    append_blanks(out, left - 1);
    text_append_string(out, "└");
    SCOPED_MEMORY char *is_tick = memory_allocate_zeroed((size_t)columns, 1);
    int used = 0;
    for (int i = 0; i < axis->tick_count; i++) {
        int at = cell_of(axis, axis->ticks[i].value, columns);
        int width = columns_of(axis->ticks[i].text);
        int start = left + at - width / 2;
        if (start + width > page->columns) start = page->columns - width;
        if (start < used + (used > 0)) continue; // it would touch the number before it
        is_tick[at] = 1;
        append_blanks(&numbers, start - used);
        text_append_string(&numbers, axis->ticks[i].text);
        used = start + width;
    }
    for (int i = 0; i < columns; i++) text_append_string(out, is_tick[i] ? "┬" : "─");
    text_format(out, "\n%s\n", text_get(&numbers));
    if (page->chart->plot->x_label) append_centered(page, page->chart->plot->x_label, left);
}

// What stands before row `row` of a drawing: the number of a tick, and the axis.
static void append_y_axis(const Page *page, int row, int width) {
    const Axis *axis = &page->chart->y;
    const char *number = NULL;
    for (int i = 0; i < axis->tick_count && !number; i++)
        if (page->rows - 1 - cell_of(axis, axis->ticks[i].value, page->rows) == row)
            number = axis->ticks[i].text;
    append_right(page->out, number ? number : "", width);
    text_append_string(page->out, number ? " ┤" : " │");
}

// --- lines and points

static void draw_points(const Page *page, Canvas *canvas) {
    const Chart *chart = page->chart;
    bool line = chart->plot->kind == PLOT_LINE;
    for (size_t s = 0; s < chart->plot->series_count; s++) {
        const PlotSeries *series = &chart->plot->series[s];
        int before[2];
        bool has_before = false;
        for (size_t i = 0; i < series->count; i++) {
            double x, y;
            if (!chart_point(chart, series, i, &x, &y)) {
                has_before = false;
                continue;
            }
            int height = canvas->rows * DOTS_DOWN;
            int at[2] = {cell_of(&chart->x, x, canvas->columns * DOTS_ACROSS),
                         height - 1 - cell_of(&chart->y, y, height)};
            canvas_line(canvas, has_before && line ? before : at, at, s);
            before[0] = at[0];
            before[1] = at[1];
            has_before = true;
        }
    }
}

static void append_legend(const Page *page, const Canvas *canvas, int left) {
    const Plot *plot = page->chart->plot;
    int used = 0;
    for (size_t i = 0; i < plot->series_count; i++) {
        if (!plot->series[i].label) continue;
        int width = columns_of(plot->series[i].label) + 2;
        bool fits = used > 0 && left + used + 3 + width <= page->columns;
        if (used > 0 && !fits) text_append_char(page->out, '\n');
        append_blanks(page->out, fits ? 3 : left);
        used = fits ? used + 3 + width : width;
        canvas_sample(canvas, i, page->out);
        text_format(page->out, " %s", plot->series[i].label);
    }
    if (used > 0) text_append_char(page->out, '\n');
}

static void print_points(const Page *page) {
    int width = widest(&page->chart->y), left = width + 2;
    int columns = page->columns - left > ROWS_MIN ? page->columns - left : ROWS_MIN;
    Canvas canvas;
    canvas_new(columns, page->rows, &canvas);
    canvas.color = page->color;
    canvas.marks = !page->color && page->chart->plot->series_count > 1;
    draw_points(page, &canvas);
    for (int row = 0; row < page->rows; row++) {
        append_y_axis(page, row, width);
        canvas_row(&canvas, row, page->out);
        text_append_char(page->out, '\n');
    }
    append_x_axis(page, left, columns);
    append_legend(page, &canvas, left);
    canvas_free(&canvas);
}

// --- histograms: one line a bar

static void append_bar(Text *out, double cells) {
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int eighths = (int)lround(cells * 8);
    for (; eighths >= 8; eighths -= 8) text_append_string(out, "█");
    text_append_string(out, parts[eighths]);
}

static void print_bars(const Page *page) {
    const Chart *chart = page->chart;
    double high = chart->bar_low + chart->bar_width * chart->bar_count;
    double magnitude = fmax(fabs(chart->bar_low), fabs(high));
    char(*edges)[TICK_TEXT_MAX] = memory_allocate((size_t)(chart->bar_count + 1) * sizeof *edges);
    int width = 0, digits = 1;
    size_t most = 1;
    for (int i = 0; i <= chart->bar_count; i++) {
        axis_text(chart->bar_low + chart->bar_width * i, chart->bar_width / 10, magnitude,
                  edges[i]);
        if (columns_of(edges[i]) > width) width = columns_of(edges[i]);
        if (i < chart->bar_count && chart->bars[i] > most) most = chart->bars[i];
    }
    for (size_t rest = most; rest >= 10; rest /= 10) digits++;
    int room = page->columns - (2 * width + 6) - digits - 1;
    if (room < 4) room = 4;
    for (int i = 0; i < chart->bar_count; i++) {
        append_right(page->out, edges[i], width);
        text_append_string(page->out, " .. ");
        append_right(page->out, edges[i + 1], width);
        text_append_string(page->out, " │");
        append_bar(page->out, (double)chart->bars[i] / (double)most * room);
        text_format(page->out, "%s%zu\n", chart->bars[i] ? " " : "", chart->bars[i]);
    }
    if (chart->plot->x_label) append_centered(page, chart->plot->x_label, 0);
    free(edges);
}

// --- heatmaps

// The mean of the finite numbers that one cell of the page stands for; nan when there is none.
static double cell_mean(const Plot *plot, const size_t row[2], const size_t column[2]) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = row[0]; i < row[1]; i++)
        for (size_t j = column[0]; j < column[1]; j++) {
            double value = plot->series[0].y[i * plot->columns + j];
            if (!isfinite(value)) continue;
            sum += value;
            count++;
        }
    return count ? sum / (double)count : NAN;
}

// Two columns wide, so that it is about square.
static void append_heat(const Page *page, double part) {
    static const char *const shades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
    enum { SHADES = sizeof shades / sizeof *shades };
    if (isnan(part)) {
        text_append_string(page->out, page->color ? "  " : "??");
        return;
    }
    if (!page->color) {
        int shade = (int)(part * SHADES);
        text_append_string(page->out, shades[shade < SHADES ? shade : SHADES - 1]);
        return;
    }
    Color color = color_of_heat(part);
    text_format(page->out, "\033[48;2;%d;%d;%dm  \033[0m", color.red, color.green, color.blue);
}

static void append_scale(const Page *page, int left) {
    const Axis *scale = &page->chart->scale;
    enum { STEPS = 5 };
    char low[TICK_TEXT_MAX], high[TICK_TEXT_MAX];
    double range = scale->high - scale->low, most = fmax(fabs(scale->low), fabs(scale->high));
    axis_text(scale->low, range / 100, most, low);
    axis_text(scale->high, range / 100, most, high);
    append_blanks(page->out, left);
    text_format(page->out, "%s ", low);
    for (int i = 0; i < STEPS; i++) append_heat(page, (i + 0.5) / STEPS);
    text_format(page->out, " %s\n", high);
}

static void print_heat(const Page *page) {
    const Plot *plot = page->chart->plot;
    int width = widest(&page->chart->y), left = width + 2;
    size_t room = (size_t)(page->columns - left > 8 ? page->columns - left - 1 : 8) / 2;
    size_t rows = (size_t)page->rows, columns = plot->columns < room ? plot->columns : room;
    for (size_t i = 0; i < rows; i++) {
        append_y_axis(page, (int)i, width);
        size_t row[2] = {i * plot->rows / rows, (i + 1) * plot->rows / rows};
        for (size_t j = 0; j < columns; j++) {
            size_t column[2] = {j * plot->columns / columns, (j + 1) * plot->columns / columns};
            double mean = cell_mean(plot, row, column);
            append_heat(page, isnan(mean) ? NAN : axis_position(&page->chart->scale, mean));
        }
        text_append_string(page->out, "│\n");
    }
    append_x_axis(page, left, (int)columns * 2);
    append_scale(page, left);
}

static int usual_rows(const Plot *plot) {
    if (plot->kind != PLOT_HEATMAP) return USUAL_ROWS;
    return plot->rows < HEAT_ROWS_MAX ? (int)plot->rows : HEAT_ROWS_MAX;
}

static Status check_size(const char *what, int size, int low) {
    if (size >= low && size <= COLUMNS_MAX) return STATUS_OK;
    return fail(STATUS_VALUE, "the %s of a drawing must be %d to %d characters, not %d", what, low,
                COLUMNS_MAX, size);
}

static Status print_part(const Plot *plot, Page page) {
    static void (*const printers[PLOT_KIND_COUNT])(const Page *) = {
        [PLOT_LINE] = print_points,
        [PLOT_SCATTER] = print_points,
        [PLOT_HISTOGRAM] = print_bars,
        [PLOT_HEATMAP] = print_heat,
    };
    Chart chart;
    if (plot->kind == PLOT_HEATMAP && (size_t)page.rows > plot->rows) page.rows = (int)plot->rows;
    ChartTicks ticks = {.x = page.columns / 12 + 1,
                        .y = page.rows < TICKS_DOWN ? page.rows : TICKS_DOWN};
    TRY(chart_new(plot, ticks, &chart));
    page.chart = &chart;
    SCOPED_TEXT(note);
    if (plot->title) append_centered(&page, plot->title, 0);
    if (plot->y_label) text_format(page.out, "%s\n", plot->y_label);
    printers[plot->kind](&page);
    if (chart_note(&chart, &note)) text_format(page.out, "%s\n", text_get(&note));
    chart_free(&chart);
    return STATUS_OK;
}

Status plot_print(const Plot *plot, int columns, bool color, Text *out) {
    if (plot->width) TRY(check_size("width", plot->width, COLUMNS_MIN));
    if (plot->height) TRY(check_size("height", plot->height, ROWS_MIN));
    Page page = {.columns = plot->width ? plot->width : columns, .color = color, .out = out};
    if (page.columns < COLUMNS_MIN) page.columns = COLUMNS_MIN;
    page.rows = plot->height ? plot->height : usual_rows(plot);
    TRY(print_part(plot, page));
    page.rows = page.rows / 2 > ROWS_MIN ? page.rows / 2 : ROWS_MIN;
    return plot->below ? print_part(plot->below, page) : STATUS_OK;
}
