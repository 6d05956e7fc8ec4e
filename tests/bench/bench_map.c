// How fast elementwise kernels, reductions and row kernels run: the cost of a tiny call, and bytes
// per second of large ones next to memcpy. Reads no result: tests do.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/cpu/cpu.h"

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static TensorView vector_view(Buffer *buffer, DType dtype, int64_t count) {
    return (TensorView){
        .buffer = buffer, .dtype = dtype, .rank = 1, .dims = {count}, .strides = {1}};
}

static Buffer buffer_over(void *memory) {
    return (Buffer){.handle = memory};
}

static KernelCall map_call(MapOp op, DType compute, const TensorView *out) {
    KernelCall call = {.kernel = KERNEL_MAP, .n_outputs = 1, .outputs = {out}, .op_name = "bench"};
    call.options.compute = compute;
    call.options.n_steps = 1;
    call.options.steps[0] = (MapStep){(uint16_t)op, 0, 1, 2};
    return call;
}

// The best of several runs, in seconds per call.
static double time_call(Status (*kernel)(const KernelCall *), const KernelCall *call, int repeats) {
    double best = 1e9;
    for (int round = 0; round < 7; round++) {
        double start = seconds_now();
        for (int i = 0; i < repeats; i++)
            if (kernel(call) != STATUS_OK) exit(1);
        double each = (seconds_now() - start) / repeats;
        if (each < best) best = each;
    }
    return best;
}

static void *fresh_memory(size_t bytes) {
    void *memory = aligned_alloc(1 << 21, (bytes + (1 << 21)) >> 21 << 21);
    if (!memory) exit(1);
    memset(memory, 0x3C, bytes);
    return memory;
}

static void bench_map(const char *name, MapOp op, int operands, DType dtype, int64_t count) {
    size_t bytes = (size_t)count * dtype_size(dtype);
    void *memory[4];
    Buffer buffers[4];
    TensorView views[4];
    for (int k = 0; k <= operands; k++) {
        memory[k] = fresh_memory(bytes);
        buffers[k] = buffer_over(memory[k]);
        views[k] = vector_view(&buffers[k], dtype, count);
    }
    DType compute = dtype == DTYPE_FLOAT64 ? DTYPE_FLOAT64
                                           : (dtype_is_float(dtype) ? DTYPE_FLOAT32 : DTYPE_INT64);
    KernelCall call = map_call(op, compute, &views[operands]);
    call.n_inputs = operands;
    for (int k = 0; k < operands; k++) call.inputs[k].view = &views[k];
    double each = time_call(cpu_kernel_MAP, &call, count < 100000 ? 20000 : 1);
    double moved = (double)bytes * (operands + 1);
    printf("%-10s %-9s %9lld elements: %10.1f ns, %6.1f GB/s\n", name, dtype_name(dtype),
           (long long)count, each * 1e9, moved / each * 1e-9);
    for (int k = 0; k <= operands; k++) free(memory[k]);
}

// Kernels over the last dim of [rows, columns]: reductions give [rows], the others the same shape.
static void bench_rows(const char *name, KernelId kernel, int op, const int64_t dims[2],
                       bool columns) {
    static Status (*const kernels[KERNEL_COUNT])(const KernelCall *) = {
        [KERNEL_REDUCE] = cpu_kernel_REDUCE,
        [KERNEL_ARG_REDUCE] = cpu_kernel_ARG_REDUCE,
        [KERNEL_SCAN] = cpu_kernel_SCAN,
        [KERNEL_SOFTMAX] = cpu_kernel_SOFTMAX,
        [KERNEL_LAYER_NORM] = cpu_kernel_LAYER_NORM,
    };
    size_t bytes = (size_t)(dims[0] * dims[1]) * 4;
    Buffer in = buffer_over(fresh_memory(bytes)), out = buffer_over(fresh_memory(bytes * 2));
    TensorView views[2] = {vector_view(&in, DTYPE_FLOAT32, 0), vector_view(&out, DTYPE_FLOAT32, 0)};
    bool reduces = kernel == KERNEL_REDUCE || kernel == KERNEL_ARG_REDUCE;
    for (int v = 0; v < 2; v++) {
        views[v].rank = v == 1 && reduces ? 1 : 2;
        views[v].dims[0] = dims[0];
        views[v].dims[1] = dims[1];
        views[v].strides[0] = v == 1 && reduces ? 1 : (columns ? 1 : dims[1]);
        views[v].strides[1] = columns ? dims[0] : 1;
    }
    if (kernel == KERNEL_ARG_REDUCE) views[1].dtype = DTYPE_INT64;
    KernelCall call = {.kernel = kernel,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .outputs = {&views[1]},
                       .op_name = "bench"};
    call.inputs[0].view = &views[0];
    call.options.op = op;
    call.options.count = 1;
    double each = time_call(kernels[kernel], &call, bytes < 1000000 ? 2000 : 1);
    printf("%-10s [%lld, %lld]%s: %.1f ns, %.1f GB/s read\n", name, (long long)dims[0],
           (long long)dims[1], columns ? " in columns" : "", each * 1e9,
           (double)bytes / each * 1e-9);
    free(in.handle);
    free(out.handle);
}

typedef struct CopyTask {
    char *to;
    const char *from;
} CopyTask;

static void copy_part(void *context, int64_t begin, int64_t end) {
    const CopyTask *task = context;
    memcpy(task->to + begin, task->from + begin, (size_t)(end - begin));
}

static void bench_memcpy(size_t bytes) {
    CopyTask task = {fresh_memory(bytes), fresh_memory(bytes)};
    double best = 1e9;
    for (int round = 0; round < 7; round++) {
        double start = seconds_now();
        cpu_parallel((int64_t)bytes, 1 << 16, copy_part, &task);
        double each = seconds_now() - start;
        if (each < best) best = each;
    }
    printf("memcpy on %d threads: %.1f GB/s\n", cpu_thread_count(),
           2 * (double)bytes / best * 1e-9);
    free(task.to);
    free((void *)task.from);
}

int main(void) {
    static const struct {
        const char *name;
        MapOp op;
        int operands;
    } cases[] = {{"add", MAP_ADD, 2},   {"relu", MAP_RELU, 1},   {"exp", MAP_EXP, 1},
                 {"tanh", MAP_TANH, 1}, {"gelu", MAP_GELU, 1},   {"silu", MAP_SILU, 1},
                 {"pow", MAP_POW, 2},   {"where", MAP_WHERE, 3}, {"sqrt", MAP_SQRT, 1}};
    bench_memcpy(64u << 20);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench_map(cases[i].name, cases[i].op, cases[i].operands, DTYPE_FLOAT32, 4);
        bench_map(cases[i].name, cases[i].op, cases[i].operands, DTYPE_FLOAT32, 4096);
        bench_map(cases[i].name, cases[i].op, cases[i].operands, DTYPE_FLOAT32, 16 << 20);
        bench_map(cases[i].name, cases[i].op, cases[i].operands, DTYPE_FLOAT16, 16 << 20);
    }
    bench_map("add", MAP_ADD, 2, DTYPE_INT32, 16 << 20);
    static const struct {
        const char *name;
        KernelId kernel;
        int op;
    } rows[] = {{"sum", KERNEL_REDUCE, REDUCE_SUM},  {"max", KERNEL_REDUCE, REDUCE_MAX},
                {"var", KERNEL_REDUCE, REDUCE_VAR},  {"argmax", KERNEL_ARG_REDUCE, 0},
                {"cumsum", KERNEL_SCAN, 0},          {"softmax", KERNEL_SOFTMAX, 0},
                {"layer norm", KERNEL_LAYER_NORM, 0}};
    static const int64_t shapes[][2] = {
        {1, 4}, {1, 32000}, {1, 16 << 20}, {4096, 4096}, {1 << 20, 16}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            bench_rows(rows[i].name, rows[i].kernel, rows[i].op, shapes[s], false);
        bench_rows(rows[i].name, rows[i].kernel, rows[i].op, shapes[3], true);
    }
    return 0;
}
