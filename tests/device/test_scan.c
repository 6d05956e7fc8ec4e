// SCAN and ARG_REDUCE against plain loops: every dtype in awkward layouts, few rows, ties, NaN;
// once per instruction set.
#include "reductions.h"

static const DType dtypes[] = {DTYPE_BOOL,    DTYPE_UINT8,  DTYPE_INT8,    DTYPE_INT16,
                               DTYPE_INT32,   DTYPE_INT64,  DTYPE_FLOAT16, DTYPE_BFLOAT16,
                               DTYPE_FLOAT32, DTYPE_FLOAT64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

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
        // Products of integers wrap beyond what a double holds.
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

// Few rows, which devices may cut into parts: next to each other, and as columns.
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
        cmocka_unit_test(test_arg_reductions),
        cmocka_unit_test(test_scans),
        cmocka_unit_test(test_scans_of_few_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(run_suite);
}
