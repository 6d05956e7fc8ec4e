// The CONV2D kernel: windows of the image become columns of a matrix, a bounded number at a time,
// and the weight is multiplied with them.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/blas.h"
#include "device/cpu/matrix.h"
#include "device/cpu/scratch.h"

enum {
    COLUMN_NUMBERS = 1 << 18,
    POSITIONS_MIN = 32,
    POSITIONS_MAX = 1024,
    PARALLEL_WORK = 1 << 17
};

typedef struct Convolution {
    const TensorView *image, *weight, *bias, *out;
    CpuCompute compute;
    int64_t stride[2], padding[2], dilation[2], groups;
    int64_t channels, outs; // of one group
    int64_t depth;          // channels * window: rows of the column matrix
    int64_t positions;      // pixels of an output plane
    int64_t tile, tiles;    // positions that are computed together
    char *packed;           // the weight, [groups, outs, depth]
} Convolution;

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static char *view_at(const TensorView *view, int64_t elements) {
    return (char *)cpu_pointer(view) + elements * (int64_t)dtype_size(view->dtype);
}

static void pack_weight(const Convolution *conv) {
    const TensorView *weight = conv->weight;
    size_t real = compute_bytes(conv->compute);
    ConvertLoad load = cpu_convert()->load[conv->compute][weight->dtype];
    char *target = conv->packed;
    for (int64_t o = 0; o < weight->dims[0]; o++)
        for (int64_t c = 0; c < weight->dims[1]; c++)
            for (int64_t y = 0; y < weight->dims[2]; y++) {
                const int64_t *strides = weight->strides;
                int64_t offset = o * strides[0] + c * strides[1] + y * strides[2];
                load(target, view_at(weight, offset), strides[3], weight->dims[3]);
                target += (size_t)weight->dims[3] * real;
            }
}

// The first output x, at or after `from`, whose input x * stride + shift is at least `bound`.
static int64_t first_reaching(int64_t bound, int64_t shift, int64_t stride, int64_t from) {
    int64_t distance = bound - shift;
    int64_t x = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    return x < from ? from : x;
}

// What window element (y, x) of one channel meets at `count` output pixels of row `out_y` from
// `out_x` on; zeros outside the image. `plane` is the channel's first element.
static void fill_run(const Convolution *conv, int64_t plane, const int64_t window[2],
                     const int64_t out_at[2], int64_t count, char *target) {
    const TensorView *image = conv->image;
    size_t real = compute_bytes(conv->compute);
    int64_t y = out_at[0] * conv->stride[0] - conv->padding[0] + window[0] * conv->dilation[0];
    int64_t shift = window[1] * conv->dilation[1] - conv->padding[1];
    int64_t end = out_at[1] + count;
    int64_t begin_inside = minimum(first_reaching(0, shift, conv->stride[1], out_at[1]), end);
    int64_t end_inside =
        minimum(first_reaching(image->dims[3], shift, conv->stride[1], out_at[1]), end);
    if (y < 0 || y >= image->dims[2] || begin_inside >= end_inside) {
        memset(target, 0, (size_t)count * real);
        return;
    }
    memset(target, 0, (size_t)(begin_inside - out_at[1]) * real);
    int64_t x = begin_inside * conv->stride[1] + shift;
    int64_t offset = plane + y * image->strides[2] + x * image->strides[3];
    cpu_convert()->load[conv->compute][image->dtype](
        target + (size_t)(begin_inside - out_at[1]) * real, view_at(image, offset),
        image->strides[3] * conv->stride[1], end_inside - begin_inside);
    memset(target + (size_t)(end_inside - out_at[1]) * real, 0, (size_t)(end - end_inside) * real);
}

// columns[depth, count]: the windows of output positions [first, first + count).
static void fill_columns(const Convolution *conv, int64_t plane, int64_t first, int64_t count,
                         char *columns) {
    int64_t width = conv->out->dims[3];
    size_t real = compute_bytes(conv->compute);
    for (int64_t c = 0; c < conv->channels; c++)
        for (int64_t y = 0; y < conv->weight->dims[2]; y++)
            for (int64_t x = 0; x < conv->weight->dims[3]; x++)
                for (int64_t done = 0; done < count;) {
                    int64_t at[2] = {(first + done) / width, (first + done) % width};
                    int64_t run = minimum(width - at[1], count - done);
                    fill_run(conv, plane + c * conv->image->strides[1], (int64_t[]){y, x}, at, run,
                             columns);
                    columns += (size_t)run * real;
                    done += run;
                }
}

static double bias_of(const Convolution *conv, int64_t out_channel) {
    if (!conv->bias) return 0;
    double value;
    int64_t offset = out_channel * conv->bias->strides[0];
    cpu_convert()->load[COMPUTE_F64][conv->bias->dtype](&value, view_at(conv->bias, offset), 1, 1);
    return value;
}

// Adds the bias to products[outs, count] and stores them.
static void store_tile(const Convolution *conv, int64_t n, int64_t first_out, int64_t first,
                       int64_t count, char *products) {
    const TensorView *out = conv->out;
    size_t real = compute_bytes(conv->compute);
    ConvertStore store = cpu_convert()->store[conv->compute][out->dtype];
    for (int64_t o = 0; o < conv->outs; o++) {
        double bias = bias_of(conv, first_out + o);
        char *row = products + (size_t)(o * count) * real;
        for (int64_t i = 0; conv->bias && i < count; i++)
            if (conv->compute == COMPUTE_F32)
                ((float *)(void *)row)[i] += (float)bias;
            else
                ((double *)(void *)row)[i] += bias;
        for (int64_t done = 0; done < count;) {
            int64_t y = (first + done) / out->dims[3], x = (first + done) % out->dims[3];
            int64_t run = minimum(out->dims[3] - x, count - done);
            int64_t offset = n * out->strides[0] + (first_out + o) * out->strides[1] +
                             y * out->strides[2] + x * out->strides[3];
            store(view_at(out, offset), out->strides[3], row + (size_t)done * real, run);
            done += run;
        }
    }
}

static void run_tiles(void *context, int64_t begin, int64_t end) {
    const Convolution *conv = context;
    size_t real = compute_bytes(conv->compute);
    DType dtype = compute_dtype(conv->compute);
    char *columns = scratch_take((size_t)((conv->depth + conv->outs) * conv->tile) * real);
    char *products = columns + (size_t)(conv->depth * conv->tile) * real;
    for (int64_t task = begin; task < end; task++) {
        int64_t first = task % conv->tiles * conv->tile;
        int64_t group = task / conv->tiles % conv->groups, n = task / conv->tiles / conv->groups;
        int64_t count = minimum(conv->tile, conv->positions - first);
        int64_t plane =
            n * conv->image->strides[0] + group * conv->channels * conv->image->strides[1];
        fill_columns(conv, plane, first, count, columns);
        const char *weight = conv->packed + (size_t)(group * conv->outs * conv->depth) * real;
        if (conv->depth == 0)
            memset(products, 0, (size_t)(conv->outs * count) * real);
        else
            blas_product(&(BlasProduct){
                .compute = conv->compute,
                .a = {dtype, weight, conv->outs, conv->depth, conv->depth, 1},
                .b = {dtype, columns, conv->depth, count, count, 1},
                .c = products,
                .c_stride = count,
            });
        store_tile(conv, n, group * conv->outs, first, count, products);
    }
    scratch_give(columns);
}

Status cpu_kernel_CONV2D(const KernelCall *call) {
    TRY(blas_load());
    const int64_t *integers = call->options.integers;
    Convolution conv = {
        .image = call->inputs[0].view,
        .weight = call->inputs[1].view,
        .bias = call->n_inputs > 2 ? call->inputs[2].view : NULL,
        .out = call->outputs[0],
        .stride = {integers[0], integers[1]},
        .padding = {integers[2], integers[3]},
        .dilation = {integers[4], integers[5]},
        .groups = integers[6],
    };
    const TensorView *image = conv.image, *weight = conv.weight, *out = conv.out;
    if (!dtype_is_float(image->dtype) || !dtype_is_float(weight->dtype))
        return fail(STATUS_DTYPE, "%s has no kernel on the cpu for %s with a weight of %s",
                    call->op_name, dtype_name(image->dtype), dtype_name(weight->dtype));
    ASSERT(image->rank == 4 && weight->rank == 4 && out->rank == 4 && conv.groups > 0 &&
           image->dims[1] == weight->dims[1] * conv.groups && out->dims[1] == weight->dims[0]);
    conv.positions = out->dims[2] * out->dims[3];
    conv.channels = weight->dims[1];
    conv.outs = weight->dims[0] / conv.groups;
    conv.depth = conv.channels * weight->dims[2] * weight->dims[3];
    if (conv.positions * out->dims[0] * out->dims[1] == 0) return STATUS_OK;
    bool wide = image->dtype == DTYPE_FLOAT64 || weight->dtype == DTYPE_FLOAT64;
    conv.compute = wide ? COMPUTE_F64 : COMPUTE_F32;
    conv.tile = COLUMN_NUMBERS / (conv.depth + 1);
    if (conv.tile < POSITIONS_MIN) conv.tile = POSITIONS_MIN;
    conv.tile = minimum(minimum(conv.tile, POSITIONS_MAX), conv.positions);
    conv.tiles = (conv.positions + conv.tile - 1) / conv.tile;
    size_t numbers = (size_t)(weight->dims[0] * conv.depth);
    conv.packed = memory_allocate(numbers * compute_bytes(conv.compute));
    pack_weight(&conv);
    double work = (double)conv.tile * (double)conv.depth * (double)(conv.outs + 1);
    cpu_parallel(out->dims[0] * conv.groups * conv.tiles, (int64_t)(PARALLEL_WORK / (work + 1)) + 1,
                 run_tiles, &conv);
    free(conv.packed);
    return STATUS_OK;
}
