// LINALG: what LAPACK returns reconstructs its input; singular and unsuitable matrices are named.
#include "tests/device/arrays.h"

static Status run(LinalgOp op, Array *inputs, int n_inputs, Array *outputs, int n_outputs) {
    KernelCall call = {
        .n_inputs = n_inputs, .n_outputs = n_outputs, .options.op = (int)op, .op_name = "linalg"};
    for (int i = 0; i < n_inputs; i++) call.inputs[i].view = array_view(&inputs[i]);
    for (int i = 0; i < n_outputs; i++) call.outputs[i] = array_view(&outputs[i]);
    return run_kernel(KERNEL_LINALG, &call);
}

static double bound_of(DType dtype) {
    return dtype == DTYPE_FLOAT64 ? 1e-10 : 1e-3;
}

// Element (b, i, j) of an array of rank 3.
static double get(const Array *array, int64_t b, int64_t i, int64_t j) {
    return array_get(array, (b * array->view.dims[1] + i) * array->view.dims[2] + j);
}

static void expect(double got, double want, DType dtype, const char *what) {
    if (!(fabs(got - want) <= bound_of(dtype)))
        fail_msg("%s %s: %.9g, not %.9g", what, dtype_name(dtype), got, want);
}

// left @ right == want; identity when want is NULL. `flip` transposes left.
static void expect_product(const Array *left, bool flip, const Array *right, const Array *want,
                           const char *what) {
    int64_t m = left->view.dims[flip ? 2 : 1], k = right->view.dims[1], n = right->view.dims[2];
    for (int64_t b = 0; b < right->view.dims[0]; b++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t t = 0; t < k; t++)
                    sum += (flip ? get(left, b, t, i) : get(left, b, i, t)) * get(right, b, t, j);
                expect(sum, want ? get(want, b, i, j) : i == j, right->view.dtype, what);
            }
}

static void make_square(Array *a, DType dtype, Layout layout, int64_t n, bool definite) {
    array_make(a, dtype, layout, 3, (int64_t[]){3, n, n});
    array_fill_random(a);
    for (int64_t b = 0; b < 3; b++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) {
                int64_t here = (b * n + i) * n + j, there = (b * n + j) * n + i;
                if (i == j)
                    array_set(a, here, array_get(a, here) + 3 + (double)n);
                else if (definite)
                    array_set(a, there, array_get(a, here));
            }
}

static void check_square(DType dtype, Layout layout, int64_t n) {
    Array a[2], out[2];
    int64_t square[3] = {3, n, n}, right[3] = {3, n, 2};
    make_square(&a[0], dtype, layout, n, false);
    array_make(&out[0], dtype, (Layout)(3 - layout), 3, square);
    assert_int_equal(run(LINALG_INV, a, 1, out, 1), STATUS_OK);
    expect_product(&a[0], false, &out[0], NULL, "inv");
    array_free(&out[0]);
    array_make(&a[1], dtype, layout, 3, right);
    array_fill_random(&a[1]);
    array_make(&out[0], dtype, layout, 3, right);
    assert_int_equal(run(LINALG_SOLVE, a, 2, out, 1), STATUS_OK);
    expect_product(&a[0], false, &out[0], &a[1], "solve");
    array_free(&out[0]);
    array_free(&a[1]);
    array_free(&a[0]);

    make_square(&a[0], dtype, layout, n, true);
    array_make(&out[0], dtype, layout, 3, square);
    assert_int_equal(run(LINALG_CHOLESKY, a, 1, out, 1), STATUS_OK);
    Array flipped = out[0];
    flipped.view.strides[1] = out[0].view.strides[2];
    flipped.view.strides[2] = out[0].view.strides[1];
    expect_product(&out[0], false, &flipped, &a[0], "cholesky");
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) assert_true(get(&out[0], 1, i, j) == 0);
    array_free(&out[0]);

    array_make(&out[0], dtype, LAYOUT_PLAIN, 2, (int64_t[]){3, n});
    array_make(&out[1], dtype, layout, 3, square);
    assert_int_equal(run(LINALG_EIGH, a, 1, out, 2), STATUS_OK);
    expect_product(&out[1], true, &out[1], NULL, "eigh: orthogonal");
    for (int64_t b = 0; b < 3; b++)
        for (int64_t j = 0; j < n; j++) {
            double value = array_get(&out[0], b * n + j);
            if (j > 0) assert_true(value >= array_get(&out[0], b * n + j - 1));
            for (int64_t i = 0; i < n; i++) {
                double sum = 0;
                for (int64_t t = 0; t < n; t++) sum += get(&a[0], b, i, t) * get(&out[1], b, t, j);
                expect(sum, value * get(&out[1], b, i, j), dtype, "eigh");
            }
        }
    array_free(&out[0]);
    array_free(&out[1]);
    array_free(&a[0]);
}

static void check_rectangle(DType dtype, Layout layout, int64_t m, int64_t n) {
    int64_t k = m < n ? m : n;
    Array a, out[3];
    array_make(&a, dtype, layout, 3, (int64_t[]){2, m, n});
    array_fill_random(&a);
    array_make(&out[0], dtype, layout, 3, (int64_t[]){2, m, k});
    array_make(&out[1], dtype, layout, 3, (int64_t[]){2, k, n});
    assert_int_equal(run(LINALG_QR, &a, 1, out, 2), STATUS_OK);
    expect_product(&out[0], true, &out[0], NULL, "qr: orthogonal");
    expect_product(&out[0], false, &out[1], &a, "qr");
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < i; j++) assert_true(get(&out[1], 1, i, j) == 0);
    array_free(&out[1]);
    array_make(&out[1], dtype, LAYOUT_STEPPED, 2, (int64_t[]){2, k});
    array_make(&out[2], dtype, layout, 3, (int64_t[]){2, k, n});
    assert_int_equal(run(LINALG_SVD, &a, 1, out, 3), STATUS_OK);
    expect_product(&out[0], true, &out[0], NULL, "svd: u orthogonal");
    for (int64_t b = 0; b < 2; b++) // u * s, so that a product with vt gives a
        for (int64_t j = 0; j < k; j++) {
            double s = array_get(&out[1], b * k + j);
            assert_true(s >= 0 && (j == 0 || s <= array_get(&out[1], b * k + j - 1)));
            for (int64_t i = 0; i < m; i++)
                array_set(&out[0], (b * m + i) * k + j, get(&out[0], b, i, j) * s);
        }
    expect_product(&out[0], false, &out[2], &a, "svd");
    for (int i = 0; i < 3; i++) array_free(&out[i]);
    array_free(&a);
}

static void test_reconstructions(void **state) {
    (void)state;
    for (int d = 0; d < 2; d++)
        for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
            DType dtype = d ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
            static const int64_t sizes[] = {0, 1, 2, 5, 17};
            for (int i = 0; i < 5; i++) check_square(dtype, (Layout)layout, sizes[i]);
            check_rectangle(dtype, (Layout)layout, 7, 4);
            check_rectangle(dtype, (Layout)layout, 3, 9);
            check_rectangle(dtype, (Layout)layout, 1, 1);
            check_rectangle(dtype, (Layout)layout, 4, 0);
        }
}

static void test_determinants(void **state) {
    (void)state;
    static const double numbers[] = {2, 1, 7, 4, 0, 3, 5, 9, 9, 1, 2, 5, 2, 4, 1, 2};
    static const double want[] = {1, -15, 43, 0};
    Array a, out;
    array_make(&a, DTYPE_FLOAT32, LAYOUT_REVERSED, 3, (int64_t[]){4, 2, 2});
    array_make(&out, DTYPE_FLOAT32, LAYOUT_STEPPED, 1, (int64_t[]){4});
    for (int i = 0; i < 16; i++) array_set(&a, i, numbers[i]);
    assert_int_equal(run(LINALG_DET, &a, 1, &out, 1), STATUS_OK);
    for (int i = 0; i < 4; i++) expect(array_get(&out, i), want[i], DTYPE_FLOAT32, "det");
    array_free(&a);
    array_free(&out);
    array_make(&a, DTYPE_FLOAT64, LAYOUT_PLAIN, 2, (int64_t[]){0, 0});
    array_make(&out, DTYPE_FLOAT64, LAYOUT_PLAIN, 0, NULL);
    assert_int_equal(run(LINALG_DET, &a, 1, &out, 1), STATUS_OK);
    assert_true(array_get(&out, 0) == 1);
    array_free(&a);
    array_free(&out);
}

static void expect_failure(LinalgOp op, int rank, double first, const char *message) {
    Array a, out[3];
    array_make(&a, DTYPE_FLOAT32, LAYOUT_PLAIN, rank, (int64_t[]){2, 2, 2});
    for (int i = 0; i < 3; i++)
        array_make(&out[i], DTYPE_FLOAT32, LAYOUT_PLAIN, rank, (int64_t[]){2, 2, 2});
    for (int64_t i = 0; i < array_count(&a.view); i++)
        array_set(&a, i, i < 4 && rank == 3 ? i % 3 == 0 : first);
    assert_int_equal(run(op, &a, 1, out, 3), STATUS_VALUE);
    assert_string_equal(error_current()->message, message);
    for (int i = 0; i < 3; i++) array_free(&out[i]);
    array_free(&a);
}

static void test_failures(void **state) {
    (void)state;
    expect_failure(LINALG_INV, 2, 1, "linalg: the matrix is singular (its pivot 1 is 0)");
    expect_failure(LINALG_INV, 3, 0,
                   "linalg: matrix 1 of the batch: the matrix is singular (its pivot 0 is 0)");
    expect_failure(
        LINALG_CHOLESKY, 3, -1,
        "linalg: matrix 1 of the batch: the matrix is not positive definite (its leading "
        "minor of size 1 is not positive)");
    expect_failure(LINALG_SVD, 2, NAN, "linalg: the matrix holds nan");
    expect_failure(LINALG_QR, 3, INFINITY, "linalg: matrix 1 of the batch: the matrix holds inf");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reconstructions),
                                       cmocka_unit_test(test_determinants),
                                       cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
