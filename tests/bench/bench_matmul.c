// How fast matrix products are: float32 next to BLAS called directly, float16 next to float32, and
// vectors by weights in bytes of weight per second next to plain reading. Prints; checks nothing.
#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/half.h"
#include "device/cpu/cpu.h"

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// The best of several runs: what the code can do, not what else the machine did.
static double best_time(void (*run)(void *), void *context) {
    double best = INFINITY, end = seconds() + 0.6;
    run(context);
    do {
        double start = seconds();
        run(context);
        double took = seconds() - start;
        if (took < best) best = took;
    } while (seconds() < end);
    return best;
}

typedef struct Product {
    KernelCall call;
    TensorView views[3];
    Buffer buffers[3];
} Product;

static void fill(void *bytes, DType dtype, size_t size) {
    for (size_t i = 0; i < size / 2; i++)
        ((uint16_t *)bytes)[i] = (uint16_t)(0x2C00 + i * 37 % 2048);
    if (dtype != DTYPE_FLOAT32) return;
    for (size_t i = 0; i < size / 4; i++) ((float *)bytes)[i] = (float)(i * 37 % 2048) * 1e-3f - 1;
}

static size_t bytes_of(DType dtype, int64_t count) {
    return (size_t)(count / dtype_info[dtype].block_elements * dtype_info[dtype].block_bytes);
}

// a[m, k] @ b; b is stored [n, k] when transposed, else [k, n].
static Product *make(DType dtype, DType weight, const int64_t mnk[3], bool transposed) {
    Product *product = calloc(1, sizeof *product);
    int64_t m = mnk[0], n = mnk[1], k = mnk[2];
    TensorView views[3] = {
        {.dtype = dtype, .rank = 2, .dims = {m, k}, .strides = {k, 1}},
        {.dtype = weight,
         .rank = 2,
         .dims = {k, n},
         .strides = {transposed ? 1 : n, transposed ? k : 1}},
        {.dtype = dtype, .rank = 2, .dims = {m, n}, .strides = {n, 1}},
    };
    for (int i = 0; i < 3; i++) {
        size_t bytes = bytes_of(views[i].dtype, views[i].dims[0] * views[i].dims[1]);
        product->buffers[i].handle = aligned_alloc(64, (bytes + 63) / 64 * 64);
        fill(product->buffers[i].handle, views[i].dtype, bytes);
        product->views[i] = views[i];
        product->views[i].buffer = &product->buffers[i];
    }
    product->call =
        (KernelCall){.kernel = KERNEL_MATMUL, .n_inputs = 2, .n_outputs = 1, .op_name = "matmul"};
    product->call.inputs[0].view = &product->views[0];
    product->call.inputs[1].view = &product->views[1];
    product->call.outputs[0] = &product->views[2];
    return product;
}

static void destroy(Product *product) {
    for (int i = 0; i < 3; i++) free(product->buffers[i].handle);
    free(product);
}

static void run_kernel(void *context) {
    Product *product = context;
    if (cpu_kernel_MATMUL(&product->call) != STATUS_OK) abort();
}

static void run_blas(void *context) {
    Product *product = context;
    int m = (int)product->views[0].dims[0], n = (int)product->views[1].dims[1],
        k = (int)product->views[0].dims[1];
    omp_set_num_threads(cpu_thread_count()); // the kernel takes them away
    bool transposed = product->views[1].strides[1] != 1;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, transposed ? CblasTrans : CblasNoTrans, m, n, k, 1,
                product->buffers[0].handle, k, product->buffers[1].handle, transposed ? k : n, 0,
                product->buffers[2].handle, n);
}

static double measure(DType dtype, DType weight, const int64_t mnk[3], bool transposed) {
    Product *product = make(dtype, weight, mnk, transposed);
    double took = best_time(run_kernel, product);
    destroy(product);
    return took;
}

static void bench_square(int64_t size) {
    int64_t mnk[3] = {size, size, size};
    Product *product = make(DTYPE_FLOAT32, DTYPE_FLOAT32, mnk, false);
    double kernel = best_time(run_kernel, product), blas = best_time(run_blas, product);
    destroy(product);
    double half = measure(DTYPE_FLOAT16, DTYPE_FLOAT16, mnk, true);
    double brain = measure(DTYPE_BFLOAT16, DTYPE_BFLOAT16, mnk, false);
    double blocks = measure(DTYPE_FLOAT32, DTYPE_Q4_0, mnk, true);
    double whole = size <= 512 ? measure(DTYPE_INT32, DTYPE_INT32, mnk, false) : NAN;
    double flops = 2e-9 * (double)(size * size * size);
    printf("%5lld^3: blas %7.1f GFLOP/s; float32 %.2f, float16 %.2f, bfloat16 %.2f, q4_0 %.2f, "
           "int32 %.2f of it\n",
           (long long)size, flops / blas, blas / kernel, blas / half, blas / brain, blas / blocks,
           blas / whole);
}

static void run_read(void *context) {
    Product *product = context;
    const float *numbers = product->buffers[1].handle;
    size_t count =
        bytes_of(DTYPE_FLOAT32, product->views[1].dims[0] * product->views[1].dims[1]) / 4;
    if (isnan(cblas_sasum((int)count, numbers, 1))) abort();
}

// Few rows by a [n, k] that is transposed and by [k, n]: next to BLAS, which is given the same.
static void bench_few_rows(int64_t rows, int64_t size) {
    int64_t mnk[3] = {rows, size, size};
    double flops = 2e-9 * (double)(rows * size * size);
    printf("%3lld x %lld @ [%lld, %lld]:", (long long)rows, (long long)size, (long long)size,
           (long long)size);
    for (int transposed = 0; transposed < 2; transposed++) {
        Product *product = make(DTYPE_FLOAT32, DTYPE_FLOAT32, mnk, transposed);
        double kernel = best_time(run_kernel, product), blas = best_time(run_blas, product);
        printf("  %s %.1f GFLOP/s (%.2f of blas)", transposed ? "transposed" : "as it lies",
               flops / kernel, blas / kernel);
        destroy(product);
    }
    printf("\n");
}

static void bench_vectors(int64_t rows, bool transposed) {
    static const DType weights[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16,
                                    DTYPE_Q8_0,    DTYPE_Q6_K,    DTYPE_Q4_0};
    int64_t mnk[3] = {rows, 16384, 4096};
    printf("%lld x 4096 @ %s:", (long long)rows, transposed ? "[16384, 4096]^T" : "[4096, 16384]");
    for (int i = 0; i < (transposed ? 6 : 3); i++) {
        double took = measure(DTYPE_FLOAT32, weights[i], mnk, transposed);
        printf("  %s %.1f GB/s", dtype_name(weights[i]),
               (double)bytes_of(weights[i], mnk[1] * mnk[2]) * 1e-9 / took);
    }
    printf("\n");
}

static void bench_tiny(int64_t size) {
    int64_t mnk[3] = {size, size, size};
    printf("%3lld^3: kernel %.0f ns, transposed %.0f ns\n", (long long)size,
           measure(DTYPE_FLOAT32, DTYPE_FLOAT32, mnk, false) * 1e9,
           measure(DTYPE_FLOAT32, DTYPE_FLOAT32, mnk, true) * 1e9);
}

int main(void) {
    for (int64_t size = 2; size <= 64; size *= 2) bench_tiny(size);
    for (int64_t size = 256; size <= 2048; size *= 2) bench_square(size);
    for (int64_t size = 512; size <= 2048; size *= 4)
        for (int64_t rows = 1; rows <= 24; rows += rows < 4 ? 1 : 4) bench_few_rows(rows, size);
    Product *product = make(DTYPE_FLOAT32, DTYPE_FLOAT32, (int64_t[]){1, 16384, 4096}, true);
    double took = best_time(run_read, product);
    printf("reading: %.1f GB/s\n", 16384.0 * 4096 * 4e-9 / took);
    destroy(product);
    bench_vectors(1, true);
    bench_vectors(1, false);
    bench_vectors(4, true);
    bench_vectors(8, true);
    bench_vectors(16, true);
    return 0;
}
