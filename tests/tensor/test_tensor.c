// Tensors themselves: limits, literals, conversions, reads, views that share, releases.
#include "tests/tensor/tensors.h"

static void test_impossible_shapes_are_errors(void **state) {
    (void)state;
    Device *device;
    OK(device_default(&device));
    Tensor *x;
    uint64_t allocations = pool_statistics(device).allocations;
    Shape huge = {.rank = 3, .dims = {1ll << 40, 1ll << 40, 1ll << 40}};
    FAILS(STATUS_SHAPE,
          "cannot make float32[1099511627776, 1099511627776, 1099511627776]: its size does not fit "
          "in "
          "64 bits",
          tensor_new(device, DTYPE_FLOAT32, &huge, &x));
    huge.dims[0] = 0; // a 0 does not excuse the others
    assert_int_equal(tensor_new(device, DTYPE_FLOAT32, &huge, &x), STATUS_SHAPE);
    huge = (Shape){.rank = 3, .dims = {1ll << 40, 1ll << 40, 0}};
    assert_int_equal(tensor_new(device, DTYPE_FLOAT32, &huge, &x), STATUS_SHAPE);
    Shape bytes = {.rank = 1, .dims = {1ll << 61}};
    assert_int_equal(tensor_new(device, DTYPE_FLOAT32, &bytes, &x), STATUS_SHAPE);
    Shape negative = {.rank = 2, .dims = {2, -3}};
    FAILS(STATUS_SHAPE, "cannot make int8[2, -3]: a size cannot be negative",
          tensor_new(device, DTYPE_INT8, &negative, &x));
    FAILS(STATUS_SHAPE, "cannot make int64[2, -3]: a size cannot be negative",
          tensor_from_integers((int64_t[]){1}, &negative, DTYPE_INT64, &x));
    Shape large = {.rank = 1, .dims = {1ll << 50}};
    assert_int_equal(tensor_new(device, DTYPE_FLOAT64, &large, &x), STATUS_MEMORY);
    assert_int_equal(pool_statistics(device).allocations, allocations);
}

static void test_literals_keep_their_numbers(void **state) {
    (void)state;
    double numbers[] = {0.1, 16777217, 4096};
    Shape shape = SHAPE(3);
    Tensor *x, *wide, *whole, *half;
    OK(tensor_from_floats(numbers, &shape, DTYPE_FLOAT32, &x));
    assert_null(x->view.buffer);
    double got[3];
    int64_t integers[3];
    OK(tensor_read_floats(x, got));
    assert_true(got[0] == 0.1 && got[1] == 16777217);
    OK(tensor_read_integers(x, integers));
    assert_true(integers[1] == 16777217);
    OK(tensor_materialize(x));
    OK(tensor_read_integers(x, integers)); // still exactly what was written
    assert_true(integers[1] == 16777217);
    OK(tensor_cast(x, DTYPE_FLOAT64, &wide));
    OK(tensor_read_floats(wide, got));
    assert_true(got[0] == 0.1);
    OK(tensor_cast(x, DTYPE_INT64, &whole));
    OK(tensor_read_integers(whole, integers));
    assert_true(integers[0] == 0 && integers[1] == 16777217);
    OK(tensor_cast(x, DTYPE_FLOAT16, &half));
    OK(tensor_read_floats(half, got));
    assert_true(got[0] == 0.0999755859375 && got[2] == 4096 && isinf(got[1]));
    tensor_release(x);
    tensor_release(wide);
    tensor_release(whole);
    tensor_release(half);
}

static void test_conversions_wrap_and_saturate(void **state) {
    (void)state;
    int64_t integers[] = {300, -1, 1ll << 40};
    double floats[] = {300.7, -1.5, NAN};
    Shape shape = SHAPE(3);
    Tensor *x, *y;
    double got[3];
    OK(tensor_from_integers(integers, &shape, DTYPE_INT64, &x));
    OK(tensor_cast(x, DTYPE_UINT8, &y));
    OK(tensor_read_floats(y, got));
    assert_true(got[0] == 44 && got[1] == 255 && got[2] == 0);
    tensor_release(x);
    tensor_release(y);
    OK(tensor_from_floats(floats, &shape, DTYPE_FLOAT32, &x));
    OK(tensor_cast(x, DTYPE_INT8, &y));
    OK(tensor_read_floats(y, got));
    assert_true(got[0] == 127 && got[1] == -1 && got[2] == 0);
    tensor_release(y);
    OK(tensor_cast(x, DTYPE_BOOL, &y));
    OK(tensor_read_floats(y, got));
    assert_true(got[0] == 1 && got[1] == 1 && got[2] == 1);
    tensor_release(y);
    assert_int_equal(tensor_cast(x, DTYPE_Q8_0, &y), STATUS_DTYPE);
    tensor_release(x);
}

static void test_scalar_reads(void **state) {
    (void)state;
    Scalar number;
    for (int d = 0; d < DTYPES; d++) {
        Tensor *x = make_tensor(all_dtypes[d], SHAPE(1, 1), (double[]){1});
        OK(tensor_read_scalar(x, &number));
        assert_int_equal(number.dtype, all_dtypes[d] == DTYPE_BOOL     ? DTYPE_BOOL
                                       : dtype_is_float(all_dtypes[d]) ? DTYPE_FLOAT64
                                                                       : DTYPE_INT64);
        assert_true(number.dtype == DTYPE_FLOAT64 ? number.as.f == 1 : number.as.i == 1);
        tensor_release(x);
    }
    Tensor *x = make_samples(DTYPE_FLOAT32, SHAPE(2), 0), *row;
    FAILS(STATUS_SHAPE, "wanted one number, but this is float32[2]",
          tensor_read_scalar(x, &number));
    OK(tensor_select(x, 0, 1, &row)); // an offset into the buffer
    OK(tensor_read_scalar(row, &number));
    assert_true(number.as.f == sample(1));
    tensor_release(row);
    tensor_release(x);
    int64_t big = INT64_MAX;
    Shape none = {.rank = 0};
    OK(tensor_from_integers(&big, &none, DTYPE_INT64, &x));
    OK(tensor_read_scalar(x, &number));
    assert_true(number.as.i == INT64_MAX);
    tensor_release(x);
}

static void test_every_layout_reads_the_same(void **state) {
    (void)state;
    for (int d = 0; d < DTYPES; d++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            Tensor *x = make_samples(all_dtypes[d], SHAPE(3, 5), 2);
            double *wanted = read_all(x);
            x = lay_out_as(x, (TestLayout)layout);
            double *got = read_all(x);
            assert_memory_equal(got, wanted, 15 * sizeof *got);
            int64_t integers[15];
            OK(tensor_read_integers(x, integers));
            for (int i = 0; i < 15; i++) assert_true(integers[i] == (int64_t)wanted[i]);
            Tensor *dense;
            OK(tensor_contiguous(x, &dense));
            assert_true(tensor_is_contiguous(dense));
            if (layout == PLAIN) assert_ptr_equal(dense, x);
            tensor_release(dense);
            free(got);
            free(wanted);
            tensor_release(x);
        }
}

static void test_views_keep_the_buffer(void **state) {
    (void)state;
    origin_current = (Origin){.at = 17, .called_from = 5};
    Tensor *x = make_samples(DTYPE_FLOAT32, SHAPE(4), 0), *view;
    assert_int_equal(x->origin.at, 17);
    origin_current.at = 18;
    OK(tensor_slice(x, 0, 1, 3, &view));
    assert_int_equal(view->origin.at, 18);
    assert_int_equal(view->origin.called_from, 5);
    assert_ptr_equal(view->view.buffer, x->view.buffer);
    tensor_release(x);
    double got[2];
    OK(tensor_read_floats(view, got));
    assert_true(got[0] == sample(1) && got[1] == sample(2));
    tensor_release(view);
    origin_current = (Origin){0};
    assert_no_live_buffers();
}

static void test_a_parameter_is_not_returned_as_a_result(void **state) {
    (void)state;
    Tensor *x = make_samples(DTYPE_FLOAT32, SHAPE(4), 0), *same;
    x->learnable = true;
    OK(tensor_contiguous(x, &same));
    assert_ptr_not_equal(same, x);
    assert_false(same->learnable);
    assert_ptr_equal(same->view.buffer, x->view.buffer);
    tensor_release(same);
    tensor_release(x);
}

static void test_names(void **state) {
    (void)state;
    Tensor *x = make_samples(DTYPE_BFLOAT16, SHAPE(2, 3), 0);
    Text out = {0};
    tensor_describe(x, &out);
    assert_string_equal(text_get(&out), "bfloat16[2, 3]");
    text_free(&out);
    Shape widest = {.rank = RANK_MAX};
    for (int i = 0; i < RANK_MAX; i++) widest.dims[i] = INT64_MIN;
    assert_true(strlen(type_name(DTYPE_BFLOAT16, &widest).text) < sizeof(TypeName) - 1);
    assert_int_equal(attribute_find("keepdim"), ATTRIBUTE_keepdim);
    assert_int_equal(attribute_find("keepdims"), ATTRIBUTE_COUNT);
    tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_impossible_shapes_are_errors),
        cmocka_unit_test(test_literals_keep_their_numbers),
        cmocka_unit_test(test_conversions_wrap_and_saturate),
        cmocka_unit_test(test_scalar_reads),
        cmocka_unit_test(test_every_layout_reads_the_same),
        cmocka_unit_test(test_views_keep_the_buffer),
        cmocka_unit_test(test_a_parameter_is_not_returned_as_a_result),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
