// The kernels CONV2D_IMAGE and CONV2D_WINDOW: the gradients of a convolution. Everything is
// contiguous and of one type, float32 or float64.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/conv2d.h"
#include "device/cpu/iterate.h"
#include "device/cpu/matrix.h"
#include "device/cpu/scratch.h"

enum {
    BLOCK_ROWS = 256,        // of the columns that one thread makes: channels * window
    PARALLEL_WORK = 1 << 17, // multiplications that are worth a thread
    PARTS_MAX = 8,           // of the batch, each with a sum of its own
    PARTS_NUMBERS = 1 << 24, // that the sums may have in all
};

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static Status check_types(const KernelCall *call) {
    DType dtype = call->outputs[0]->dtype;
    if (dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64) return STATUS_OK;
    return fail(STATUS_DTYPE, "%s has no gradient kernel on the cpu for %s", call->op_name,
                dtype_name(dtype));
}

// --- the image: transpose(weight) @ up gives columns, which are spread over the image

typedef struct ImageGradient {
    Convolution conv;
    const char *up, *weight;
    char *image;
    int64_t block, blocks; // channels that are made together, and how many such there are
} ImageGradient;

static void spread_block(const ImageGradient *gradient, int64_t task, char *columns) {
    const Convolution *conv = &gradient->conv;
    size_t real = compute_bytes(conv->compute);
    DType dtype = compute_dtype(conv->compute);
    int64_t first_channel = task % gradient->blocks * gradient->block;
    int64_t channels = minimum(gradient->block, conv->channels - first_channel);
    int64_t group = task / gradient->blocks % conv->groups;
    int64_t n = task / gradient->blocks / conv->groups;
    int64_t window = conv->windows.size[0] * conv->windows.size[1], rows = channels * window;
    int64_t plane = conv->windows.image[0] * conv->windows.image[1];
    int64_t out = group * conv->outs, all_channels = conv->groups * conv->channels;
    char *planes =
        gradient->image +
        (size_t)((n * all_channels + group * conv->channels + first_channel) * plane) * real;
    const char *weight =
        gradient->weight + (size_t)(out * conv->depth + first_channel * window) * real;
    const char *up =
        gradient->up + (size_t)((n * conv->groups * conv->outs + out) * conv->positions) * real;
    memset(planes, 0, (size_t)(channels * plane) * real);
    for (int64_t first = 0; first < conv->positions; first += conv->tile) {
        int64_t count = minimum(conv->tile, conv->positions - first);
        matrix_product_serial(&(SerialProduct){
            .compute = conv->compute,
            .a = {dtype, weight, rows, conv->outs, 1, conv->depth},
            .b = {dtype, up + (size_t)first * real, conv->outs, count, conv->positions, 1},
            .c = columns,
            .c_stride = count,
        });
        convolution_spread(conv, channels, (Positions){first, count}, columns, planes);
    }
}

static void spread_blocks(void *context, int64_t begin, int64_t end) {
    const ImageGradient *gradient = context;
    const Convolution *conv = &gradient->conv;
    int64_t window = conv->windows.size[0] * conv->windows.size[1];
    char *columns =
        scratch_take((size_t)(minimum(gradient->block, conv->channels) * window * conv->tile) *
                     compute_bytes(conv->compute));
    for (int64_t task = begin; task < end && !cpu_interrupted(); task++)
        spread_block(gradient, task, columns);
    scratch_give(columns);
}

Status cpu_kernel_CONV2D_IMAGE(const KernelCall *call) {
    const TensorView *up = call->inputs[0].view, *weight = call->inputs[1].view;
    const TensorView *image = call->outputs[0];
    ASSERT(image->rank == 4 && weight->rank == 4 && view_is_contiguous(image));
    TRY(check_types(call));
    if (view_count(image) == 0) return STATUS_OK;
    if (view_count(up) == 0 || view_count(weight) == 0) {
        memset(cpu_pointer(image), 0, (size_t)view_count(image) * dtype_size(image->dtype));
        return STATUS_OK;
    }
    ImageGradient gradient = {
        .up = cpu_pointer(up), .weight = cpu_pointer(weight), .image = cpu_pointer(image)};
    Convolution *conv = &gradient.conv;
    convolution_prepare(call, image, weight, up, conv);
    int64_t window = weight->dims[2] * weight->dims[3];
    gradient.block = BLOCK_ROWS / window > 0 ? BLOCK_ROWS / window : 1;
    gradient.blocks = (conv->channels + gradient.block - 1) / gradient.block;
    double work = (double)conv->positions * (double)conv->outs *
                  (double)(minimum(gradient.block, conv->channels) * window);
    cpu_parallel(image->dims[0] * conv->groups * gradient.blocks,
                 (int64_t)(PARALLEL_WORK / (work + 1)) + 1, spread_blocks, &gradient);
    convolution_free(conv);
    return STATUS_OK;
}

// --- the weight: up @ transpose(columns), summed over the batch in parts of fixed size

typedef struct WindowGradient {
    Convolution conv;
    const char *up;
    char *sums;            // [parts, groups * outs, depth]
    int64_t images, parts; // of the batch
} WindowGradient;

static void sum_part(const WindowGradient *gradient, int64_t task, char *columns) {
    const Convolution *conv = &gradient->conv;
    size_t real = compute_bytes(conv->compute);
    DType dtype = compute_dtype(conv->compute);
    int64_t group = task % conv->groups, part = task / conv->groups;
    int64_t each = (gradient->images + gradient->parts - 1) / gradient->parts;
    int64_t out = group * conv->outs, all_outs = conv->groups * conv->outs;
    char *sums = gradient->sums + (size_t)((part * all_outs + out) * conv->depth) * real;
    int64_t last = minimum((part + 1) * each, gradient->images);
    bool first_product = true;
    for (int64_t n = part * each; n < last; n++)
        for (int64_t first = 0; first < conv->positions; first += conv->tile) {
            int64_t count = minimum(conv->tile, conv->positions - first);
            const char *up =
                gradient->up + (size_t)((n * all_outs + out) * conv->positions + first) * real;
            convolution_fill(conv, n, group, (Positions){first, count}, columns);
            matrix_product_serial(&(SerialProduct){
                .compute = conv->compute,
                .a = {dtype, up, conv->outs, count, conv->positions, 1},
                .b = {dtype, columns, count, conv->depth, 1, count},
                .c = sums,
                .c_stride = conv->depth,
                .accumulate = !first_product,
            });
            first_product = false;
        }
    if (first_product) memset(sums, 0, (size_t)(conv->outs * conv->depth) * real);
}

static void sum_parts(void *context, int64_t begin, int64_t end) {
    const WindowGradient *gradient = context;
    const Convolution *conv = &gradient->conv;
    char *columns = scratch_take((size_t)(conv->depth * conv->tile) * compute_bytes(conv->compute));
    for (int64_t task = begin; task < end && !cpu_interrupted(); task++)
        sum_part(gradient, task, columns);
    scratch_give(columns);
}

Status cpu_kernel_CONV2D_WINDOW(const KernelCall *call) {
    const TensorView *image = call->inputs[0].view, *up = call->inputs[1].view;
    const TensorView *weight = call->outputs[0];
    ASSERT(weight->rank == 4 && image->rank == 4 && view_is_contiguous(weight));
    int64_t numbers = view_count(weight), images = image->dims[0];
    TRY(check_types(call));
    if (numbers == 0) return STATUS_OK;
    if (view_count(up) == 0 || view_count(image) == 0) {
        memset(cpu_pointer(weight), 0, (size_t)numbers * dtype_size(weight->dtype));
        return STATUS_OK;
    }
    WindowGradient gradient = {.up = cpu_pointer(up), .images = images};
    Convolution *conv = &gradient.conv;
    convolution_prepare(call, image, weight, up, conv);
    int64_t parts = PARTS_NUMBERS / numbers;
    gradient.parts = minimum(minimum(parts > 1 ? parts : 1, PARTS_MAX), images);
    size_t bytes = (size_t)numbers * compute_bytes(conv->compute);
    char *target = cpu_pointer(weight), *more = NULL;
    if (gradient.parts > 1) more = memory_allocate(bytes * (size_t)gradient.parts);
    gradient.sums = more ? more : target;
    double work = (double)images * (double)conv->positions * (double)numbers;
    cpu_parallel(gradient.parts * conv->groups, (int64_t)(PARALLEL_WORK / (work + 1)) + 1,
                 sum_parts, &gradient);
    if (more) memcpy(target, more, bytes);
    for (int64_t part = 1; part < gradient.parts; part++)
        conv->rows->gather_add(target, more + bytes * (size_t)part, 1, numbers);
    free(more);
    convolution_free(conv);
    return STATUS_OK;
}
