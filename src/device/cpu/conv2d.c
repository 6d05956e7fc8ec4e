// The CONV2D kernel: windows of the image become columns of a matrix, a bounded number at a time,
// and the weight is multiplied with them.
#include "device/cpu/conv2d.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/iterate.h"
#include "device/cpu/matrix.h"
#include "device/cpu/scratch.h"

enum {
    COLUMN_NUMBERS = 1 << 17, // of a tile: half of a second-level cache
    POSITIONS_MIN = 32,
    POSITIONS_MAX = 1024,
    PARALLEL_WORK = 1 << 17
};

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

// --- windows as columns

void convolution_prepare(const KernelCall *call, const TensorView *image, const TensorView *weight,
                         const TensorView *out, Convolution *conv) {
    const int64_t *integers = call->options.integers;
    bool wide = image->dtype == DTYPE_FLOAT64 || weight->dtype == DTYPE_FLOAT64;
    *conv = (Convolution){.image = image, .compute = wide ? COMPUTE_F64 : COMPUTE_F32};
    conv->rows = CPU_CHOOSE(window_rows)(conv->compute);
    for (int d = 0; d < 2; d++) {
        conv->windows.image[d] = image->dims[2 + d];
        conv->windows.out[d] = out->dims[2 + d];
        conv->windows.size[d] = weight->dims[2 + d];
        conv->windows.stride[d] = integers[d];
        conv->windows.padding[d] = integers[2 + d];
        conv->windows.dilation[d] = integers[4 + d];
    }
    windows_prepare(&conv->windows);
    conv->groups = integers[6];
    ASSERT(image->rank == 4 && weight->rank == 4 && out->rank == 4 && conv->groups > 0 &&
           image->dims[1] == weight->dims[1] * conv->groups && out->dims[1] == weight->dims[0]);
    conv->channels = weight->dims[1];
    conv->outs = weight->dims[0] / conv->groups;
    conv->depth = conv->channels * weight->dims[2] * weight->dims[3];
    conv->positions = out->dims[2] * out->dims[3];
    conv->tile = clamp(COLUMN_NUMBERS / (conv->depth + 1), POSITIONS_MIN, POSITIONS_MAX);
    int64_t width = out->dims[3];
    if (conv->tile > width && width > 0) conv->tile -= conv->tile % width; // whole rows
    conv->tile = minimum(conv->tile, conv->positions);
    conv->tiles = conv->tile > 0 ? (conv->positions + conv->tile - 1) / conv->tile : 0;
}

void convolution_free(Convolution *conv) {
    windows_free(&conv->windows);
}

// A run of outputs of one row, in one element of the window.
typedef struct Run {
    int64_t x, count;         // outputs [x, x + count)
    int64_t begin, inside;    // of them: the first that reads the image, and how many do
    int64_t image_y, image_x; // what that one reads
} Run;

static Run run_at(const Windows *windows, const int64_t *window, int64_t y, int64_t x,
                  int64_t count) {
    const WindowPlace *row = &windows->places[0][window[0]];
    const WindowPlace *column = &windows->places[1][window[1]];
    Run run = {.x = x, .count = count, .begin = clamp(column->begin, x, x + count)};
    run.inside = clamp(column->end, run.begin, x + count) - run.begin;
    if (y < row->begin || y >= row->end) run.inside = 0;
    run.image_y = y * windows->stride[0] + row->shift;
    run.image_x = run.begin * windows->stride[1] + column->shift;
    return run;
}

// What the window's element meets in one channel, whose first number is number `plane` of the
// image; zeros outside the image.
static void fill_run(const Convolution *conv, int64_t plane, const Run *run, char *target) {
    const TensorView *image = conv->image;
    size_t real = compute_bytes(conv->compute);
    if (run->inside <= 0) {
        memset(target, 0, (size_t)run->count * real);
        return;
    }
    int64_t before = run->begin - run->x, after = run->count - before - run->inside;
    if (before > 0) memset(target, 0, (size_t)before * real);
    target += (size_t)before * real;
    int64_t offset = plane + run->image_y * image->strides[2] + run->image_x * image->strides[3];
    int64_t step = image->strides[3] * conv->windows.stride[1];
    if (image->dtype == compute_dtype(conv->compute))
        conv->rows->copy(target, cpu_at(image, offset), step, run->inside);
    else
        cpu_convert()->load[conv->compute][image->dtype](target, cpu_at(image, offset), step,
                                                         run->inside);
    if (after > 0) memset(target + (size_t)run->inside * real, 0, (size_t)after * real);
}

static void fill_runs(const Convolution *conv, int64_t plane, const int64_t *window,
                      Positions outputs, char *target) {
    int64_t width = conv->windows.out[1], y = outputs.first / width, x = outputs.first % width;
    for (int64_t done = 0; done < outputs.count; y++, x = 0) {
        Run run = run_at(&conv->windows, window, y, x, minimum(width - x, outputs.count - done));
        fill_run(conv, plane, &run, target);
        target += (size_t)run.count * compute_bytes(conv->compute);
        done += run.count;
    }
}

// Where the image and the result have rows of one length and the stride is 1, rows of the columns
// are the image moved: what moves across its border lies at the border again and is made 0.
typedef struct Moved {
    int64_t rows, first_row; // of the columns: those that read the image
    int64_t left, right;     // outputs of each row before and after those that do
    int64_t begin, count;    // of the columns: from the first number that reads the image on
    int64_t source;          // what that one reads
} Moved;

static bool rows_are_moved(const Convolution *conv, Positions outputs) {
    const Windows *w = &conv->windows;
    return w->stride[0] == 1 && w->stride[1] == 1 && w->out[1] == w->image[1] &&
           outputs.first % w->out[1] == 0 && outputs.count % w->out[1] == 0;
}

static Positions lines_of(const Convolution *conv, Positions outputs) {
    int64_t width = conv->windows.out[1];
    return (Positions){outputs.first / width, outputs.count / width};
}

static bool image_is_dense(const Convolution *conv) {
    const TensorView *image = conv->image;
    return image->dtype == compute_dtype(conv->compute) && image->strides[3] == 1 &&
           image->strides[2] == image->dims[3];
}

// For whole rows of outputs.
static Moved moved_at(const Convolution *conv, const int64_t *window, Positions lines) {
    const Windows *w = &conv->windows;
    const WindowPlace *row = &w->places[0][window[0]], *column = &w->places[1][window[1]];
    int64_t width = w->out[1], y = lines.first, y_end = lines.first + lines.count;
    int64_t y_first = clamp(row->begin, y, y_end), y_last = clamp(row->end, y_first, y_end);
    Moved moved = {.rows = y_last - y_first,
                   .first_row = y_first - y,
                   .left = column->begin,
                   .right = width - column->end};
    if (column->begin == column->end) moved.rows = 0;
    moved.begin = moved.first_row * width + column->begin;
    moved.count = moved.rows * width - column->begin - moved.right;
    moved.source = (y_first + row->shift) * width + column->begin + column->shift;
    return moved;
}

// One column of each row: a memset for the few numbers of every row would cost more than they do.
static void clear_column(const Convolution *conv, const Moved *moved, char *first) {
    int64_t width = conv->windows.out[1];
    if (conv->compute == COMPUTE_F32) {
        float *at = (float *)first;
        for (int64_t i = 0; i < moved->rows; i++) at[i * width] = 0;
        return;
    }
    ASSERT(conv->compute == COMPUTE_F64);
    double *at = (double *)first;
    for (int64_t i = 0; i < moved->rows; i++) at[i * width] = 0;
}

// Zeros at the border of the rows that read the image.
static void clear_border(const Convolution *conv, const Moved *moved, char *target) {
    int64_t real = (int64_t)compute_bytes(conv->compute), width = conv->windows.out[1];
    char *row = target + moved->first_row * width * real;
    for (int64_t i = 0; i < moved->left; i++) clear_column(conv, moved, row + i * real);
    for (int64_t i = 1; i <= moved->right; i++) clear_column(conv, moved, row + (width - i) * real);
}

static void fill_moved(const Convolution *conv, int64_t plane, const int64_t *window,
                       Positions lines, char *target) {
    size_t real = compute_bytes(conv->compute), width = (size_t)conv->windows.out[1];
    Moved moved = moved_at(conv, window, lines);
    size_t before = (size_t)moved.first_row * width, rows = (size_t)moved.rows * width;
    size_t all = (size_t)lines.count * width;
    if (moved.rows == 0) {
        memset(target, 0, all * real);
        return;
    }
    memset(target, 0, before * real);
    memset(target + (before + rows) * real, 0, (all - before - rows) * real);
    memcpy(target + (size_t)moved.begin * real, cpu_at(conv->image, plane + moved.source),
           (size_t)moved.count * real);
    clear_border(conv, &moved, target);
}

void convolution_fill(const Convolution *conv, int64_t n, int64_t group, Positions outputs,
                      void *columns) {
    const int64_t *strides = conv->image->strides, *size = conv->windows.size;
    bool moved = rows_are_moved(conv, outputs) && image_is_dense(conv);
    Positions places = moved ? lines_of(conv, outputs) : outputs;
    char *target = columns;
    for (int64_t c = 0; c < conv->channels; c++) {
        int64_t plane = n * strides[0] + (group * conv->channels + c) * strides[1];
        for (int64_t i = 0; i < size[0] * size[1]; i++) {
            int64_t window[2] = {i / size[1], i % size[1]};
            (moved ? fill_moved : fill_runs)(conv, plane, window, places, target);
            target += (size_t)outputs.count * compute_bytes(conv->compute);
        }
    }
}

static void spread_runs(const Convolution *conv, const int64_t *window, Positions outputs,
                        char *source, char *plane) {
    const Windows *windows = &conv->windows;
    int64_t width = windows->out[1], y = outputs.first / width, x = outputs.first % width;
    size_t real = compute_bytes(conv->compute);
    for (int64_t done = 0; done < outputs.count; y++, x = 0) {
        Run run = run_at(windows, window, y, x, minimum(width - x, outputs.count - done));
        int64_t at = run.image_y * windows->image[1] + run.image_x;
        if (run.inside > 0)
            conv->rows->scatter_add(plane + at * (int64_t)real,
                                    source + (size_t)(run.begin - run.x) * real, windows->stride[1],
                                    run.inside);
        source += (size_t)run.count * real;
        done += run.count;
    }
}

static void spread_moved(const Convolution *conv, const int64_t *window, Positions lines,
                         char *source, char *plane) {
    int64_t real = (int64_t)compute_bytes(conv->compute);
    Moved moved = moved_at(conv, window, lines);
    if (moved.rows == 0) return;
    clear_border(conv, &moved, source);
    conv->rows->scatter_add(plane + moved.source * real, source + moved.begin * real, 1,
                            moved.count);
}

void convolution_spread(const Convolution *conv, int64_t channels, Positions outputs, void *columns,
                        void *planes) {
    const int64_t *size = conv->windows.size;
    int64_t plane_numbers = conv->windows.image[0] * conv->windows.image[1];
    size_t real = compute_bytes(conv->compute);
    bool moved = rows_are_moved(conv, outputs);
    Positions places = moved ? lines_of(conv, outputs) : outputs;
    char *source = columns, *plane = planes;
    for (int64_t c = 0; c < channels; c++, plane += (size_t)plane_numbers * real)
        for (int64_t i = 0; i < size[0] * size[1]; i++) {
            int64_t window[2] = {i / size[1], i % size[1]};
            (moved ? spread_moved : spread_runs)(conv, window, places, source, plane);
            source += (size_t)outputs.count * real;
        }
}

// --- the forward pass

typedef struct Forward {
    Convolution conv;
    const TensorView *weight, *bias, *out;
    const char *packed; // the weight, [groups, outs, depth] of the compute type
    bool direct;        // products are written where they belong
} Forward;

static void pack_weight(const Forward *forward, char *target) {
    const TensorView *weight = forward->weight;
    CpuCompute compute = forward->conv.compute;
    ConvertLoad load = cpu_convert()->load[compute][weight->dtype];
    for (int64_t o = 0; o < weight->dims[0]; o++)
        for (int64_t c = 0; c < weight->dims[1]; c++)
            for (int64_t y = 0; y < weight->dims[2]; y++) {
                const int64_t *strides = weight->strides;
                int64_t offset = o * strides[0] + c * strides[1] + y * strides[2];
                load(target, cpu_at(weight, offset), strides[3], weight->dims[3]);
                target += (size_t)weight->dims[3] * compute_bytes(compute);
            }
}

static double bias_of(const Forward *forward, int64_t out_channel) {
    double value;
    int64_t offset = out_channel * forward->bias->strides[0];
    cpu_convert()->load[COMPUTE_F64][forward->bias->dtype](&value, cpu_at(forward->bias, offset), 1,
                                                           1);
    return value;
}

static void add_bias(const Forward *forward, int64_t first_out, int64_t count, char *products,
                     int64_t stride) {
    const Convolution *conv = &forward->conv;
    for (int64_t o = 0; forward->bias && o < conv->outs; o++)
        conv->rows->add_number(products + (size_t)(o * stride) * compute_bytes(conv->compute),
                               bias_of(forward, first_out + o), count);
}

static void store_tile(const Forward *forward, int64_t n, int64_t first_out, Positions tile,
                       const char *products) {
    const TensorView *out = forward->out;
    size_t real = compute_bytes(forward->conv.compute);
    ConvertStore store = cpu_convert()->store[forward->conv.compute][out->dtype];
    for (int64_t o = 0; o < forward->conv.outs; o++) {
        const char *row = products + (size_t)(o * tile.count) * real;
        for (int64_t done = 0; done < tile.count;) {
            int64_t at = tile.first + done, y = at / out->dims[3], x = at % out->dims[3];
            int64_t run = minimum(out->dims[3] - x, tile.count - done);
            int64_t offset = n * out->strides[0] + (first_out + o) * out->strides[1] +
                             y * out->strides[2] + x * out->strides[3];
            store(cpu_at(out, offset), out->strides[3], row + (size_t)done * real, run);
            done += run;
        }
    }
}

static void run_tile(const Forward *forward, int64_t task, char *columns, char *products) {
    const Convolution *conv = &forward->conv;
    size_t real = compute_bytes(conv->compute);
    DType dtype = compute_dtype(conv->compute);
    int64_t first = task % conv->tiles * conv->tile, first_out;
    int64_t group = task / conv->tiles % conv->groups, n = task / conv->tiles / conv->groups;
    int64_t count = minimum(conv->tile, conv->positions - first);
    first_out = group * conv->outs;
    Positions tile = {first, count};
    convolution_fill(conv, n, group, tile, columns);
    int64_t stride = forward->direct ? conv->positions : count;
    if (forward->direct)
        products = cpu_at(forward->out, (n * forward->out->dims[1] + first_out) * stride + first);
    const char *weight = forward->packed + (size_t)(first_out * conv->depth) * real;
    for (int64_t o = 0; conv->depth == 0 && o < conv->outs; o++)
        memset(products + (size_t)(o * stride) * real, 0, (size_t)count * real);
    if (conv->depth > 0)
        matrix_product_serial(&(SerialProduct){
            .compute = conv->compute,
            .a = {dtype, weight, conv->outs, conv->depth, conv->depth, 1},
            .b = {dtype, columns, conv->depth, count, count, 1},
            .c = products,
            .c_stride = stride,
        });
    add_bias(forward, first_out, count, products, stride);
    if (!forward->direct) store_tile(forward, n, first_out, tile, products);
}

static void run_tiles(void *context, int64_t begin, int64_t end) {
    const Forward *forward = context;
    const Convolution *conv = &forward->conv;
    size_t real = compute_bytes(conv->compute);
    char *columns = scratch_take((size_t)((conv->depth + conv->outs) * conv->tile) * real);
    char *products = columns + (size_t)(conv->depth * conv->tile) * real;
    for (int64_t task = begin; task < end && !cpu_interrupted(); task++)
        run_tile(forward, task, columns, products);
    scratch_give(columns);
}

Status cpu_kernel_CONV2D(const KernelCall *call) {
    const TensorView *image = call->inputs[0].view, *weight = call->inputs[1].view;
    const TensorView *out = call->outputs[0];
    if (!dtype_is_float(image->dtype) || !dtype_is_float(weight->dtype))
        return fail(STATUS_DTYPE, "%s has no kernel on the cpu for %s with a weight of %s",
                    call->op_name, dtype_name(image->dtype), dtype_name(weight->dtype));
    if (view_count(out) == 0) return STATUS_OK;
    Forward forward = {
        .weight = weight, .bias = call->n_inputs > 2 ? call->inputs[2].view : NULL, .out = out};
    Convolution *conv = &forward.conv;
    convolution_prepare(call, image, weight, out, conv);
    DType dtype = compute_dtype(conv->compute);
    forward.direct = out->dtype == dtype && view_is_contiguous(out);
    SCOPED_MEMORY char *packed = NULL;
    if (weight->dtype == dtype && view_is_contiguous(weight)) {
        forward.packed = cpu_pointer(weight);
    } else {
        forward.packed = packed =
            memory_allocate((size_t)(weight->dims[0] * conv->depth) * compute_bytes(conv->compute));
        pack_weight(&forward, packed);
    }
    double work = (double)conv->tile * (double)conv->depth * (double)(conv->outs + 1);
    cpu_parallel(out->dims[0] * conv->groups * conv->tiles,
                 (int64_t)(PARALLEL_WORK / (work + 1)) + 1, run_tiles, &forward);
    convolution_free(conv);
    return STATUS_OK;
}
