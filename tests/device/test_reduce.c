// REDUCE, ARG_REDUCE and SCAN against plain loops: every operation and dtype, rows and columns in
// awkward layouts, empty and rank 0, long rows in parts, special values; once per instruction set.
#include "arrays.h"

static const char *const op_names[] = {"sum",   "prod",      "max",        "min",
                                       "any",   "all",       "sum of abs", "sum of squares",
                                       "count", "logsumexp", "mean",       "var"};
enum { OP_COUNT = sizeof op_names / sizeof *op_names };

// Reference: `values` are the n numbers of one result.
static double expect_reduction(ReduceOp op, const double *values, int64_t n, double correction) {
    double sum = 0, product = 1, largest = -INFINITY, smallest = INFINITY, absolute = 0,
           squares = 0;
    int64_t nonzero = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = values[i];
        sum += x;
        product *= x;
        absolute += fabs(x);
        squares += x * x;
        nonzero += x != 0;
        if (x > largest || x != x) largest = largest != largest ? largest : x;
        if (x < smallest || x != x) smallest = smallest != smallest ? smallest : x;
    }
    double deviation = 0, exponentials = 0;
    for (int64_t i = 0; i < n; i++) {
        deviation += (values[i] - sum / (double)n) * (values[i] - sum / (double)n);
        exponentials += exp(values[i] - largest);
    }
    switch (op) {
    case REDUCE_SUM: return sum;
    case REDUCE_PROD: return product;
    case REDUCE_MAX: return largest;
    case REDUCE_MIN: return smallest;
    case REDUCE_ANY: return nonzero > 0;
    case REDUCE_ALL: return nonzero == n;
    case REDUCE_SUM_ABS: return absolute;
    case REDUCE_SUM_SQUARE: return squares;
    case REDUCE_COUNT_NONZERO: return (double)nonzero;
    case REDUCE_LOGSUMEXP: return isinf(largest) ? largest : largest + log(exponentials);
    case REDUCE_MEAN: return sum / (double)n;
    case REDUCE_VAR: return deviation / fmax((double)n - correction, 0);
    }
    return 0;
}

static KernelCall reduce_call(ReduceOp op, Array *in, Array *out, int count) {
    KernelCall call = {.kernel = KERNEL_REDUCE,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .inputs = {{.view = array_view(in)}},
                       .outputs = {array_view(out)},
                       .op_name = "test"};
    call.options.op = (int)op;
    call.options.count = count;
    call.options.scalars[0] = 1;
    return call;
}

static void run_reduce(ReduceOp op, Array *in, Array *out, int count) {
    KernelCall call = reduce_call(op, in, out, count);
    assert_int_equal(run_kernel(KERNEL_REDUCE, &call), STATUS_OK);
}

// Half a unit of the stored type beside the error of a sum: 1e-6 in what was summed.
static double tolerance(DType out, double expected, double magnitude) {
    double unit = out == DTYPE_FLOAT16    ? 0x1p-11
                  : out == DTYPE_BFLOAT16 ? 0x1p-8
                  : out == DTYPE_FLOAT32  ? 0x1p-23
                  : out == DTYPE_FLOAT64  ? 1e-13
                                          : 0;
    double exact = out == DTYPE_FLOAT64 ? 1e-13 : 2e-7;
    return unit * fabs(expected) + (dtype_is_float(out) ? exact * magnitude : 0);
}

static void fill_for(Array *array, ReduceOp op) {
    bool whole = !dtype_is_float(array->view.dtype);
    for (int64_t i = 0; i < array_count(&array->view); i++) {
        double value = whole ? (double)(array_random() % 5) : array_random_real() * 2;
        if (array->view.dtype == DTYPE_BOOL) value = array_random() % 4 != 0;
        if (op == REDUCE_PROD)
            value = whole ? 1 + (double)(array_random() % 400 == 0) : 1 + value / 50;
        if (op == REDUCE_PROD && array->view.dtype == DTYPE_BOOL) value = 1;
        if (op >= REDUCE_ANY && op <= REDUCE_ALL)
            value = (array_random() % 37 == 0) != (op == REDUCE_ALL);
        array_set(array, i, value);
    }
}

static DType result_dtype(ReduceOp op, DType in) {
    if (op == REDUCE_ANY || op == REDUCE_ALL) return DTYPE_BOOL;
    if (op == REDUCE_COUNT_NONZERO) return DTYPE_INT64;
    if (dtype_is_float(in)) return in;
    if (op >= REDUCE_LOGSUMEXP) return DTYPE_FLOAT32;
    return op == REDUCE_MAX || op == REDUCE_MIN ? in : DTYPE_INT64;
}

static void check_reduce(ReduceOp op, DType dtype, Layout layout, int rank, const int64_t *dims,
                         int count) {
    Array in, out;
    array_make(&in, dtype, layout, rank, dims);
    fill_for(&in, op);
    DType result = result_dtype(op, dtype);
    array_make(&out, result, (Layout)((layout + 1) % LAYOUT_COUNT), rank - count, dims);
    run_reduce(op, &in, &out, count);
    int64_t results = array_count(&out.view), n = 1;
    for (int d = rank - count; d < rank; d++) n *= dims[d];
    double *values = malloc((size_t)(n + 1) * sizeof *values);
    for (int64_t r = 0; r < results; r++) {
        double magnitude = 0;
        for (int64_t i = 0; i < n; i++) {
            values[i] = array_get(&in, r * n + i);
            magnitude += op == REDUCE_SUM || op == REDUCE_MEAN ? fabs(values[i]) : 0;
        }
        if (op == REDUCE_MEAN) magnitude /= (double)n;
        if (op == REDUCE_PROD || op >= REDUCE_LOGSUMEXP) magnitude += 1;
        double expected = expect_reduction(op, values, n, 1), got = array_get(&out, r);
        bool same = expected != expected ? got != got : got == expected;
        if (!same && !(fabs(got - expected) <= tolerance(result, expected, magnitude)))
            fail_msg("%s of %s, layout %d, [%lld, %lld, %lld] over %d: result %lld is %.9g, "
                     "expected %.9g",
                     op_names[op], dtype_name(dtype), layout, (long long)dims[0],
                     (long long)dims[1], (long long)dims[2], count, (long long)r, got, expected);
    }
    free(values);
    array_free(&in);
    array_free(&out);
}

static const DType dtypes[] = {DTYPE_BOOL,    DTYPE_UINT8,  DTYPE_INT8,    DTYPE_INT16,
                               DTYPE_INT32,   DTYPE_INT64,  DTYPE_FLOAT16, DTYPE_BFLOAT16,
                               DTYPE_FLOAT32, DTYPE_FLOAT64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static void test_reductions(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{2, 3, 5},   {4, 17, 33},  {1, 1, 1},  {3, 40, 7},
                                        {2, 600, 3}, {1, 5, 1030}, {3, 70, 70}};
    for (int op = 0; op < OP_COUNT; op++)
        for (int d = 0; d < DTYPES; d++)
            for (int layout = 0; layout < LAYOUT_COUNT; layout++)
                for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                    for (int count = 0; count <= 3; count++)
                        if ((count > 0 || op == REDUCE_SUM))
                            check_reduce((ReduceOp)op, dtypes[d], (Layout)layout, 3, shapes[s],
                                         count);
}

// Reduced dims first in memory: the kernel is given a permuted view.
static void test_columns_and_broadcast(void **state) {
    (void)state;
    const int64_t dims[3] = {300, 5, 700};
    Array in, out;
    array_make(&in, DTYPE_FLOAT32, LAYOUT_PLAIN, 3, dims);
    array_fill_random(&in);
    const int64_t kept[1] = {700};
    array_make(&out, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, kept);
    Array turned = in;
    const int order[3] = {2, 0, 1};
    for (int d = 0; d < 3; d++) {
        turned.view.dims[d] = in.view.dims[order[d]];
        turned.view.strides[d] = in.view.strides[order[d]];
    }
    for (int op = 0; op < OP_COUNT; op++) {
        run_reduce((ReduceOp)op, &turned, &out, 2);
        for (int64_t c = 0; c < 700; c++) {
            double values[1500];
            for (int64_t i = 0; i < 1500; i++) values[i] = array_get(&in, i * 700 + c);
            double expected = expect_reduction((ReduceOp)op, values, 1500, 1);
            assert_true(fabs(array_get(&out, c) - expected) <= 1e-6 * (1 + fabs(expected)));
        }
    }
    // One number seen 300 * 5 * 700 times.
    for (int d = 0; d < 3; d++) in.view.strides[d] = 0;
    out.view.rank = 0;
    run_reduce(REDUCE_SUM, &in, &out, 3);
    assert_true(fabs(array_get(&out, 0) - array_get(&in, 0) * 1050000) <= 0.05);
    array_free(&in);
    array_free(&out);
}

static void test_empty(void **state) {
    (void)state;
    static const double expected[OP_COUNT] = {0, 1, -INFINITY, INFINITY,  0,   1,
                                              0, 0, 0,         -INFINITY, NAN, NAN};
    const int64_t dims[2] = {3, 0};
    Array in, out;
    for (int op = 0; op < OP_COUNT; op++) {
        array_make(&in, DTYPE_FLOAT32, LAYOUT_PLAIN, 2, dims);
        array_make(&out, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, dims);
        run_reduce((ReduceOp)op, &in, &out, 1);
        for (int i = 0; i < 3; i++) {
            double got = array_get(&out, i);
            assert_true(expected[op] != expected[op] ? got != got : got == expected[op]);
        }
        array_free(&in);
        array_free(&out);
    }
    static const struct {
        DType dtype;
        double largest, smallest; // of nothing
    } limits[] = {{DTYPE_INT8, -128, 127},
                  {DTYPE_UINT8, 0, 255},
                  {DTYPE_BOOL, 0, 1},
                  {DTYPE_INT32, -2147483648.0, 2147483647.0},
                  {DTYPE_INT64, -0x1p63, 0x1p63}};
    for (int i = 0; i < 5; i++) {
        array_make(&in, limits[i].dtype, LAYOUT_PLAIN, 2, dims);
        array_make(&out, limits[i].dtype, LAYOUT_PLAIN, 1, dims);
        run_reduce(REDUCE_MAX, &in, &out, 1);
        assert_true(array_get(&out, 2) == limits[i].largest);
        run_reduce(REDUCE_MIN, &in, &out, 1);
        assert_true(array_get(&out, 2) == limits[i].smallest);
        array_free(&in);
        array_free(&out);
    }
}

static void check_special(ReduceOp op, double a, double b, double c, double expected) {
    const int64_t dims[2] = {20, 90};
    const double values[3] = {a, b, c};
    for (int columns = 0; columns < 2; columns++) {
        Array in, out;
        array_make(&in, DTYPE_FLOAT32, columns ? LAYOUT_TRANSPOSED : LAYOUT_PLAIN, 2, dims);
        for (int64_t i = 0; i < 1800; i++) array_set(&in, i, values[i % 3]);
        array_make(&out, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, dims);
        run_reduce(op, &in, &out, 1);
        for (int i = 0; i < 20; i++) {
            double got = array_get(&out, i);
            bool same = expected != expected ? got != got : got == expected;
            if (!same)
                fail_msg("%s of %g, %g, %g gives %g, expected %g", op_names[op], a, b, c, got,
                         expected);
        }
        array_free(&in);
        array_free(&out);
    }
}

static void test_special_values(void **state) {
    (void)state;
    check_special(REDUCE_MAX, 1, NAN, 2, NAN);
    check_special(REDUCE_MIN, 1, 5, NAN, NAN);
    check_special(REDUCE_MAX, -INFINITY, -INFINITY, -INFINITY, -INFINITY);
    check_special(REDUCE_MAX, -INFINITY, INFINITY, 3, INFINITY);
    check_special(REDUCE_SUM, INFINITY, -INFINITY, 1, NAN);
    check_special(REDUCE_SUM, INFINITY, 1, 1, INFINITY);
    check_special(REDUCE_LOGSUMEXP, -INFINITY, -INFINITY, -INFINITY, -INFINITY);
    check_special(REDUCE_LOGSUMEXP, 1, INFINITY, 3, INFINITY);
    check_special(REDUCE_LOGSUMEXP, 1, NAN, 3, NAN);
    check_special(REDUCE_LOGSUMEXP, 1000, -INFINITY, -INFINITY, (double)(float)(1000 + log(30)));
    check_special(REDUCE_ANY, 0, NAN, 0, 1);
    check_special(REDUCE_VAR, 7, 7, 7, 0);
}

// Results of long reductions, made in parts and on several threads.
static void long_results(double results[4]) {
    const int64_t dims[1] = {16 << 20};
    Array in, out;
    array_make(&in, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, dims);
    float *x = in.buffer.handle;
    for (int64_t i = 0; i < dims[0]; i++) x[i] = 0.1f + (float)(i % 7919) * 1e-4f;
    array_make(&out, DTYPE_FLOAT64, LAYOUT_PLAIN, 0, NULL);
    static const ReduceOp ops[] = {REDUCE_SUM, REDUCE_VAR, REDUCE_LOGSUMEXP};
    for (int i = 0; i < 3; i++) {
        run_reduce(ops[i], &in, &out, 1);
        results[i] = array_get(&out, 0);
    }
    // The same memory as [2^20, 16], summed over the first dim: columns in parts.
    in.view.rank = 2;
    in.view.dims[0] = out.view.dims[0] = 16;
    in.view.dims[1] = 1 << 20;
    in.view.strides[0] = 1;
    in.view.strides[1] = 16;
    Array sums;
    const int64_t columns[1] = {16};
    array_make(&sums, DTYPE_FLOAT64, LAYOUT_PLAIN, 1, columns);
    run_reduce(REDUCE_SUM, &in, &sums, 1);
    results[3] = 0;
    for (int i = 0; i < 16; i++) results[3] += array_get(&sums, i);
    array_free(&sums);
    array_free(&in);
    array_free(&out);
}

static void test_long_rows(void **state) {
    (void)state;
    double results[4], exact = 0;
    for (int64_t i = 0; i < 16 << 20; i++) exact += (double)(0.1f + (float)(i % 7919) * 1e-4f);
    long_results(results);
    assert_true(fabs(results[0] / exact - 1) < 1e-12);
    assert_true(fabs(results[3] / exact - 1) < 1e-12);
    double mean = exact / (16 << 20), deviation = 0, exponentials = 0;
    for (int64_t i = 0; i < 16 << 20; i++) {
        double x = (double)(0.1f + (float)(i % 7919) * 1e-4f);
        deviation += (x - mean) * (x - mean);
        if (i < 7919) exponentials += exp(x);
    }
    assert_true(fabs(results[1] / (deviation / ((16 << 20) - 1)) - 1) < 1e-9);
    assert_true(fabs(results[2] - log(exponentials / 7919 * (16 << 20))) < 1e-4);
}

static void test_threads_do_not_matter(void **state) {
    (void)state;
    double results[3][4];
    for (int threads = 1; threads <= 3; threads++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            char text[2] = {(char)('0' + threads), 0};
            setenv("TL_THREADS", text, 1);
            double mine[4];
            long_results(mine);
            _exit(write(ends[1], mine, sizeof mine) == sizeof mine ? 0 : 1);
        }
        assert_int_equal(read(ends[0], results[threads - 1], sizeof *results), sizeof *results);
        waitpid(child, NULL, 0);
        close(ends[0]);
        close(ends[1]);
        assert_memory_equal(results[0], results[threads - 1], sizeof *results);
    }
}

static void check_arg(DType dtype, Layout layout, const int64_t *dims, int op) {
    Array in, out;
    array_make(&in, dtype, layout, 2, dims);
    for (int64_t i = 0; i < array_count(&in.view); i++) {
        array_set(&in, i, (double)(array_random() % (dtype == DTYPE_BOOL ? 2 : 100)));
        if (dtype_is_float(dtype) && i / dims[1] % 3 == 1 && array_random() % 50 == 0)
            array_set(&in, i, NAN);
    }
    array_make(&out, DTYPE_INT64, (Layout)((layout + 1) % LAYOUT_COUNT), 1, dims);
    KernelCall call = reduce_call(REDUCE_SUM, &in, &out, 1);
    call.options.op = op;
    assert_int_equal(run_kernel(KERNEL_ARG_REDUCE, &call), STATUS_OK);
    for (int64_t r = 0; r < dims[0]; r++) {
        int64_t best = 0;
        for (int64_t i = 1; i < dims[1]; i++) {
            double x = array_get(&in, r * dims[1] + i), y = array_get(&in, r * dims[1] + best);
            if (y == y && (x != x || (op == 0 ? x > y : x < y))) best = i;
        }
        assert_int_equal((int64_t)array_get(&out, r), best);
    }
    array_free(&in);
    array_free(&out);
}

static void test_arg_reductions(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {5, 3}, {40, 17}, {3, 2500}, {0, 4}};
    for (int d = 0; d < DTYPES; d++)
        for (int layout = 0; layout < LAYOUT_COUNT; layout++)
            for (int s = 0; s < 5; s++)
                for (int op = 0; op < 2; op++) check_arg(dtypes[d], (Layout)layout, shapes[s], op);
    const int64_t none[2] = {2, 0};
    Array in, out;
    array_make(&in, DTYPE_FLOAT32, LAYOUT_PLAIN, 2, none);
    array_make(&out, DTYPE_INT64, LAYOUT_PLAIN, 1, none);
    KernelCall call = reduce_call(REDUCE_SUM, &in, &out, 1);
    assert_int_equal(run_kernel(KERNEL_ARG_REDUCE, &call), STATUS_SHAPE);
    array_free(&in);
    array_free(&out);
}

static void check_scan(DType dtype, Layout layout, const int64_t *dims, bool product) {
    Array in, out;
    array_make(&in, dtype, layout, 3, dims);
    fill_for(&in, product ? REDUCE_PROD : REDUCE_SUM);
    DType result = dtype_is_float(dtype) ? dtype : DTYPE_INT64;
    array_make(&out, result, (Layout)((layout + 2) % LAYOUT_COUNT), 3, dims);
    KernelCall call = reduce_call(REDUCE_SUM, &in, &out, 1);
    call.options.op = product;
    assert_int_equal(run_kernel(KERNEL_SCAN, &call), STATUS_OK);
    double running = 0, magnitude = 0;
    for (int64_t i = 0; i < array_count(&in.view); i++) {
        double x = array_get(&in, i);
        if (i % dims[2] == 0) running = product, magnitude = 0;
        running = product ? running * x : running + x;
        magnitude += fabs(x);
        // Products of whole numbers wrap beyond what a double holds.
        if (!dtype_is_float(dtype) && fabs(running) > 0x1p53) continue;
        double got = array_get(&out, i);
        assert_true(fabs(got - running) <= tolerance(result, running, magnitude));
    }
    array_free(&in);
    array_free(&out);
}

static void test_scans(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {
        {1, 1, 1}, {2, 3, 5}, {2, 100, 70}, {1, 2, 2100}, {3, 0, 2}};
    for (int d = 0; d < DTYPES; d++)
        for (int layout = 0; layout < LAYOUT_COUNT; layout++)
            for (int s = 0; s < 5; s++)
                for (int product = 0; product < 2; product++)
                    check_scan(dtypes[d], (Layout)layout, shapes[s], product);
    Array in, out;
    array_make(&in, DTYPE_FLOAT32, LAYOUT_PLAIN, 0, NULL);
    array_make(&out, DTYPE_FLOAT32, LAYOUT_PLAIN, 0, NULL);
    array_set(&in, 0, 5);
    KernelCall call = reduce_call(REDUCE_SUM, &in, &out, 1);
    assert_int_equal(run_kernel(KERNEL_SCAN, &call), STATUS_OK);
    assert_true(array_get(&out, 0) == 5);
    array_free(&in);
    array_free(&out);
}

// Few rows, which devices may cut into parts: beside each other, and as columns.
static void test_scans_of_few_rows(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 2, 40000}, {1, 20, 900}};
    static const DType types[] = {DTYPE_FLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_INT64};
    for (int d = 0; d < 4; d++)
        for (int layout = 0; layout < LAYOUT_COUNT; layout++)
            for (int s = 0; s < 2; s++) {
                check_scan(types[d], (Layout)layout, shapes[s], false);
                if (d == 1) check_scan(types[d], (Layout)layout, shapes[s], true);
            }
}

static int run_suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_do_not_matter), // before this process has threads
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_columns_and_broadcast),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_arg_reductions),
        cmocka_unit_test(test_scans),
        cmocka_unit_test(test_scans_of_few_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(run_suite);
}
