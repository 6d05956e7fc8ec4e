// What the timings of a device's kernels share: operands, rounds, rows of the table. Included once
// by each program, which names its sections. Knows no kernel.
#ifndef TESTS_BENCH_DEVICE_H
#define TESTS_BENCH_DEVICE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/buffer.h"
#include "device/kernel.h"
#include "device/statistics.h"

enum { ROUNDS = 3, VIEWS_MAX = 5 };
static const double round_seconds = 0.03, wake_seconds = 0.3;

static Device *device;

static inline double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void require(Status status) {
    if (status == STATUS_OK) return;
    fprintf(stderr, "%s\n", error_current()->message);
    exit(1);
}

// A call with its operands: the output first, then the inputs.
typedef struct Bench {
    KernelCall call;
    TensorView views[VIEWS_MAX];
    int n_views;
    // Each run takes the next of so many operands that lie behind each other in the last view, too
    // many for a cache; 0: always the same.
    int turns;
    size_t turn_bytes;
} Bench;

static inline int64_t count_of(const TensorView *view) {
    int64_t count = 1;
    for (int d = 0; d < view->rank; d++) count *= view->dims[d];
    return count;
}

static inline size_t bytes_of(const TensorView *view) {
    const DTypeInfo *info = &dtype_info[view->dtype];
    return (size_t)(count_of(view) / info->block_elements * info->block_bytes);
}

// Numbers of a distribution of RANDOM: 0 to 1, normal, or whole ones from 0 below `end`.
static inline void fill_random(const TensorView *view, int distribution, int64_t end) {
    KernelCall call = {
        .kernel = KERNEL_RANDOM,
        .n_outputs = 1,
        .outputs = {view},
        .options = {.op = distribution, .scalars = {0, 1}, .integers = {7, 0, 0, end}},
        .op_name = "random"};
    require(device->backend->run(device, &call));
}

// Normal numbers for floats, 0 and 1 for whole ones; for blocks 16-bit words that are small numbers
// where they are a scale.
static inline void fill(const TensorView *view) {
    if (!dtype_is_quant(view->dtype)) {
        fill_random(view, dtype_is_float(view->dtype) ? 1 : 2, 2);
        return;
    }
    size_t bytes = bytes_of(view);
    uint16_t *words = malloc(bytes + 2);
    uint32_t state = 12345;
    for (size_t i = 0; i < bytes / 2; i++) {
        state = state * 1664525u + 1013904223u;
        words[i] = (uint16_t)(0x2000 + (state >> 16) % 0x0C00);
    }
    require(buffer_upload(view->buffer, view->offset, words, bytes));
    free(words);
}

// A contiguous operand of these dims, ended by 0.
static inline TensorView *add(Bench *bench, DType dtype, const int64_t *dims) {
    TensorView *view = &bench->views[bench->n_views];
    *view = (TensorView){.dtype = dtype};
    for (; dims[view->rank] > 0; view->rank++) view->dims[view->rank] = dims[view->rank];
    int64_t stride = 1;
    for (int d = view->rank - 1; d >= 0; d--) {
        view->strides[d] = stride;
        stride *= view->dims[d];
    }
    BufferLabel label = {.rank = -1};
    require(buffer_new(device, bytes_of(view), &label, &view->buffer));
    fill(view);
    if (bench->n_views == 0) {
        bench->call.outputs[0] = view;
        bench->call.n_outputs = 1;
    } else {
        bench->call.inputs[bench->call.n_inputs++].view = view;
    }
    bench->n_views++;
    return view;
}
#define ADD(bench, dtype, ...) add(bench, dtype, (int64_t[]){__VA_ARGS__, 0})

static inline void swap_dims(TensorView *view, int a, int b) {
    int64_t dim = view->dims[a], stride = view->strides[a];
    view->dims[a] = view->dims[b];
    view->strides[a] = view->strides[b];
    view->dims[b] = dim;
    view->strides[b] = stride;
}

static inline Bench begin(KernelId kernel) {
    return (Bench){.call = {.kernel = kernel, .op_name = "bench"}};
}

static inline double time_runs(Bench *bench, int runs) {
    double start = seconds();
    TensorView *last = &bench->views[bench->n_views - 1];
    for (int i = 0; i < runs; i++) {
        if (bench->turns > 0) last->offset = (size_t)(i % bench->turns) * bench->turn_bytes;
        require(device->backend->run(device, &bench->call));
    }
    require(device->backend->wait(device));
    return seconds() - start;
}

// Seconds of one run: the best of a few rounds long enough that waiting does not count. Before
// them a device that idled while the operands were made gets time to reach its clock.
static inline double measure(Bench *bench) {
    double start = seconds();
    for (int runs = 1; seconds() - start < wake_seconds; runs *= 2) time_runs(bench, runs);
    int runs = 1;
    double took = time_runs(bench, runs);
    while (took < round_seconds && runs < 1 << 20) {
        runs = took > 0 ? (int)(runs * fmin(16, 1.3 * round_seconds / took)) + 1 : runs * 16;
        took = time_runs(bench, runs);
    }
    double best = took / runs;
    for (int i = 1; i < ROUNDS; i++) best = fmin(best, time_runs(bench, runs) / runs);
    return best;
}

static inline void finish(Bench *bench) {
    for (int i = 0; i < bench->n_views; i++) buffer_release(bench->views[i].buffer);
}

static inline void row(const char *section, const char *name, double value, const char *unit) {
    printf("%s\t%s\t%.4g\t%s\n", section, name, value, unit);
    fflush(stdout);
}

// Prints the bytes of all operands over the time, and lets the operands go.
static inline void row_of_bytes(Bench *bench, const char *section, const char *name) {
    double bytes = 0;
    for (int i = 0; i < bench->n_views; i++) bytes += (double)bytes_of(&bench->views[i]);
    row(section, name, bytes * 1e-9 / measure(bench), "GB/s");
    finish(bench);
}

typedef struct Section {
    const char *name;
    void (*run)(int64_t size);
    bool by_elements; // size: elements of the operands, else the largest matrix
} Section;

// PROGRAM DEVICE [ELEMENTS [GEMM_MAX [SECTION...]]]
static inline int run_sections(int argc, char **argv, const Section *sections, size_t count) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s DEVICE [ELEMENTS [GEMM_MAX [SECTION...]]]\n", argv[0]);
        return 2;
    }
    int64_t n = argc > 2 ? atoll(argv[2]) : INT64_C(64) << 20;
    int64_t largest = argc > 3 ? atoll(argv[3]) : 8192;
    require(device_open(argv[1], &device));
    printf("device\t%s\t0\t%s\n", device->name, device->description);
    for (size_t i = 0; i < count; i++) {
        bool wanted = argc <= 4;
        for (int k = 4; k < argc; k++) wanted |= strcmp(argv[k], sections[i].name) == 0;
        if (wanted) sections[i].run(sections[i].by_elements ? n : largest);
    }
    pool_clear_cache(device);
    device_close(device);
    return 0;
}

#endif
