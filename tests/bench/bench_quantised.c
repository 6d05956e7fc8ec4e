// Products of rows of activations with quantised weights on the CPU, in GB of stored weights a
// second, next to the rate of reading memory in the same run; for many rows in thousand million
// operations a second. Weights lie in memory as if in a mapped file, 512 MB of each type, so
// that no cache holds them. One thread is timed by its processor time, which others at work
// disturb least; several by the clock on the wall.
//   bench_quantised [types and rows ...]     (default all types, 1 64 512; TL_THREADS as
//   everywhere)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "device/cpu/cpu.h"

enum { COLUMNS = 2048, WEIGHT_BYTES = 512 << 20, ROUNDS = 5, COUNTS_MAX = 8 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(cpu_thread_count() == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void keep(void *owner) {
    (void)owner;
}

static void keep_pages(const void *begin, size_t bytes) {
    (void)begin;
    (void)bytes;
}

static char *weights_new(void) {
    char *bytes =
        mmap(NULL, WEIGHT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) exit(1);
    memset(bytes, 0x15, WEIGHT_BYTES); // every float16 among the bytes is a small number
    return bytes;
}

static void check(Status status) {
    if (status == STATUS_OK) return;
    fprintf(stderr, "%s\n", error_current()->message);
    exit(1);
}

typedef uint64_t Words __attribute__((vector_size(64)));

static void sum_bytes(void *context, int64_t begin, int64_t end) {
    const Words *words = context;
    Words sums = {0}, more = {0};
    for (int64_t i = begin; i + 2 <= end; i += 2) {
        sums += words[i];
        more += words[i + 1];
    }
    static volatile uint64_t sink;
    sums += more;
    sink = sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
    (void)sink;
}

static double read_rate(void) {
    char *bytes = weights_new();
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = seconds();
        cpu_parallel(WEIGHT_BYTES / (int64_t)sizeof(Words), 1 << 13, sum_bytes, bytes);
        double taken = seconds() - start;
        best = taken < best ? taken : best;
    }
    munmap(bytes, WEIGHT_BYTES);
    return WEIGHT_BYTES / best * 1e-9;
}

static double product_seconds(Device *device, DType dtype, int64_t rows, double *operations) {
    const DTypeInfo *info = &dtype_info[dtype];
    int64_t n = WEIGHT_BYTES / (COLUMNS / info->block_elements * info->block_bytes) / 16 * 16;
    size_t bytes = (size_t)(n * (COLUMNS / info->block_elements * info->block_bytes));
    Buffer *weight, *activations, *results;
    char *memory = weights_new();
    HostMemory file = {memory, bytes, memory, keep, keep_pages};
    check(buffer_import(device, &file, NULL, &weight));
    check(buffer_new(device, (size_t)(rows * COLUMNS) * 4, NULL, &activations));
    check(buffer_new(device, (size_t)(rows * n) * 4, NULL, &results));
    float *numbers = activations->handle;
    for (int64_t i = 0; i < rows * COLUMNS; i++) numbers[i] = (float)(i * 7 % 101 - 50) * 0.01f;
    TensorView a = {activations, 0, DTYPE_FLOAT32, 2, {rows, COLUMNS}, {COLUMNS, 1}};
    TensorView b = {weight, 0, dtype, 2, {COLUMNS, n}, {1, COLUMNS}};
    TensorView out = {results, 0, DTYPE_FLOAT32, 2, {rows, n}, {n, 1}};
    KernelCall call = {.kernel = KERNEL_MATMUL, .n_inputs = 2, .n_outputs = 1, .op_name = "matmul"};
    call.inputs[0].view = &a;
    call.inputs[1].view = &b;
    call.outputs[0] = &out;
    double best = 1e9;
    for (int round = 0; round <= ROUNDS; round++) { // the first interleaves the weights
        double start = seconds();
        check(device->backend->run(device, &call));
        double taken = seconds() - start;
        if (round > 0) best = taken < best ? taken : best;
    }
    *operations = 2.0 * (double)rows * (double)n * COLUMNS;
    buffer_release(weight);
    buffer_release(activations);
    buffer_release(results);
    munmap(memory, WEIGHT_BYTES);
    return best;
}

// The arguments that are numbers; how many, 3 where there are none.
static int take_counts(int argc, char **argv, long *counts) {
    int count = 0;
    for (int i = 1; i < argc && count < COUNTS_MAX; i++)
        if (atol(argv[i]) > 0) counts[count++] = atol(argv[i]);
    return count > 0 ? count : 3;
}

// All types are where no argument names one.
static bool is_wanted(DType dtype, int argc, char **argv) {
    bool all = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], dtype_name(dtype)) == 0) return true;
        all &= atol(argv[i]) > 0;
    }
    return all;
}

int main(int argc, char **argv) {
    static const DType types[] = {
        DTYPE_FLOAT32, DTYPE_BFLOAT16, DTYPE_FLOAT16, DTYPE_Q8_0,    DTYPE_Q4_0,
        DTYPE_Q4_1,    DTYPE_Q5_0,     DTYPE_Q5_1,    DTYPE_Q2_K,    DTYPE_Q3_K,
        DTYPE_Q4_K,    DTYPE_Q5_K,     DTYPE_Q6_K,    DTYPE_IQ4_NL,  DTYPE_IQ4_XS,
        DTYPE_TQ1_0,   DTYPE_TQ2_0,    DTYPE_MXFP4,   DTYPE_IQ2_XXS, DTYPE_IQ2_XS,
        DTYPE_IQ2_S,   DTYPE_IQ3_XXS,  DTYPE_IQ3_S,   DTYPE_IQ1_S,   DTYPE_IQ1_M};
    Device *device;
    check(device_open("cpu", &device));
    long counts[COUNTS_MAX] = {1, 64, 512};
    int count = take_counts(argc, argv, counts);
    double read = read_rate();
    printf("%d thread%s, reading %.1f GB/s\n", cpu_thread_count(),
           cpu_thread_count() == 1 ? "" : "s", read);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        if (!is_wanted(types[t], argc, argv)) continue;
        printf("%-8s", dtype_name(types[t]));
        for (int i = 0; i < count; i++) {
            double operations, taken = product_seconds(device, types[t], counts[i], &operations);
            double rate = WEIGHT_BYTES / taken * 1e-9;
            printf("   %ld rows %7.2f GB/s (%.2f) %7.1f GOP/s", counts[i], rate, rate / read,
                   operations / taken * 1e-9);
        }
        printf("\n");
        fflush(stdout);
    }
    device_close(device);
    return 0;
}
