// How fast the kernels of a device are: bench_device DEVICE [ELEMENTS [GEMM_MAX [SECTION...]]]. One
// line a row, "section<TAB>name<TAB>value<TAB>unit"; GB/s count bytes read and written once. Checks
// nothing.
#include "tests/bench/device.h"

// --- moving and maps

static void bench_copies(int64_t n) {
    Bench copy = begin(KERNEL_COPY);
    ADD(&copy, DTYPE_FLOAT32, n);
    ADD(&copy, DTYPE_FLOAT32, n);
    row_of_bytes(&copy, "copy", "float32");
    Bench cast = begin(KERNEL_COPY);
    ADD(&cast, DTYPE_FLOAT16, n);
    ADD(&cast, DTYPE_FLOAT32, n);
    row_of_bytes(&cast, "copy", "float32 to float16");
    Bench turn = begin(KERNEL_COPY);
    int64_t side = (int64_t)sqrt((double)n);
    ADD(&turn, DTYPE_FLOAT32, side, side);
    swap_dims(ADD(&turn, DTYPE_FLOAT32, side, side), 0, 1);
    row_of_bytes(&turn, "copy", "float32 transposed");
    Bench halves = begin(KERNEL_COPY);
    ADD(&halves, DTYPE_FLOAT16, side, side);
    swap_dims(ADD(&halves, DTYPE_FLOAT16, side, side), 0, 1);
    row_of_bytes(&halves, "copy", "float16 transposed");
    Bench heads = begin(KERNEL_COPY);
    ADD(&heads, DTYPE_FLOAT32, 32, n / 4096, 128);
    swap_dims(ADD(&heads, DTYPE_FLOAT32, n / 4096, 32, 128), 0, 1);
    row_of_bytes(&heads, "copy", "float32 heads permuted");
}

static void bench_map(const char *name, MapOp op, DType dtype, int64_t n, int operands) {
    Bench bench = begin(KERNEL_MAP);
    for (int i = 0; i <= operands; i++) ADD(&bench, dtype, n);
    bench.call.options =
        (KernelOptions){.n_steps = 1, .steps = {{(uint16_t)op, 0, 1, 2}}, .compute = DTYPE_FLOAT32};
    row_of_bytes(&bench, "map", name);
}

static void bench_maps(int64_t n) {
    bench_map("add", MAP_ADD, DTYPE_FLOAT32, n, 2);
    bench_map("add float16", MAP_ADD, DTYPE_FLOAT16, n, 2);
    bench_map("add bfloat16", MAP_ADD, DTYPE_BFLOAT16, n, 2);
    bench_map("relu", MAP_RELU, DTYPE_FLOAT32, n, 1);
    bench_map("exp", MAP_EXP, DTYPE_FLOAT32, n, 1);
    bench_map("sigmoid", MAP_SIGMOID, DTYPE_FLOAT32, n, 1);
    bench_map("tanh", MAP_TANH, DTYPE_FLOAT32, n, 1);
    bench_map("div", MAP_DIV, DTYPE_FLOAT32, n, 2);
    Bench bias = begin(KERNEL_MAP);
    ADD(&bias, DTYPE_FLOAT32, n / 4096, 4096);
    ADD(&bias, DTYPE_FLOAT32, n / 4096, 4096);
    TensorView *row_view = ADD(&bias, DTYPE_FLOAT32, 1, 4096);
    row_view->dims[0] = n / 4096;
    row_view->strides[0] = 0;
    bias.call.options =
        (KernelOptions){.n_steps = 1, .steps = {{MAP_ADD, 0, 1, 2}}, .compute = DTYPE_FLOAT32};
    row("map", "add a row", (double)n * 8e-9 / measure(&bias), "GB/s");
    finish(&bias);
}

// One formula over operands of these dtypes, the output's first.
static void bench_formula(const char *name, MapOp op, const DType *dtypes, int operands,
                          int64_t n) {
    Bench bench = begin(KERNEL_MAP);
    for (int i = 0; i <= operands; i++) ADD(&bench, dtypes[i], n);
    DType compute = dtype_is_float(dtypes[operands]) ? DTYPE_FLOAT32 : DTYPE_INT64;
    bench.call.options =
        (KernelOptions){.n_steps = 1, .steps = {{(uint16_t)op, 0, 1, 2}}, .compute = compute};
    row_of_bytes(&bench, "dtypes", name);
}

static void bench_cast(DType from, DType to, int64_t n) {
    Bench cast = begin(KERNEL_COPY);
    ADD(&cast, to, n);
    ADD(&cast, from, n);
    char name[64];
    snprintf(name, sizeof name, "%s to %s", dtype_name(from), dtype_name(to));
    row_of_bytes(&cast, "dtypes", name);
}

static void bench_dtypes(int64_t n) {
    static const DType whole[] = {DTYPE_UINT8, DTYPE_INT16, DTYPE_INT32, DTYPE_INT64};
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "add %s", dtype_name(whole[i]));
        bench_formula(name, MAP_ADD, (DType[]){whole[i], whole[i], whole[i]}, 2, n);
    }
    const DType f = DTYPE_FLOAT32, whole_32 = DTYPE_INT32;
    bench_formula("floor_div int32", MAP_FLOOR_DIV, (DType[]){whole_32, whole_32, whole_32}, 2, n);
    bench_formula("less float32", MAP_LT, (DType[]){DTYPE_BOOL, f, f}, 2, n);
    bench_formula("where float32", MAP_WHERE, (DType[]){f, DTYPE_BOOL, f, f}, 3, n);
    static const DType casts[][2] = {{DTYPE_UINT8, DTYPE_FLOAT32},   {DTYPE_INT32, DTYPE_FLOAT32},
                                     {DTYPE_INT64, DTYPE_FLOAT32},   {DTYPE_FLOAT32, DTYPE_INT32},
                                     {DTYPE_INT32, DTYPE_INT64},     {DTYPE_BOOL, DTYPE_INT64},
                                     {DTYPE_FLOAT32, DTYPE_FLOAT64}, {DTYPE_INT64, DTYPE_FLOAT64}};
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
        bench_cast(casts[i][0], casts[i][1], n);
}

// --- rows

static void bench_reduce(const char *name, ReduceOp op, DType dtype, const int64_t dims[2],
                         bool columns) {
    Bench bench = begin(KERNEL_REDUCE);
    ADD(&bench, dtype, dims[0]);
    TensorView *in = ADD(&bench, dtype, dims[0], dims[1]);
    if (columns) {
        in->dims[0] = dims[1];
        in->dims[1] = dims[0];
        in->strides[0] = dims[0];
        swap_dims(in, 0, 1);
    }
    bench.call.options = (KernelOptions){.op = (int)op, .count = 1};
    row_of_bytes(&bench, "reduce", name);
}

static void bench_reductions(int64_t n) {
    const DType f = DTYPE_FLOAT32;
    bench_reduce("sum of all", REDUCE_SUM, f, (int64_t[]){1, n}, false);
    bench_reduce("sum of rows of 4096", REDUCE_SUM, f, (int64_t[]){n / 4096, 4096}, false);
    bench_reduce("sum of rows of 64", REDUCE_SUM, f, (int64_t[]){n / 64, 64}, false);
    bench_reduce("sum of columns", REDUCE_SUM, f, (int64_t[]){4096, n / 4096}, true);
    bench_reduce("max of rows of 4096", REDUCE_MAX, f, (int64_t[]){n / 4096, 4096}, false);
    bench_reduce("variance of rows of 4096", REDUCE_VAR, f, (int64_t[]){n / 4096, 4096}, false);
    bench_reduce("sum of rows of 4096 int64", REDUCE_SUM, DTYPE_INT64, (int64_t[]){n / 4096, 4096},
                 false);
    Bench arg = begin(KERNEL_ARG_REDUCE);
    ADD(&arg, DTYPE_INT64, n / 4096);
    ADD(&arg, DTYPE_FLOAT32, n / 4096, 4096);
    row_of_bytes(&arg, "reduce", "argmax of rows of 4096");
}

static void bench_rows(const char *name, KernelId kernel, DType dtype, int64_t n, int64_t width) {
    Bench bench = begin(kernel);
    ADD(&bench, dtype, n / width, width);
    ADD(&bench, dtype, n / width, width);
    if (kernel != KERNEL_SOFTMAX) ADD(&bench, dtype, width);
    bench.call.options = (KernelOptions){.count = 1, .scalars = {1e-5}};
    row_of_bytes(&bench, "rows", name);
}

static void bench_all_rows(int64_t n) {
    bench_rows("softmax of 4096", KERNEL_SOFTMAX, DTYPE_FLOAT32, n, 4096);
    bench_rows("softmax of 32768", KERNEL_SOFTMAX, DTYPE_FLOAT32, n, 32768);
    bench_rows("softmax of 50257", KERNEL_SOFTMAX, DTYPE_FLOAT32, n, 50257);
    bench_rows("softmax of 131072", KERNEL_SOFTMAX, DTYPE_FLOAT32, n, 131072);
    bench_rows("softmax of 4096 float64", KERNEL_SOFTMAX, DTYPE_FLOAT64, n, 4096);
    bench_rows("softmax of 256", KERNEL_SOFTMAX, DTYPE_FLOAT32, n, 256);
    bench_rows("softmax of 4096 float16", KERNEL_SOFTMAX, DTYPE_FLOAT16, n, 4096);
    bench_rows("rms_norm of 4096", KERNEL_RMS_NORM, DTYPE_FLOAT32, n, 4096);
    bench_rows("layer_norm of 4096", KERNEL_LAYER_NORM, DTYPE_FLOAT32, n, 4096);
    bench_rows("layer_norm of 4096 float64", KERNEL_LAYER_NORM, DTYPE_FLOAT64, n, 4096);
    bench_rows("layer_norm of 4096 float16", KERNEL_LAYER_NORM, DTYPE_FLOAT16, n, 4096);
}

// --- products

static void bench_product(DType dtype, int64_t size, bool transposed) {
    Bench bench = begin(KERNEL_MATMUL);
    ADD(&bench, dtype, size, size);
    ADD(&bench, dtype, size, size);
    TensorView *b = ADD(&bench, dtype, size, size);
    if (transposed) swap_dims(b, 0, 1);
    char name[64];
    snprintf(name, sizeof name, "%s %lld%s", dtype_name(dtype), (long long)size,
             transposed ? " b transposed" : "");
    row("gemm", name, 2e-12 * (double)size * (double)size * (double)size / measure(&bench),
        "TFLOP/s");
    finish(&bench);
}

static void bench_products(int64_t largest) {
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16};
    for (int i = 0; i < 3; i++) {
        for (int64_t size = 1024; size <= largest; size *= 2) bench_product(dtypes[i], size, false);
        if (largest >= 4096) bench_product(dtypes[i], 4096, true);
    }
    if (largest < 1024)
        for (int i = 0; i < 3; i++) bench_product(dtypes[i], largest, false);
}

static void bench_vector(DType weight, DType dtype, int64_t rows, int64_t n) {
    int64_t k = 4096, columns = n / k * 8;
    Bench bench = begin(KERNEL_MATMUL);
    ADD(&bench, dtype, rows, columns);
    ADD(&bench, dtype, rows, k);
    swap_dims(ADD(&bench, weight, columns, k), 0, 1);
    char name[64];
    snprintf(name, sizeof name, "%lld x %s", (long long)rows, dtype_name(weight));
    row_of_bytes(&bench, "vector", name);
}

static void bench_vectors(int64_t n) {
    static const DType weights[] = {DTYPE_Q4_0,  DTYPE_Q8_0,  DTYPE_Q6_K,    DTYPE_Q4_K,
                                    DTYPE_Q5_K,  DTYPE_Q2_K,  DTYPE_Q3_K,    DTYPE_Q4_1,
                                    DTYPE_Q5_0,  DTYPE_Q5_1,  DTYPE_IQ4_NL,  DTYPE_IQ4_XS,
                                    DTYPE_TQ1_0, DTYPE_TQ2_0, DTYPE_FLOAT16, DTYPE_FLOAT32};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        bench_vector(weights[i], DTYPE_FLOAT32, 1, n);
    for (int64_t rows = 2; rows <= 8; rows *= 2) {
        bench_vector(DTYPE_Q4_0, DTYPE_FLOAT32, rows, n);
        bench_vector(DTYPE_Q6_K, DTYPE_FLOAT32, rows, n);
    }
}

static void bench_attention(const char *name, int64_t queries, int64_t keys, DType dtype) {
    Bench bench = begin(KERNEL_ATTENTION);
    ADD(&bench, dtype, queries, 32, 128);
    ADD(&bench, dtype, queries, 32, 128);
    ADD(&bench, dtype, keys, 8, 128);
    ADD(&bench, dtype, keys, 8, 128);
    bench.call.options = (KernelOptions){.flag = true, .scalars = {0.088}};
    double took = measure(&bench);
    double size = (double)dtype_size(dtype) * 2 * (double)keys * 8 * 128;
    if (queries == 1)
        row("attention", name, size * 1e-9 / took, "GB/s");
    else
        row("attention", name, 2e-12 * (double)queries * (double)keys * 32 * 128 / took, "TFLOP/s");
    finish(&bench);
}

static void bench_heads(int64_t largest) {
    int64_t keys = largest >= 1024 ? 4096 : 256;
    bench_attention("1 query, float32", 1, keys, DTYPE_FLOAT32);
    bench_attention("1 query, float16", 1, keys, DTYPE_FLOAT16);
    bench_attention("causal float32", keys / 2, keys / 2, DTYPE_FLOAT32);
    bench_attention("causal float16", keys / 2, keys / 2, DTYPE_FLOAT16);
}

static void bench_pictures(const char *name, int64_t side, DType dtype) {
    Bench bench = begin(KERNEL_CONV2D);
    ADD(&bench, dtype, 8, 64, side, side);
    ADD(&bench, dtype, 8, 64, side, side);
    ADD(&bench, dtype, 64, 64, 3, 3);
    bench.call.options = (KernelOptions){.integers = {1, 1, 1, 1, 1, 1, 1}};
    double work = 2e-12 * 8 * 64 * 64 * 9 * (double)(side * side);
    row("convolution", name, work / measure(&bench), "TFLOP/s");
    finish(&bench);
}

static void bench_convolution(int64_t largest) {
    int64_t side = largest >= 1024 ? 112 : 28;
    bench_pictures("3 x 3, 64 channels", side, DTYPE_FLOAT32);
    bench_pictures("3 x 3, 64 channels, float16", side, DTYPE_FLOAT16);
}

// Microseconds of the kernels of one decoded token of a llama of 1.1 B, one after the other.
static void row_of_token(Bench *bench, const char *name) {
    row("token", name, measure(bench) * 1e6, "us");
    finish(bench);
}

// Weights come from memory, as those of a model do.
static void bench_token_product(const char *name, DType weight, int64_t k, int64_t n) {
    enum { COLD_BYTES = 160 << 20, TURNS_MAX = 64 };
    Bench bench = begin(KERNEL_MATMUL);
    ADD(&bench, DTYPE_FLOAT32, 1, n);
    ADD(&bench, DTYPE_FLOAT32, 1, k);
    const DTypeInfo *info = &dtype_info[weight];
    bench.turn_bytes = (size_t)(n * k / info->block_elements * info->block_bytes);
    bench.turns = (int)(COLD_BYTES / bench.turn_bytes) + 1;
    if (bench.turns > TURNS_MAX) bench.turns = TURNS_MAX;
    TensorView *matrix = ADD(&bench, weight, n * bench.turns, k);
    matrix->dims[0] = n;
    swap_dims(matrix, 0, 1);
    row_of_token(&bench, name);
}

static void bench_token(int64_t largest) {
    int64_t width = largest >= 1024 ? 2048 : 256;
    Bench norm = begin(KERNEL_RMS_NORM);
    for (int i = 0; i < 2; i++) ADD(&norm, DTYPE_FLOAT32, 1, width);
    ADD(&norm, DTYPE_FLOAT32, width);
    norm.call.options = (KernelOptions){.count = 1, .scalars = {1e-5}};
    row_of_token(&norm, "rms_norm");
    bench_token_product("q4_0 2048 x 2048", DTYPE_Q4_0, width, width);
    bench_token_product("q4_0 2048 x 256", DTYPE_Q4_0, width, width / 8);
    bench_token_product("q4_0 2048 x 5632", DTYPE_Q4_0, width, width / 4 * 11);
    bench_token_product("q4_0 5632 x 2048", DTYPE_Q4_0, width / 4 * 11 / 32 * 32, width);
    bench_token_product("q4_0 2048 x 32000", DTYPE_Q4_0, width, width * 125 / 8);
    bench_token_product("q8_0 2048 x 2048", DTYPE_Q8_0, width, width);
    bench_token_product("q8_0 2048 x 32000", DTYPE_Q8_0, width, width * 125 / 8);
    bench_token_product("q6_k 2048 x 5632", DTYPE_Q6_K, width, width / 4 * 11);
    bench_token_product("f16 2048 x 2048", DTYPE_FLOAT16, width, width);
    bench_token_product("f16 2048 x 256", DTYPE_FLOAT16, width, width / 8);
    bench_token_product("f16 2048 x 5632", DTYPE_FLOAT16, width, width / 4 * 11);
    bench_token_product("f16 5632 x 2048", DTYPE_FLOAT16, width / 4 * 11, width);
    Bench rope = begin(KERNEL_ROPE);
    for (int i = 0; i < 2; i++) ADD(&rope, DTYPE_FLOAT32, 1, 32, 64);
    rope.call.options = (KernelOptions){.scalars = {10000, 1}, .integers = {5, 64}};
    row_of_token(&rope, "rope");
    Bench heads = begin(KERNEL_ATTENTION);
    for (int i = 0; i < 2; i++) ADD(&heads, DTYPE_FLOAT32, 1, 32, 64);
    for (int i = 0; i < 2; i++) ADD(&heads, DTYPE_FLOAT32, 128, 4, 64);
    heads.call.options = (KernelOptions){.flag = true, .scalars = {0.125}};
    row_of_token(&heads, "attention to 128 keys");
    Bench sum = begin(KERNEL_MAP);
    for (int i = 0; i < 3; i++) ADD(&sum, DTYPE_FLOAT32, width);
    sum.call.options =
        (KernelOptions){.n_steps = 1, .steps = {{MAP_ADD, 0, 1, 2}}, .compute = DTYPE_FLOAT32};
    row_of_token(&sum, "add");
    Bench copy = begin(KERNEL_COPY);
    for (int i = 0; i < 2; i++) ADD(&copy, DTYPE_FLOAT32, width / 8);
    row_of_token(&copy, "copy");
    Bench choice = begin(KERNEL_ARG_REDUCE);
    ADD(&choice, DTYPE_INT64, 1);
    ADD(&choice, DTYPE_FLOAT32, 1, width * 125 / 8);
    row_of_token(&choice, "argmax of 32000");
}

// Many rows of float32 by weights: what a prompt consists of.
static void bench_rows_by(DType weight, int64_t m, int64_t k, int64_t n) {
    Bench bench = begin(KERNEL_MATMUL);
    ADD(&bench, DTYPE_FLOAT32, m, n);
    ADD(&bench, DTYPE_FLOAT32, m, k);
    swap_dims(ADD(&bench, weight, n, k), 0, 1);
    char name[64];
    snprintf(name, sizeof name, "%ld rows by %s %ld x %ld", (long)m, dtype_name(weight), (long)k,
             (long)n);
    row("prompt", name, 2e-12 * (double)m * (double)k * (double)n / measure(&bench), "TFLOP/s");
    finish(&bench);
}

static void bench_prompt(int64_t largest) {
    static const DType weights[] = {DTYPE_FLOAT16, DTYPE_Q4_0, DTYPE_Q4_K};
    static const DType large[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_Q4_0};
    int64_t width = largest >= 1024 ? 2048 : 256;
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        bench_rows_by(weights[i], width / 4, width, width);
        bench_rows_by(weights[i], width / 4, width, width / 4 * 11);
    }
    bench_rows_by(DTYPE_FLOAT16, width / 4, width, width / 8);
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        bench_rows_by(large[i], 2 * width, 2 * width, 2 * width);
}

// Time of the host for one small operation whose work is queued, and with the device's time.
static void bench_submission(int64_t largest) {
    (void)largest;
    enum { RUNS = 20000 };
    Bench bench = begin(KERNEL_MAP);
    for (int i = 0; i < 3; i++) ADD(&bench, DTYPE_FLOAT32, 256);
    bench.call.options =
        (KernelOptions){.n_steps = 1, .steps = {{MAP_ADD, 0, 1, 2}}, .compute = DTYPE_FLOAT32};
    time_runs(&bench, 100);
    double host = INFINITY, whole = INFINITY;
    for (int round = 0; round < 5; round++) {
        double start = seconds();
        for (int i = 0; i < RUNS; i++) require(device->backend->run(device, &bench.call));
        host = fmin(host, (seconds() - start) / RUNS);
        require(device->backend->wait(device));
        whole = fmin(whole, (seconds() - start) / RUNS);
    }
    row("submit", "host and device, dependent", whole * 1e6, "us");
    // Few enough that the host never waits for room.
    double alone = INFINITY;
    for (int round = 0; round < 50; round++) {
        double start = seconds();
        for (int i = 0; i < 1000; i++) require(device->backend->run(device, &bench.call));
        alone = fmin(alone, (seconds() - start) / 1000);
        require(device->backend->wait(device));
    }
    row("submit", "host alone", fmin(alone, host) * 1e6, "us");
    float number;
    double read = INFINITY;
    for (int round = 0; round < 200; round++) {
        double start = seconds();
        require(device->backend->run(device, &bench.call));
        require(buffer_download(bench.views[0].buffer, 0, &number, sizeof number));
        read = fmin(read, seconds() - start);
    }
    row("submit", "run and read one number", read * 1e6, "us");
    finish(&bench);
}

int main(int argc, char **argv) {
    static const Section sections[] = {
        {"copy", bench_copies, true},        {"map", bench_maps, true},
        {"reduce", bench_reductions, true},  {"rows", bench_all_rows, true},
        {"dtypes", bench_dtypes, true},      {"vector", bench_vectors, true},
        {"attention", bench_heads, false},   {"convolution", bench_convolution, false},
        {"token", bench_token, false},       {"prompt", bench_prompt, false},
        {"submit", bench_submission, false}, {"gemm", bench_products, false},
    };
    return run_sections(argc, argv, sections, sizeof sections / sizeof *sections);
}
