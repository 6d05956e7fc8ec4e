// REDUCE of floats against plain loops: every operation and dtype, rows and columns in awkward
// layouts, empty and rank 0, long rows in parts, special values; once per instruction set.
#include "reductions.h"

static void test_reductions(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
    check_reductions(dtypes, sizeof dtypes / sizeof *dtypes);
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

static int run_suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_do_not_matter), // before this process has threads
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_columns_and_broadcast),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_long_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(run_suite);
}
