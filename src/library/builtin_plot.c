// plot(): what a script gives as numbers for a chart, and where the chart goes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/output.h"
#include "device/foretell.h"
#include "learn/learn.h"
#include "learn/output.h"
#include "plot/plot.h"

// The places of what both rows of the catalog take after their values.
typedef enum Option {
    OPTION_PATH,
    OPTION_KIND,
    OPTION_TITLE,
    OPTION_X_LABEL,
    OPTION_Y_LABEL,
    OPTION_LABELS,
    OPTION_LOG_X,
    OPTION_LOG_Y,
    OPTION_BINS,
    OPTION_WIDTH,
    OPTION_HEIGHT,
} Option;

enum { USUAL_COLUMNS = 80 };

// The numbers of a plot are copies, so that they outlive the tensors they came from.
typedef struct Request {
    Plot plot, below;
    double *owned[2 * PLOT_SERIES_MAX];
    size_t owned_count;
} Request;

static void request_free(Request *request) {
    for (size_t i = 0; i < request->owned_count; i++) free(request->owned[i]);
}

// All numbers of a tensor, list or number.
static Status read_numbers(Request *request, Value value, const char *what, const double **out,
                           Shape *shape) {
    Tensor *tensor;
    TRY(value_to_tensor(value, what, &tensor));
    *shape = tensor_shape(tensor);
    size_t count = (size_t)tensor_count(tensor);
    double *numbers = memory_allocate((count + 1) * sizeof *numbers);
    bool before = foretell_ignore_reads(true);
    Status status = tensor_read_floats(tensor, numbers);
    foretell_ignore_reads(before);
    tensor_release(tensor);
    *out = request->owned[request->owned_count++] = numbers;
    return status;
}

static Status add_series(Request *request, PlotSeries series) {
    Plot *plot = &request->plot;
    if (plot->series_count == PLOT_SERIES_MAX)
        return fail(STATUS_VALUE, "a plot shows at most %d series of values", PLOT_SERIES_MAX);
    plot->series[plot->series_count++] = series;
    return STATUS_OK;
}

// A value of one dimension is a series, the rows of a matrix are one each.
static Status add_numbers(Request *request, Value value, const char *label) {
    const double *numbers = NULL;
    Shape shape;
    if (request->plot.series_count == PLOT_SERIES_MAX) return add_series(request, (PlotSeries){0});
    TRY(read_numbers(request, value, "values", &numbers, &shape));
    if (shape.rank > 2)
        return fail(STATUS_SHAPE,
                    "a plot of lines or points shows values of 1 or 2 dimensions, not %d",
                    shape.rank);
    size_t rows = shape.rank == 2 ? (size_t)shape.dims[0] : 1;
    size_t count = shape.rank == 0 ? 1 : (size_t)shape.dims[shape.rank - 1];
    for (size_t i = 0; i < rows; i++)
        TRY(add_series(request,
                       (PlotSeries){.label = label, .y = numbers + i * count, .count = count}));
    return STATUS_OK;
}

static Status add_dict(Request *request, const Dict *dict) {
    for (size_t i = 0; i < dict_count(dict); i++) {
        Value key, item;
        const String *label;
        dict_entry(dict, i, &key, &item);
        TRY(value_to_string(key, "a series' name", &label));
        TRY(add_numbers(request, item, label->bytes));
    }
    return STATUS_OK;
}

static bool is_series(Value value) {
    return value.kind == VALUE_LIST || value.kind == VALUE_RANGE ||
           (value.kind == VALUE_TENSOR && tensor_rank(value.as.tensor) > 0);
}

static Value curve_of(const Instance *result, const char *name) {
    size_t field = 0;
    while (strcmp(result->type->field_names[field], name) != 0) field++;
    return result->fields[field];
}

// The curves of a learn block's value; rates are of another size than losses.
static Status add_training(Request *request, const Instance *result) {
    static const char *const judged[][2] = {{"losses", "loss"}, {"validations", "validation"}};
    Plot *plot = &request->plot;
    if (!plot->x_label) plot->x_label = "epoch";
    for (size_t i = 0; i < sizeof judged / sizeof *judged; i++) {
        Value curve = curve_of(result, judged[i][0]);
        if (curve.as.list->count > 0) TRY(add_numbers(request, curve, judged[i][1]));
    }
    const double *rates = NULL;
    Shape shape;
    Value curve = curve_of(result, "rates");
    if (curve.as.list->count == 0) return STATUS_OK;
    TRY(read_numbers(request, curve, "rates", &rates, &shape));
    request->below = (Plot){.kind = plot->kind, .x_label = plot->x_label, .x_log = plot->x_log};
    request->below.series[0] = (PlotSeries){"rate", NULL, rates, curve.as.list->count};
    request->below.series_count = 1;
    plot->below = &request->below;
    return STATUS_OK;
}

static Status add_values(Request *request, Value value) {
    if (value.kind == VALUE_DICT) return add_dict(request, value.as.dict);
    if (value.kind == VALUE_STRUCT && value.as.instance->type == &learn_result_type)
        return add_training(request, value.as.instance);
    const List *list = value.kind == VALUE_LIST ? value.as.list : NULL;
    if (!list || list->count == 0 || !is_series(list->items[0]))
        return add_numbers(request, value, NULL);
    for (size_t i = 0; i < list->count; i++) TRY(add_numbers(request, list->items[i], NULL));
    return STATUS_OK;
}

static Status add_matrix(Request *request, Value value) {
    const double *numbers = NULL;
    Shape shape;
    TRY(read_numbers(request, value, "values", &numbers, &shape));
    if (shape.rank != 2)
        return fail(STATUS_SHAPE, "a heatmap shows a matrix, not values of %d dimension%s",
                    shape.rank, shape.rank == 1 ? "" : "s");
    request->plot.rows = (size_t)shape.dims[0];
    request->plot.columns = (size_t)shape.dims[1];
    return add_series(
        request, (PlotSeries){.y = numbers, .count = request->plot.rows * request->plot.columns});
}

static Status add_all(Request *request, Value value) {
    const double *numbers = NULL;
    Shape shape;
    TRY(read_numbers(request, value, "values", &numbers, &shape));
    size_t count = 1;
    for (int i = 0; i < shape.rank; i++) count *= (size_t)shape.dims[i];
    return add_series(request, (PlotSeries){.y = numbers, .count = count});
}

// One x for every series.
static Status add_x(Request *request, Value value) {
    const double *x = NULL;
    Shape shape;
    if (request->plot.kind != PLOT_LINE && request->plot.kind != PLOT_SCATTER)
        return fail(STATUS_VALUE, "x and y are for lines and scatters");
    TRY(read_numbers(request, value, "x", &x, &shape));
    size_t count = shape.rank == 0 ? 1 : (size_t)shape.dims[0];
    if (shape.rank > 1) return fail(STATUS_SHAPE, "x has 1 dimension, not %d", shape.rank);
    for (size_t i = 0; i < request->plot.series_count; i++) {
        PlotSeries *series = &request->plot.series[i];
        if (series->count != count)
            return fail(STATUS_SHAPE, "x has %zu values, but y has %zu", count, series->count);
        series->x = x;
    }
    return STATUS_OK;
}

static Status set_labels(Request *request, Value labels) {
    if (labels.kind == VALUE_ABSENT) return STATUS_OK;
    Plot *plot = &request->plot;
    const List *list = labels.kind == VALUE_LIST ? labels.as.list : NULL;
    size_t count = list ? list->count : 1;
    if (count != plot->series_count)
        return fail(STATUS_VALUE, "there are %zu labels for %zu series of values", count,
                    plot->series_count);
    for (size_t i = 0; i < count; i++) {
        const String *label;
        TRY(value_to_string(list ? list->items[i] : labels, "labels", &label));
        plot->series[i].label = label->bytes;
    }
    return STATUS_OK;
}

static const char *words_of(Value value) {
    return value.kind == VALUE_STRING && value.as.string->length > 0 ? value.as.string->bytes
                                                                     : NULL;
}

static int whole_of(Value value) {
    int64_t number = value.as.integer;
    return number < INT32_MIN ? INT32_MIN : number > INT32_MAX ? INT32_MAX : (int)number;
}

static Status read_options(Request *request, const Value *options) {
    Plot *plot = &request->plot;
    plot->title = words_of(options[OPTION_TITLE]);
    plot->x_label = words_of(options[OPTION_X_LABEL]);
    plot->y_label = words_of(options[OPTION_Y_LABEL]);
    plot->x_log = options[OPTION_LOG_X].as.boolean;
    plot->y_log = options[OPTION_LOG_Y].as.boolean;
    plot->bins = whole_of(options[OPTION_BINS]);
    plot->width = whole_of(options[OPTION_WIDTH]);
    plot->height = whole_of(options[OPTION_HEIGHT]);
    return plot_kind_find(options[OPTION_KIND].as.string->bytes, &plot->kind);
}

static Status read_request(Request *request, const Value *x, Value values, const Value *options) {
    static Status (*const readers[PLOT_KIND_COUNT])(Request *, Value) = {
        [PLOT_LINE] = add_values,
        [PLOT_SCATTER] = add_values,
        [PLOT_HISTOGRAM] = add_all,
        [PLOT_HEATMAP] = add_matrix,
    };
    TRY(read_options(request, options));
    TRY(readers[request->plot.kind](request, values));
    if (x) TRY(add_x(request, *x));
    return set_labels(request, options[OPTION_LABELS]);
}

static Status print(const Plot *plot) {
    SCOPED_TEXT(text);
    const char *refused = getenv("NO_COLOR");
    bool color = output_is_terminal(output_stream()) && !(refused && refused[0] != '\0');
    int columns = output_columns(output_stream());
    TRY(plot_print(plot, columns ? columns : USUAL_COLUMNS, color, &text));
    return output_write(output_stream(), &text);
}

static Status show(const Plot *plot) {
    SCOPED_MEMORY char *svg = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&svg, &length);
    if (!stream) memory_end(sizeof(FILE));
    Status status = plot_draw(plot, stream);
    (void)fclose(stream);
    if (status == STATUS_OK) output_picture(svg, length);
    return status;
}

static Status draw(const Plot *plot, const char *path) {
    if (path) return plot_write(plot, path);
    return output_shows_pictures() ? show(plot) : print(plot);
}

static Value plot(const Value *x, Value values, const Value *options) {
    Request request = {0};
    const char *path = words_of(options[OPTION_PATH]);
    Status status = read_request(&request, x, values, options);
    if (status == STATUS_OK) status = draw(&request.plot, path);
    request_free(&request);
    return status == STATUS_OK ? value_none() : value_fail();
}

Value builtin_plot(BuiltinCall *call) {
    return plot(NULL, call->arguments[0], call->arguments + 1);
}

Value builtin_plot_xy(BuiltinCall *call) {
    return plot(&call->arguments[0], call->arguments[1], call->arguments + 2);
}
