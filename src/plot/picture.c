// Draws a chart on a surface: frame, ticks, words, then what the kind of chart shows.
#include <math.h>
#include <stdlib.h>

#include "base/file_replace.h"
#include "base/memory.h"
#include "plot/axis.h"
#include "plot/chart.h"
#include "plot/colors.h"

enum { USUAL_WIDTH = 800, USUAL_HEIGHT = 500, SIZE_MIN = 100, TICK_LENGTH = 5, SPACE = 8 };
static const double letter_size = 13, title_size = 16, small_size = 11;
static const double letter_width = 0.6; // of a letter, about, by its size
static const Color ink = {40, 40, 40}, gray = {120, 120, 120}, grid = {228, 228, 228};

typedef struct Picture {
    const Chart *chart;
    Painter *painter;
    int width, height, top; // of this chart's part of it
    Box area;               // inside the axes
} Picture;

static double x_pixel(const Picture *picture, double x) {
    return picture->area.x + picture->area.width * axis_position(&picture->chart->x, x);
}

static double y_pixel(const Picture *picture, double y) {
    return picture->area.y + picture->area.height * (1 - axis_position(&picture->chart->y, y));
}

static double widest(const Axis *axis) {
    size_t most = 0;
    for (int i = 0; i < axis->tick_count; i++) {
        size_t length = strlen(axis->ticks[i].text);
        if (length > most) most = length;
    }
    return (double)most * letter_size * letter_width;
}

static double legend_width(const Plot *plot) {
    size_t most = 0;
    for (size_t i = 0; i < plot->series_count; i++) {
        size_t length = plot->series[i].label ? strlen(plot->series[i].label) : 0;
        if (length > most) most = length;
    }
    return most ? (double)most * letter_size * letter_width + 36 : 0;
}

static void lay_out(Picture *picture) {
    const Chart *chart = picture->chart;
    const Plot *plot = chart->plot;
    double left = 2 * SPACE + TICK_LENGTH + widest(&chart->y) + (plot->y_label ? 22 : 0);
    double right = plot->kind == PLOT_HEATMAP ? 48 + widest(&chart->scale) : legend_width(plot);
    double top = (plot->title ? 36 : 14) + (chart->hidden ? 16 : 0);
    double bottom = 30 + (plot->x_label ? 20 : 0);
    right = fmin(fmax(right, 20), picture->width / 2.0);
    left = fmin(left, picture->width / 2.0 - 20);
    bottom = fmin(bottom, picture->height / 2.0);
    top = fmin(top, picture->height / 2.0 - 10);
    picture->area = (Box){left, picture->top + top, picture->width - left - right,
                          picture->height - top - bottom};
    ASSERT(picture->area.width >= 1 && picture->area.height >= 1);
}

static void draw_line(const Picture *picture, Point from, Point to, Color color) {
    picture->painter->line_width = 1;
    picture->painter->lines(picture->painter, (Point[]){from, to}, 2, color);
}

static void letter(const Picture *picture, Point at, const char *text, double size, Anchor anchor) {
    Lettering lettering = {
        .size = size, .anchor = anchor, .color = size < letter_size ? gray : ink};
    picture->painter->letters(picture->painter, at, text, &lettering);
}

// Lines are sharp between pixels.
static double sharp(double pixel) {
    return floor(pixel) + 0.5;
}

static void draw_ticks(const Picture *picture) {
    const Chart *chart = picture->chart;
    Box area = picture->area;
    double bottom = area.y + area.height;
    bool lined = chart->plot->kind != PLOT_HEATMAP;
    for (int i = 0; i < chart->x.tick_count; i++) {
        double x = sharp(x_pixel(picture, chart->x.ticks[i].value));
        if (lined) draw_line(picture, (Point){x, area.y}, (Point){x, bottom}, grid);
        draw_line(picture, (Point){x, bottom}, (Point){x, bottom + TICK_LENGTH}, ink);
        letter(picture, (Point){x, bottom + TICK_LENGTH + letter_size}, chart->x.ticks[i].text,
               letter_size, ANCHOR_MIDDLE);
    }
    for (int i = 0; i < chart->y.tick_count; i++) {
        double y = sharp(y_pixel(picture, chart->y.ticks[i].value));
        if (lined) draw_line(picture, (Point){area.x, y}, (Point){area.x + area.width, y}, grid);
        draw_line(picture, (Point){area.x - TICK_LENGTH, y}, (Point){area.x, y}, ink);
        letter(picture, (Point){area.x - TICK_LENGTH - 3, y + letter_size / 3},
               chart->y.ticks[i].text, letter_size, ANCHOR_END);
    }
}

static void draw_frame(const Picture *picture) {
    Box area = picture->area;
    double left = sharp(area.x), right = sharp(area.x + area.width);
    double top = sharp(area.y), bottom = sharp(area.y + area.height);
    Point corners[] = {{left, top}, {right, top}, {right, bottom}, {left, bottom}, {left, top}};
    picture->painter->line_width = 1;
    picture->painter->lines(picture->painter, corners, 5, ink);
}

static void draw_words(const Picture *picture) {
    const Plot *plot = picture->chart->plot;
    Box area = picture->area;
    double middle = area.x + area.width / 2;
    SCOPED_TEXT(note);
    if (plot->title)
        letter(picture, (Point){middle, picture->top + 24.0}, plot->title, title_size,
               ANCHOR_MIDDLE);
    if (chart_note(picture->chart, &note))
        letter(picture, (Point){middle, area.y - 6}, text_get(&note), small_size, ANCHOR_MIDDLE);
    if (plot->x_label)
        letter(picture, (Point){middle, picture->top + picture->height - 10.0}, plot->x_label,
               letter_size, ANCHOR_MIDDLE);
    Lettering upwards = {
        .size = letter_size, .anchor = ANCHOR_MIDDLE, .upwards = true, .color = ink};
    if (plot->y_label)
        picture->painter->letters(picture->painter, (Point){18, area.y + area.height / 2},
                                  plot->y_label, &upwards);
}

static void draw_legend(const Picture *picture) {
    const Plot *plot = picture->chart->plot;
    double x = picture->area.x + picture->area.width + SPACE, y = picture->area.y + 2;
    for (size_t i = 0; i < plot->series_count; i++) {
        if (!plot->series[i].label) continue;
        picture->painter->rectangle(picture->painter, (Box){x, y, 12, 12}, color_of_series(i));
        letter(picture, (Point){x + 18, y + 11}, plot->series[i].label, letter_size, ANCHOR_START);
        y += 20;
    }
}

// --- what the kinds show

// The points of a line between two gaps. Of many points in one column of pixels only the first, the
// lowest, the highest and the last are kept: the picture is the same.
typedef struct Run {
    VECTOR(Point) points;
    size_t column_first; // where the present column begins
} Run;

static bool same_column(const Point *a, const Point *b) {
    return floor(a->x) == floor(b->x);
}

static void add_point(Run *run, Point point) {
    size_t count = run->points.count;
    Point *points = run->points.items;
    ASSERT(run->column_first <= count && count - run->column_first <= 4);
    if (count == 0 || !same_column(&points[run->column_first], &point)) {
        run->column_first = count;
    } else if (count - run->column_first == 4) {
        // first, low, high, last: the last becomes low or high, or goes.
        Point *column = &points[run->column_first], last = column[3];
        if (last.y < column[1].y) column[1] = last;
        if (last.y > column[2].y) column[2] = last;
        column[3] = point;
        return;
    } else if (count - run->column_first == 3 && points[count - 2].y > points[count - 1].y) {
        Point other = points[count - 2];
        points[count - 2] = points[count - 1];
        points[count - 1] = other;
    }
    VECTOR_PUSH(&run->points, point);
}

static void end_run(const Picture *picture, Run *run, Color color) {
    picture->painter->line_width = 1.8;
    if (run->points.count == 1)
        picture->painter->dot(picture->painter, run->points.items[0], color);
    else if (run->points.count > 1)
        picture->painter->lines(picture->painter, run->points.items, run->points.count, color);
    run->points.count = run->column_first = 0;
}

static void draw_points(const Picture *picture) {
    const Chart *chart = picture->chart;
    bool line = chart->plot->kind == PLOT_LINE;
    Run run = {0};
    for (size_t s = 0; s < chart->plot->series_count; s++) {
        const PlotSeries *series = &chart->plot->series[s];
        Color color = color_of_series(s);
        for (size_t i = 0; i < series->count; i++) {
            double x, y;
            bool shown = chart_point(chart, series, i, &x, &y);
            Point at = {0};
            if (shown) at = (Point){x_pixel(picture, x), y_pixel(picture, y)};
            if (shown && line)
                add_point(&run, at);
            else if (shown)
                picture->painter->dot(picture->painter, at, color);
            else
                end_run(picture, &run, color);
        }
        end_run(picture, &run, color);
    }
    VECTOR_FREE(&run.points);
    draw_legend(picture);
}

static void draw_bars(const Picture *picture) {
    const Chart *chart = picture->chart;
    double bottom = picture->area.y + picture->area.height;
    for (int i = 0; i < chart->bar_count; i++) {
        double left = round(x_pixel(picture, chart->bar_low + chart->bar_width * i));
        double right = round(x_pixel(picture, chart->bar_low + chart->bar_width * (i + 1)));
        double top = round(y_pixel(picture, (double)chart->bars[i]));
        double gap = right - left > 4 ? 1 : 0;
        Box bar = {left, top, right - left - gap, bottom - top};
        if (chart->bars[i]) picture->painter->rectangle(picture->painter, bar, color_of_series(0));
    }
    draw_legend(picture);
}

static void draw_scale(const Picture *picture) {
    const Axis *scale = &picture->chart->scale;
    enum { STEPS = 64, WIDTH = 16 };
    Box area = picture->area;
    double left = area.x + area.width + 14, step = area.height / STEPS;
    for (int i = 0; i < STEPS; i++) {
        Box part = {left, area.y + step * (STEPS - 1 - i), WIDTH, step + 1};
        picture->painter->rectangle(picture->painter, part, color_of_heat((i + 0.5) / STEPS));
    }
    for (int i = 0; i < scale->tick_count; i++) {
        double y = area.y + area.height * (1 - axis_position(scale, scale->ticks[i].value));
        letter(picture, (Point){left + WIDTH + 5, y + letter_size / 3}, scale->ticks[i].text,
               letter_size, ANCHOR_START);
    }
}

// A matrix larger than the area shows one of its numbers per pixel.
static void draw_heat(const Picture *picture) {
    const Chart *chart = picture->chart;
    const Plot *plot = chart->plot;
    Box area = picture->area;
    size_t rows = plot->rows, columns = plot->columns;
    if ((double)rows > area.height) rows = (size_t)area.height;
    if ((double)columns > area.width) columns = (size_t)area.width;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            size_t row = i * plot->rows / rows, column = j * plot->columns / columns;
            double value = plot->series[0].y[row * plot->columns + column];
            if (!isfinite(value)) continue;
            double left = round(area.x + area.width * (double)j / (double)columns);
            double right = round(area.x + area.width * (double)(j + 1) / (double)columns);
            double top = round(area.y + area.height * (double)i / (double)rows);
            double bottom = round(area.y + area.height * (double)(i + 1) / (double)rows);
            picture->painter->rectangle(picture->painter,
                                        (Box){left, top, right - left, bottom - top},
                                        color_of_heat(axis_position(&chart->scale, value)));
        }
    draw_scale(picture);
}

static void draw_chart(Picture *picture) {
    static void (*const drawers[PLOT_KIND_COUNT])(const Picture *) = {
        [PLOT_LINE] = draw_points,
        [PLOT_SCATTER] = draw_points,
        [PLOT_HISTOGRAM] = draw_bars,
        [PLOT_HEATMAP] = draw_heat,
    };
    lay_out(picture);
    draw_ticks(picture);
    drawers[picture->chart->plot->kind](picture);
    draw_frame(picture);
    draw_words(picture);
}

static Status draw_part(Picture *picture, const Plot *plot, int top, int height) {
    Chart chart;
    TRY(chart_new(plot, (ChartTicks){.x = picture->width / 100, .y = height / 60 + 1}, &chart));
    picture->chart = &chart;
    picture->top = top;
    picture->height = height;
    draw_chart(picture);
    chart_free(&chart);
    return STATUS_OK;
}

static Status draw(Picture *picture, const Plot *plot) {
    int all = picture->height, upper = plot->below ? all - all / 3 : all;
    TRY(draw_part(picture, plot, 0, upper));
    return plot->below ? draw_part(picture, plot->below, upper, all - upper) : STATUS_OK;
}

static const struct {
    const char *ending;
    Status (*open)(int width, int height, Painter **out);
} formats[] = {{".png", painter_png}, {".svg", painter_svg}};
enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

static Status find_format(const char *path, size_t *out) {
    size_t length = strlen(path), ending = strlen(formats[0].ending);
    for (*out = 0; *out < FORMAT_COUNT; ++*out)
        if (length > ending && strcmp(path + length - ending, formats[*out].ending) == 0)
            return STATUS_OK;
    return fail(STATUS_VALUE, "%s: the names of pictures end in .png or .svg", path);
}

static Status check_size(const char *what, int pixels) {
    if (pixels >= SIZE_MIN && pixels <= PLOT_PIXELS_MAX) return STATUS_OK;
    return fail(STATUS_VALUE, "the %s of a picture must be %d to %d pixels, not %d", what, SIZE_MIN,
                PLOT_PIXELS_MAX, pixels);
}

static Status save(FILE *stream, void *context) {
    Painter *painter = context;
    return painter->save(painter, stream);
}

typedef Status (*OpenPainter)(int width, int height, Painter **out);

// To the file that takes the place of path, or to the stream where there is no path.
static Status draw_to(const Plot *plot, OpenPainter open, const char *path, FILE *stream) {
    Picture picture = {.width = plot->width ? plot->width : USUAL_WIDTH,
                       .height = plot->height ? plot->height : USUAL_HEIGHT};
    TRY(check_size("width", picture.width));
    TRY(check_size("height", picture.height));
    TRY(open(picture.width, picture.height, &picture.painter));
    Status status = draw(&picture, plot);
    if (status == STATUS_OK)
        status =
            path ? file_replace_stream(path, save, picture.painter) : save(stream, picture.painter);
    picture.painter->free(picture.painter);
    return status;
}

Status plot_write(const Plot *plot, const char *path) {
    size_t format = 0;
    TRY(find_format(path, &format));
    return draw_to(plot, formats[format].open, path, NULL);
}

Status plot_draw(const Plot *plot, FILE *stream) {
    return draw_to(plot, painter_svg, NULL, stream);
}
