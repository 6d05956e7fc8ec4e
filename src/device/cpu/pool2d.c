// The kernels POOL2D, the largest or the mean number of each window, and POOL2D_IMAGE, its
// gradient. Padding never counts.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/iterate.h"
#include "device/cpu/windows.h"

enum { TASK_NUMBERS = 1 << 14 };

typedef struct Pooling {
    const TensorView *image, *out; // in POOL2D_IMAGE: as in the forward pass
    CpuCompute compute;
    bool average;
    bool fours; // the largest of windows of two by two, side by side
    const WindowRows *rows;
    Windows windows;
    char *gradient; // POOL2D_IMAGE: of the image, contiguous
} Pooling;

static void prepare(const KernelCall *call, const TensorView *image, const TensorView *out,
                    Pooling *pooling) {
    const int64_t *integers = call->options.integers;
    ASSERT(image->rank == 4 && out->rank == 4 && image->dims[1] == out->dims[1]);
    *pooling = (Pooling){.image = image,
                         .out = out,
                         .compute = compute_of(out->dtype),
                         .average = call->options.op == 1};
    pooling->rows = CPU_CHOOSE(window_rows)(pooling->compute);
    for (int d = 0; d < 2; d++) {
        pooling->windows.image[d] = image->dims[2 + d];
        pooling->windows.out[d] = out->dims[2 + d];
        pooling->windows.size[d] = integers[d];
        pooling->windows.stride[d] = integers[2 + d];
        pooling->windows.padding[d] = integers[4 + d];
        pooling->windows.dilation[d] = 1;
    }
    bool twos = true;
    for (int d = 0; d < 2; d++)
        twos = twos && integers[d] == 2 && integers[2 + d] == 2 && integers[4 + d] == 0;
    pooling->fours = twos && !pooling->average;
    windows_prepare(&pooling->windows);
}

// Calls `visit` for each element of the window that outputs of row out_y read in the image.
typedef struct Visit {
    const Pooling *pooling;
    const char *plane; // [height, width] of the compute type
    char *row;         // numbers of the outputs, or of the image's gradient
    LargestShare share;
    int64_t *counts;
} Visit;
typedef void (*VisitRun)(const Visit *visit, int64_t image_at, int64_t out_x, int64_t count);

static void visit_row(const Visit *visit, int64_t out_y, VisitRun run) {
    const Windows *w = &visit->pooling->windows;
    const WindowPlace *columns = w->places[1];
    for (int64_t i = 0; i < w->size[0]; i++) {
        const WindowPlace *down = &w->places[0][i];
        if (out_y < down->begin || out_y >= down->end) continue;
        int64_t row = (out_y * w->stride[0] + down->shift) * w->image[1];
        for (int64_t j = 0; j < w->size[1]; j++) {
            const WindowPlace *across = &columns[j];
            if (across->begin < across->end)
                run(visit, row + across->begin * w->stride[1] + across->shift, across->begin,
                    across->end - across->begin);
        }
    }
}

static void visit_largest(const Visit *visit, int64_t image_at, int64_t out_x, int64_t count) {
    const Pooling *p = visit->pooling;
    int64_t real = (int64_t)compute_bytes(p->compute);
    p->rows->take_largest(visit->row + out_x * real, visit->plane + image_at * real,
                          p->windows.stride[1], count);
}

static void visit_sum(const Visit *visit, int64_t image_at, int64_t out_x, int64_t count) {
    const Pooling *p = visit->pooling;
    int64_t real = (int64_t)compute_bytes(p->compute);
    p->rows->gather_add(visit->row + out_x * real, visit->plane + image_at * real,
                        p->windows.stride[1], count);
}

static void visit_count(const Visit *visit, int64_t image_at, int64_t out_x, int64_t count) {
    (void)image_at;
    for (int64_t x = out_x; x < out_x + count; x++) visit->counts[x]++;
}

static void make_row(const Visit *visit, int64_t out_y) {
    const Pooling *p = visit->pooling;
    int64_t width = p->windows.out[1];
    size_t real = compute_bytes(p->compute);
    if (p->fours) {
        const char *upper = visit->plane + (size_t)(2 * out_y * p->windows.image[1]) * real;
        p->rows->largest_of_four(visit->row, upper, upper + (size_t)p->windows.image[1] * real,
                                 width);
        return;
    }
    if (!p->average) {
        p->rows->begin_largest(visit->row, width);
        visit_row(visit, out_y, visit_largest);
        return;
    }
    memset(visit->row, 0, (size_t)width * real);
    memset(visit->counts, 0, (size_t)width * sizeof *visit->counts);
    visit_row(visit, out_y, visit_sum);
    visit_row(visit, out_y, visit_count);
    p->rows->divide(visit->row, visit->counts, width);
}

// The plane itself where it lies as it is needed, else a copy in `scratch`.
static const char *read_plane(const Pooling *p, int64_t at, char *scratch) {
    const TensorView *image = p->image;
    int64_t height = image->dims[2], width = image->dims[3];
    if (image->dtype == compute_dtype(p->compute) && image->strides[3] == 1 &&
        image->strides[2] == width)
        return cpu_at(image, at);
    ConvertLoad load = cpu_convert()->load[p->compute][image->dtype];
    for (int64_t y = 0; y < height; y++)
        load(scratch + (size_t)(y * width) * compute_bytes(p->compute),
             cpu_at(image, at + y * image->strides[2]), image->strides[3], width);
    return scratch;
}

static void pool_planes(void *context, int64_t begin, int64_t end) {
    const Pooling *p = context;
    const TensorView *image = p->image, *out = p->out;
    size_t real = compute_bytes(p->compute);
    ConvertStore store = cpu_convert()->store[p->compute][out->dtype];
    SCOPED_MEMORY char *plane = memory_allocate((size_t)(image->dims[2] * image->dims[3]) * real);
    Visit visit = {.pooling = p,
                   .row = memory_allocate((size_t)out->dims[3] * real),
                   .counts = memory_allocate((size_t)out->dims[3] * sizeof(int64_t))};
    for (int64_t task = begin; task < end; task++) {
        int64_t n = task / image->dims[1], c = task % image->dims[1];
        int64_t to = n * out->strides[0] + c * out->strides[1];
        visit.plane = read_plane(p, n * image->strides[0] + c * image->strides[1], plane);
        for (int64_t y = 0; y < out->dims[2]; y++) {
            make_row(&visit, y);
            store(cpu_at(out, to + y * out->strides[2]), out->strides[3], visit.row, out->dims[3]);
        }
    }
    free(visit.row);
    free(visit.counts);
}

Status cpu_kernel_POOL2D(const KernelCall *call) {
    const TensorView *image = call->inputs[0].view, *out = call->outputs[0];
    if (dtype_is_quant(image->dtype))
        return fail(STATUS_DTYPE, "%s has no kernel on the cpu for %s", call->op_name,
                    dtype_name(image->dtype));
    if (view_count(out) == 0) return STATUS_OK;
    Pooling pooling;
    prepare(call, image, out, &pooling);
    int64_t work = image->dims[2] * image->dims[3] + 1;
    cpu_parallel(image->dims[0] * image->dims[1], TASK_NUMBERS / work + 1, pool_planes, &pooling);
    windows_free(&pooling.windows);
    return STATUS_OK;
}

// --- the gradient

static void visit_share(const Visit *visit, int64_t image_at, int64_t out_x, int64_t count) {
    const Pooling *p = visit->pooling;
    int64_t real = (int64_t)compute_bytes(p->compute);
    LargestShare share = {(const char *)visit->share.best + out_x * real,
                          (char *)visit->share.left + out_x * real};
    p->rows->share_largest(visit->row + image_at * real, visit->plane + image_at * real,
                           p->windows.stride[1], count, &share);
}

static void visit_spread(const Visit *visit, int64_t image_at, int64_t out_x, int64_t count) {
    const Pooling *p = visit->pooling;
    int64_t real = (int64_t)compute_bytes(p->compute);
    p->rows->scatter_add(visit->row + image_at * real,
                         (const char *)visit->share.left + out_x * real, p->windows.stride[1],
                         count);
}

// `best` is scratch of a row.
static void share_row(Visit *visit, int64_t out_y, const char *up, char *best) {
    const Pooling *p = visit->pooling;
    int64_t width = p->windows.out[1];
    if (p->fours) {
        size_t row = (size_t)p->windows.image[1] * compute_bytes(p->compute);
        size_t at = (size_t)(2 * out_y) * row;
        p->rows->share_of_four((void *[]){visit->row + at, visit->row + at + row},
                               (const void *[]){visit->plane + at, visit->plane + at + row}, up,
                               width);
        return;
    }
    p->rows->copy(visit->share.left, up, 1, width);
    if (p->average) {
        memset(visit->counts, 0, (size_t)width * sizeof *visit->counts);
        visit_row(visit, out_y, visit_count);
        p->rows->divide(visit->share.left, visit->counts, width);
        visit_row(visit, out_y, visit_spread);
        return;
    }
    char *gradient = visit->row;
    visit->row = best;
    make_row(visit, out_y);
    visit->row = gradient;
    visit->share.best = best;
    visit_row(visit, out_y, visit_share);
}

static void share_planes(void *context, int64_t begin, int64_t end) {
    const Pooling *p = context;
    const TensorView *up = p->out;
    size_t real = compute_bytes(p->compute);
    int64_t plane = p->image->dims[2] * p->image->dims[3], width = up->dims[3];
    SCOPED_MEMORY char *best = memory_allocate((size_t)width * real);
    Visit visit = {.pooling = p,
                   .counts = memory_allocate((size_t)width * sizeof(int64_t)),
                   .share.left = memory_allocate((size_t)width * real)};
    for (int64_t task = begin; task < end; task++) {
        visit.row = p->gradient + (size_t)(task * plane) * real;
        visit.plane = p->average ? NULL : cpu_at(p->image, task * plane);
        memset(visit.row, 0, (size_t)plane * real);
        for (int64_t y = 0; y < up->dims[2]; y++)
            share_row(&visit, y, cpu_at(up, (task * up->dims[2] + y) * width), best);
    }
    free(visit.counts);
    free(visit.share.left);
}

Status cpu_kernel_POOL2D_IMAGE(const KernelCall *call) {
    const TensorView *up = call->inputs[0].view, *gradient = call->outputs[0];
    const TensorView *image = call->n_inputs > 1 ? call->inputs[1].view : gradient;
    if (up->dtype != DTYPE_FLOAT32 && up->dtype != DTYPE_FLOAT64)
        return fail(STATUS_DTYPE, "%s has no gradient kernel on the cpu for %s", call->op_name,
                    dtype_name(up->dtype));
    if (view_count(gradient) == 0) return STATUS_OK;
    Pooling pooling;
    prepare(call, image, up, &pooling);
    pooling.gradient = cpu_pointer(gradient);
    int64_t work = image->dims[2] * image->dims[3] + 1;
    cpu_parallel(image->dims[0] * image->dims[1], TASK_NUMBERS / work + 1, share_planes, &pooling);
    windows_free(&pooling.windows);
    return STATUS_OK;
}
