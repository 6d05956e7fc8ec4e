// The POOL2D kernel: the largest or the mean number of each window. Padding never counts.
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "device/cpu/convert.h"

typedef struct Pooling {
    const TensorView *image, *out;
    CpuCompute compute;
    bool average;
    int64_t window[2], stride[2], padding[2];
} Pooling;

typedef struct Window { // the part of a window that lies inside the image
    int64_t y, y_end, x, x_end;
} Window;

static Window clip(const Pooling *pooling, int64_t out_y, int64_t out_x) {
    int64_t y = out_y * pooling->stride[0] - pooling->padding[0];
    int64_t x = out_x * pooling->stride[1] - pooling->padding[1];
    int64_t y_end = y + pooling->window[0], x_end = x + pooling->window[1];
    int64_t height = pooling->image->dims[2], width = pooling->image->dims[3];
    return (Window){y < 0 ? 0 : y, y_end > height ? height : y_end, x < 0 ? 0 : x,
                    x_end > width ? width : x_end};
}

// plane: [height, width] contiguous. NaN is larger than every number. An empty window has the mean
// 0.
#define DEFINE_POOL(real, lowest)                                                                  \
    static real largest_##real(const real *plane, int64_t width, Window window) {                  \
        real best = lowest;                                                                        \
        for (int64_t y = window.y; y < window.y_end; y++)                                          \
            for (int64_t x = window.x; x < window.x_end; x++) {                                    \
                real value = plane[y * width + x];                                                 \
                if (!(value <= best) && best == best) best = value;                                \
            }                                                                                      \
        return best;                                                                               \
    }                                                                                              \
    static real mean_##real(const real *plane, int64_t width, Window window) {                     \
        int64_t count = (window.y_end - window.y) * (window.x_end - window.x);                     \
        real sum = 0;                                                                              \
        for (int64_t y = window.y; y < window.y_end; y++)                                          \
            for (int64_t x = window.x; x < window.x_end; x++) sum += plane[y * width + x];         \
        return count > 0 ? sum / (real)count : 0;                                                  \
    }                                                                                              \
    static void pool_row_##real(const Pooling *pooling, const void *plane, int64_t out_y,          \
                                void *row) {                                                       \
        int64_t width = pooling->image->dims[3];                                                   \
        for (int64_t x = 0; x < pooling->out->dims[3]; x++) {                                      \
            Window window = clip(pooling, out_y, x);                                               \
            ((real *)row)[x] = pooling->average ? mean_##real(plane, width, window)                \
                                                : largest_##real(plane, width, window);            \
        }                                                                                          \
    }
DEFINE_POOL(float, -INFINITY)
DEFINE_POOL(double, -(double)INFINITY)
DEFINE_POOL(int64_t, INT64_MIN)

typedef void (*PoolRow)(const Pooling *pooling, const void *plane, int64_t out_y, void *row);
static const PoolRow pool_rows[COMPUTE_COUNT] = {[COMPUTE_F32] = pool_row_float,
                                                 [COMPUTE_F64] = pool_row_double,
                                                 [COMPUTE_I64] = pool_row_int64_t};

static char *view_at(const TensorView *view, int64_t elements) {
    return (char *)cpu_pointer(view) + elements * (int64_t)dtype_size(view->dtype);
}

static void pool_planes(void *context, int64_t begin, int64_t end) {
    const Pooling *pooling = context;
    const TensorView *image = pooling->image, *out = pooling->out;
    int64_t height = image->dims[2], width = image->dims[3];
    size_t real = compute_bytes(pooling->compute);
    ConvertLoad load = cpu_convert()->load[pooling->compute][image->dtype];
    ConvertStore store = cpu_convert()->store[pooling->compute][out->dtype];
    char *plane = memory_allocate((size_t)(height * width) * real);
    char *row = memory_allocate((size_t)out->dims[3] * real);
    for (int64_t task = begin; task < end; task++) {
        int64_t n = task / image->dims[1], c = task % image->dims[1];
        int64_t from = n * image->strides[0] + c * image->strides[1];
        int64_t to = n * out->strides[0] + c * out->strides[1];
        for (int64_t y = 0; y < height; y++)
            load(plane + (size_t)(y * width) * real, view_at(image, from + y * image->strides[2]),
                 image->strides[3], width);
        for (int64_t y = 0; y < out->dims[2]; y++) {
            pool_rows[pooling->compute](pooling, plane, y, row);
            store(view_at(out, to + y * out->strides[2]), out->strides[3], row, out->dims[3]);
        }
    }
    free(plane);
    free(row);
}

Status cpu_kernel_POOL2D(const KernelCall *call) {
    const int64_t *integers = call->options.integers;
    Pooling pooling = {
        .image = call->inputs[0].view,
        .out = call->outputs[0],
        .average = call->options.op == 1,
        .window = {integers[0], integers[1]},
        .stride = {integers[2], integers[3]},
        .padding = {integers[4], integers[5]},
    };
    const TensorView *image = pooling.image, *out = pooling.out;
    ASSERT(image->rank == 4 && out->rank == 4 && image->dims[1] == out->dims[1]);
    if (dtype_is_quant(image->dtype))
        return fail(STATUS_DTYPE, "%s has no kernel on the cpu for %s", call->op_name,
                    dtype_name(image->dtype));
    pooling.compute = compute_of(image->dtype);
    if (out->dims[0] * out->dims[1] * out->dims[2] * out->dims[3] == 0) return STATUS_OK;
    int64_t work = out->dims[2] * out->dims[3] + 1;
    cpu_parallel(image->dims[0] * image->dims[1], 4096 / work + 1, pool_planes, &pooling);
    return STATUS_OK;
}
