// How tensors print: columns, decimals, exponents, elision, rank 0, every dtype.
#include "tests/tensor/tensors.h"

static void assert_prints(Tensor *x, const char *wanted) {
    Text out = {0};
    OK(tensor_print(x, &out));
    assert_string_equal(text_get(&out), wanted);
    text_free(&out);
    tensor_release(x);
}

static Tensor *floats(Shape shape, const double *values) {
    return make_tensor(DTYPE_FLOAT32, shape, values);
}
#define VECTOR_OF(...)                                                                             \
    floats(SHAPE(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

static void test_floats(void **state) {
    (void)state;
    assert_prints(VECTOR_OF(1, 2, 3), "[1. 2. 3.]");
    assert_prints(VECTOR_OF(1, 2.5), "[1.  2.5]");
    assert_prints(VECTOR_OF(0.1, -0.25), "[ 0.1  -0.25]");
    assert_prints(VECTOR_OF(1.0 / 3, 2.0 / 3), "[0.3333 0.6667]");
    assert_prints(VECTOR_OF(123456.789, 12.5), "[123456.79     12.5 ]");
    assert_prints(VECTOR_OF(1.99996, 1), "[2. 1.]");
    assert_prints(VECTOR_OF(-0.0, 1), "[-0.  1.]");
    assert_prints(VECTOR_OF(1e8), "[100000000.]"); // not over 1e8
}

static void test_matrices(void **state) {
    (void)state;
    assert_prints(floats(SHAPE(2, 3), (double[]){2.5, 4, 5.5, 8.5, 10, 11.5}),
                  "[[ 2.5  4.   5.5]\n [ 8.5 10.  11.5]]");
    assert_prints(floats(SHAPE(2, 2, 2), (double[]){1, 2, 3, 4, 5, 6, 7, 8}),
                  "[[[1. 2.]\n  [3. 4.]]\n\n [[5. 6.]\n  [7. 8.]]]");
    Tensor *x = floats(SHAPE(2, 3), (double[]){1, 2, 3, 4, 5, 6}), *t;
    OK(tensor_transpose(x, 0, 1, &t));
    tensor_release(x);
    assert_prints(t, "[[1. 4.]\n [2. 5.]\n [3. 6.]]");
}

static void test_exponents(void **state) {
    (void)state;
    assert_prints(VECTOR_OF(1.5e10, 2.5), "[1.5e+10 2.5e+00]");
    assert_prints(VECTOR_OF(1, 2e-6), "[1.e+00 2.e-06]");
    assert_prints(VECTOR_OF(100000, 1), "[100000.      1.]");
    assert_prints(VECTOR_OF(1e-5, 2e-5), "[1.e-05 2.e-05]");
    assert_prints(VECTOR_OF(-123456789, 0), "[-1.2346e+08  0.0000e+00]");
    assert_prints(make_tensor(DTYPE_FLOAT64, SHAPE(2), (double[]){1e-200, 1}), "[1.e-200 1.e+000]");
}

static void test_not_finite(void **state) {
    (void)state;
    assert_prints(VECTOR_OF(NAN, 1), "[nan  1.]");
    assert_prints(VECTOR_OF(1.5, -INFINITY, INFINITY), "[ 1.5 -inf  inf]");
    assert_prints(VECTOR_OF(NAN), "[nan]");
    assert_prints(VECTOR_OF(-INFINITY), "[-inf]");
    assert_prints(VECTOR_OF(10.25, NAN), "[10.25   nan]");
}

static void test_other_dtypes(void **state) {
    (void)state;
    double numbers[] = {1, -20, 300};
    assert_prints(make_tensor(DTYPE_INT64, SHAPE(3), numbers), "[  1 -20 300]");
    assert_prints(make_tensor(DTYPE_BOOL, SHAPE(2), (double[]){1, 0}), "[ true false]");
    assert_prints(make_tensor(DTYPE_BOOL, SHAPE(2), (double[]){1, 1}), "[true true]");
    assert_prints(make_tensor(DTYPE_UINT8, SHAPE(2), (double[]){200, 7}), "[200   7]");
    assert_prints(make_tensor(DTYPE_FLOAT16, SHAPE(2), (double[]){0.1, 65504}),
                  "[1.00e-01 6.55e+04]");
    assert_prints(make_tensor(DTYPE_FLOAT16, SHAPE(2), (double[]){0.1, 1}), "[0.1 1. ]");
    assert_prints(make_tensor(DTYPE_FLOAT16, SHAPE(2), (double[]){65504, 1.5}),
                  "[65504.      1.5]");
    assert_prints(make_tensor(DTYPE_BFLOAT16, SHAPE(2), (double[]){0.1, 3.14}), "[0.1  3.14]");
    assert_prints(make_tensor(DTYPE_FLOAT64, SHAPE(2), (double[]){0.1, 2}), "[0.1 2. ]");
}

static void test_rank_0_and_empty(void **state) {
    (void)state;
    Shape none = {.rank = 0};
    assert_prints(floats(none, (double[]){0.1}), "0.1");
    assert_prints(floats(none, (double[]){3}), "3.0");
    assert_prints(floats(none, (double[]){16777216}), "16777216.0");
    assert_prints(make_tensor(DTYPE_FLOAT16, none, (double[]){0.1}), "0.1");
    assert_prints(make_tensor(DTYPE_BFLOAT16, none, (double[]){0.1}), "0.1");
    assert_prints(make_tensor(DTYPE_FLOAT64, none, (double[]){1.0 / 3}), "0.3333333333333333");
    assert_prints(make_tensor(DTYPE_INT64, none, (double[]){-5}), "-5");
    assert_prints(make_tensor(DTYPE_BOOL, none, (double[]){1}), "true");
    assert_prints(floats(none, (double[]){NAN}), "nan");
    assert_prints(floats(SHAPE(0), NULL), "[]");
    assert_prints(floats(SHAPE(0, 3), NULL), "[] (shape [0, 3])");
}

static void test_elision(void **state) {
    (void)state;
    double *values = malloc(1200 * sizeof *values);
    for (int i = 0; i < 1200; i++) values[i] = i;
    Tensor *x = make_tensor(DTYPE_INT64, SHAPE(1200), values), *y;
    OK(tensor_slice(x, 0, 0, 1000, &y));
    Text out = {0};
    OK(tensor_print(y, &out)); // exactly 1000 are all shown
    assert_null(strstr(text_get(&out), "..."));
    text_free(&out);
    tensor_release(y);
    OK(tensor_reshape(x, (Shape[]){SHAPE(4, 300)}, &y));
    assert_prints(y, "[[   0    1    2 ...  297  298  299]\n [ 300  301  302 ...  597  598  599]\n"
                     " [ 600  601  602 ...  897  898  899]\n [ 900  901  902 ... 1197 1198 1199]]");
    OK(tensor_reshape(x, (Shape[]){SHAPE(600, 2)}, &y));
    assert_prints(y, "[[   0    1]\n [   2    3]\n [   4    5]\n ...\n [1194 1195]\n [1196 1197]\n"
                     " [1198 1199]]");
    assert_prints(x, "[   0    1    2 ... 1197 1198 1199]");
    free(values);
}

static void test_literals_print_what_their_dtype_holds(void **state) {
    (void)state;
    double numbers[] = {0.1, 16777217};
    Shape shape = SHAPE(2);
    Tensor *x;
    OK(tensor_from_floats(numbers, &shape, DTYPE_FLOAT32, &x));
    assert_prints(x, "[1.0000e-01 1.6777e+07]");
    shape.rank = 0;
    OK(tensor_from_floats(numbers + 1, &shape, DTYPE_FLOAT32, &x));
    assert_prints(x, "16777216.0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_exponents),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_other_dtypes),
        cmocka_unit_test(test_rank_0_and_empty),
        cmocka_unit_test(test_elision),
        cmocka_unit_test(test_literals_print_what_their_dtype_holds),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
