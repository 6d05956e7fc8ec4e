// How fast a device makes numbers, scans, sorts and takes and puts by index: as bench_device.c,
// with the same arguments and lines. M/s are millions of numbers.
#include "tests/bench/device.h"

static void bench_random(const char *name, DType dtype, int distribution, int64_t n) {
    Bench bench = begin(KERNEL_RANDOM);
    ADD(&bench, dtype, n);
    bench.call.options =
        (KernelOptions){.op = distribution, .scalars = {0, 1}, .integers = {7, 0, 0, 1000}};
    row_of_bytes(&bench, "make", name);
}

static void bench_makes(int64_t n) {
    static const struct {
        const char *arange, *fill;
        DType dtype;
    } made[] = {{"arange float32", "fill float32", DTYPE_FLOAT32},
                {"arange int64", "fill int64", DTYPE_INT64},
                {"arange float16", "fill float16", DTYPE_FLOAT16}};
    for (int i = 0; i < 3; i++) {
        Bench arange = begin(KERNEL_ARANGE);
        ADD(&arange, made[i].dtype, n);
        arange.call.options = (KernelOptions){.scalars = {0, 1}, .integers = {0, 1}};
        row_of_bytes(&arange, "make", made[i].arange);
        Bench filled = begin(KERNEL_FILL);
        ADD(&filled, made[i].dtype, n);
        filled.call.inputs[0].scalar = (Scalar){.dtype = DTYPE_INT64, .as.i = 3};
        filled.call.n_inputs = 1;
        row_of_bytes(&filled, "make", made[i].fill);
    }
    bench_random("uniform float32", DTYPE_FLOAT32, 0, n);
    bench_random("normal float32", DTYPE_FLOAT32, 1, n);
    bench_random("normal float16", DTYPE_FLOAT16, 1, n);
    bench_random("integers int64", DTYPE_INT64, 2, n);
    bench_random("bernoulli float32", DTYPE_FLOAT32, 3, n);
}

static void bench_gather(const char *name, int op, int64_t rows, int64_t columns) {
    Bench bench = begin(KERNEL_GATHER);
    ADD(&bench, DTYPE_FLOAT32, rows, columns);
    ADD(&bench, DTYPE_FLOAT32, rows, columns);
    if (op == 0)
        fill_random(ADD(&bench, DTYPE_INT64, rows), 2, rows);
    else
        fill_random(ADD(&bench, DTYPE_INT64, rows, columns), 2, columns);
    bench.call.options = (KernelOptions){.op = op, .dim = op};
    row_of_bytes(&bench, "index", name);
}

// Adds up rows at indexes below `places`, or numbers within rows.
static void bench_scatter(const char *name, bool slices, const int64_t dims[2], int64_t places) {
    int64_t rows = dims[0], columns = dims[1], most = slices ? rows : columns;
    if (places > most) places = most;
    Bench bench = begin(KERNEL_SCATTER);
    ADD(&bench, DTYPE_FLOAT32, rows, columns);
    ADD(&bench, DTYPE_FLOAT32, rows, columns);
    if (slices)
        fill_random(ADD(&bench, DTYPE_INT64, rows), 2, places);
    else
        fill_random(ADD(&bench, DTYPE_INT64, rows, columns), 2, places);
    bench.call.options = (KernelOptions){.op = 1, .dim = !slices, .integers = {slices}};
    row_of_bytes(&bench, "index", name);
}

static void bench_indexes(int64_t n) {
    int64_t rows = n / 4096, few = n / 64, tokens = n / 32768;
    bench_gather("rows of 4096", 0, rows, 4096);
    bench_gather("rows of 64", 0, n / 64, 64);
    bench_gather("gather along rows of 4096", 1, rows, 4096);
    bench_scatter("index_add of rows of 4096", true, (int64_t[]){rows, 4096}, rows);
    bench_scatter("index_add of rows of 64", true, (int64_t[]){n / 64, 64}, 1000);
    bench_scatter("index_add of few rows of 4096", true, (int64_t[]){tokens, 4096}, tokens);
    bench_scatter("scatter_add along rows of 4096", false, (int64_t[]){rows, 4096}, 4096);
    bench_scatter("scatter_add of 1 M", false, (int64_t[]){1, few}, few);
    bench_scatter("scatter_add of 1 M to 1000", false, (int64_t[]){1, few}, 1000);
    bench_scatter("scatter_add of 64 M", false, (int64_t[]){1, n}, n);
    Bench put = begin(KERNEL_INDEX_PUT);
    ADD(&put, DTYPE_FLOAT32, n);
    ADD(&put, DTYPE_FLOAT32, n);
    ADD(&put, DTYPE_BOOL, n);
    row_of_bytes(&put, "index", "index_put");
    Bench places = begin(KERNEL_NONZERO);
    ADD(&places, DTYPE_INT64, n, 1);
    // All of them: as many as there are places.
    KernelCall ones = {.kernel = KERNEL_FILL, .n_inputs = 1, .n_outputs = 1, .op_name = "ones"};
    ones.inputs[0].scalar = (Scalar){.dtype = DTYPE_INT64, .as.i = 1};
    ones.outputs[0] = ADD(&places, DTYPE_BOOL, n);
    require(device->backend->run(device, &ones));
    row_of_bytes(&places, "index", "nonzero");
}

static void bench_scan(const char *name, DType dtype, int64_t rows, int64_t columns, bool turned) {
    Bench bench = begin(KERNEL_SCAN);
    for (int i = 0; i < 2; i++) {
        TensorView *view = ADD(&bench, dtype, rows, columns);
        if (turned) swap_dims(view, 0, 1);
    }
    row_of_bytes(&bench, "scan", name);
}

static void bench_scans(int64_t n) {
    bench_scan("cumsum of all", DTYPE_FLOAT32, 1, n, false);
    bench_scan("cumsum of all int64", DTYPE_INT64, 1, n, false);
    bench_scan("cumsum of all float16", DTYPE_FLOAT16, 1, n, false);
    bench_scan("cumsum of 1 M", DTYPE_FLOAT32, 1, n / 64, false);
    bench_scan("cumsum of 8 rows", DTYPE_FLOAT32, 8, n / 8, false);
    bench_scan("cumsum of rows of 4096", DTYPE_FLOAT32, n / 4096, 4096, false);
    bench_scan("cumsum of rows of 64", DTYPE_FLOAT32, n / 64, 64, false);
    bench_scan("cumsum of columns", DTYPE_FLOAT32, n / 4096, 4096, true);
}

static void bench_sort(const char *name, DType dtype, const int64_t dims[2], int64_t wanted) {
    Bench bench = begin(KERNEL_SORT);
    ADD(&bench, dtype, dims[0], wanted);
    TensorView *in = ADD(&bench, dtype, dims[0], dims[1]);
    if (!dtype_is_float(dtype)) fill_random(in, 2, INT64_C(1) << 40);
    bench.call.outputs[1] = add(&bench, DTYPE_INT64, (int64_t[]){dims[0], wanted, 0});
    bench.call.n_outputs = 2;
    bench.call.n_inputs = 1;
    bench.call.options = (KernelOptions){.count = (int)wanted};
    row("sort", name, (double)(dims[0] * dims[1]) * 1e-6 / measure(&bench), "M/s");
    finish(&bench);
}

static void bench_sorts(int64_t n) {
    bench_sort("all", DTYPE_FLOAT32, (int64_t[]){1, n}, n);
    bench_sort("all int64", DTYPE_INT64, (int64_t[]){1, n}, n);
    bench_sort("all float16", DTYPE_FLOAT16, (int64_t[]){1, n}, n);
    bench_sort("1 M", DTYPE_FLOAT32, (int64_t[]){1, n / 64}, n / 64);
    bench_sort("8 rows", DTYPE_FLOAT32, (int64_t[]){8, n / 8}, n / 8);
    bench_sort("rows of 4096", DTYPE_FLOAT32, (int64_t[]){n / 4096, 4096}, 4096);
    bench_sort("rows of 128", DTYPE_FLOAT32, (int64_t[]){n / 128, 128}, 128);
    bench_sort("rows of 16", DTYPE_FLOAT32, (int64_t[]){n / 16, 16}, 16);
    bench_sort("top 40 of 32000", DTYPE_FLOAT32, (int64_t[]){1, 32000}, 40);
    bench_sort("top 40 of rows of 32000", DTYPE_FLOAT32, (int64_t[]){n / 32768, 32000}, 40);
    bench_sort("top 100 of all", DTYPE_FLOAT32, (int64_t[]){1, n}, 100);
}

int main(int argc, char **argv) {
    static const Section sections[] = {
        {"make", bench_makes, true},
        {"scan", bench_scans, true},
        {"sort", bench_sorts, true},
        {"index", bench_indexes, true},
    };
    return run_sections(argc, argv, sections, sizeof sections / sizeof *sections);
}
