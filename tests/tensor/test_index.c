// Subscripts: NumPy's rules for reading and assigning, copy-on-write, and the words of the errors.
#include "device/statistics.h"
#include "tests/tensor/tensors.h"

#define INT_ITEM(i)                                                                                \
    { .kind = INDEX_INTEGER, .integer = (i) }
#define ALL                                                                                        \
    { .kind = INDEX_SLICE }
#define SLICE(a, b)                                                                                \
    { .kind = INDEX_SLICE, .has_start = true, .has_stop = true, .start = (a), .stop = (b) }
#define STEP(s)                                                                                    \
    { .kind = INDEX_SLICE, .has_step = true, .step = (s) }
#define DOTS                                                                                       \
    { .kind = INDEX_ELLIPSIS }
#define AXIS                                                                                       \
    { .kind = INDEX_NEW_AXIS }
#define BY(t)                                                                                      \
    { .kind = INDEX_TENSOR, .tensor = (t) }
#define ITEMS(...)                                                                                 \
    (const IndexItem[]){__VA_ARGS__}, sizeof((IndexItem[]){__VA_ARGS__}) / sizeof(IndexItem)
#define NUMBERS(...) ((double[]){__VA_ARGS__})

// 0, 1, 2, ... in row-major order.
static Tensor *iota(DType dtype, Shape shape) {
    double values[256];
    for (int i = 0; i < 256; i++) values[i] = i;
    return make_tensor(dtype, shape, values);
}

static Tensor *ids(int count, const int64_t *numbers) {
    Tensor *x;
    Shape shape = {.rank = 1, .dims = {count}};
    OK(tensor_from_integers(numbers, &shape, DTYPE_INT64, &x));
    return x;
}
#define IDS(...) ids(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static void assert_is(Tensor *x, const char *type, const double *wanted) {
    assert_type(x, type);
    double *got = read_all(x);
    for (int64_t i = 0; i < tensor_count(x); i++)
        if (got[i] != wanted[i]) fail_msg("element %d is %g, not %g", (int)i, got[i], wanted[i]);
    free(got);
    tensor_release(x);
}

static void test_basic_indexes_are_views(void **state) {
    (void)state;
    Tensor *x = iota(DTYPE_FLOAT32, SHAPE(2, 3, 4)), *y;
    OK(index_get(x, ITEMS(INT_ITEM(1), SLICE(0, 2), INT_ITEM(-1)), &y));
    assert_ptr_equal(y->view.buffer, x->view.buffer);
    assert_is(y, "float32[2]", NUMBERS(15, 19));
    OK(index_get(x, ITEMS(DOTS, INT_ITEM(0)), &y));
    assert_is(y, "float32[2, 3]", NUMBERS(0, 4, 8, 12, 16, 20));
    OK(index_get(x, ITEMS(INT_ITEM(0), AXIS, STEP(-2), INT_ITEM(0)), &y));
    assert_is(y, "float32[1, 2]", NUMBERS(8, 0));
    OK(index_get(x, ITEMS(INT_ITEM(-2), INT_ITEM(1), INT_ITEM(2)), &y));
    assert_is(y, "float32[]", NUMBERS(6));
    OK(index_get(x, ITEMS(SLICE(-100, 100), SLICE(2, 1)), &y));
    assert_is(y, "float32[2, 0, 4]", NULL);
    OK(index_get(x, NULL, 0, &y));
    assert_type(y, "float32[2, 3, 4]");
    tensor_release(y);
    tensor_release(x);
}

static void test_one_index_tensor(void **state) {
    (void)state;
    Tensor *i = IDS(2, 0, -1), *y;
    for (int layout = 0; layout < LAYOUTS; layout++) {
        Tensor *x = lay_out_as(iota(DTYPE_FLOAT32, SHAPE(3, 2)), (TestLayout)layout);
        OK(index_get(x, ITEMS(BY(i)), &y));
        assert_is(y, "float32[3, 2]", NUMBERS(4, 5, 0, 1, 4, 5));
        tensor_release(x);
    }
    Tensor *x = iota(DTYPE_INT16, SHAPE(2, 3)), *grid;
    OK(index_get(x, ITEMS(ALL, BY(i)), &y));
    assert_is(y, "int16[2, 3]", NUMBERS(2, 0, 2, 5, 3, 5));
    Shape square = SHAPE(3, 1);
    OK(tensor_reshape(i, &square, &grid));
    OK(index_get(x, ITEMS(ALL, BY(grid)), &y));
    assert_is(y, "int16[2, 3, 1]", NUMBERS(2, 0, 2, 5, 3, 5));
    tensor_release(grid);
    tensor_release(i);
    double whole[] = {1.0, 0.0};
    Shape two = SHAPE(2);
    OK(tensor_from_floats(whole, &two, DTYPE_FLOAT32, &i));
    OK(index_get(x, ITEMS(BY(i), INT_ITEM(1)), &y));
    assert_is(y, "int16[2]", NUMBERS(4, 1));
    tensor_release(i);
    tensor_release(x);
}

static void test_several_index_tensors(void **state) {
    (void)state;
    for (int layout = 0; layout < LAYOUTS; layout++) {
        Tensor *x = lay_out_as(iota(DTYPE_FLOAT64, SHAPE(2, 3, 4)), (TestLayout)layout);
        Tensor *a = IDS(1, 0), *b = IDS(2, 1), *column, *y;
        Shape tall = SHAPE(2, 1);
        OK(tensor_reshape(b, &tall, &column));
        OK(index_get(x, ITEMS(BY(a), BY(b)), &y)); // x[a, b]: together
        assert_is(y, "float64[2, 4]", NUMBERS(20, 21, 22, 23, 4, 5, 6, 7));
        OK(index_get(x, ITEMS(ALL, BY(b), BY(a)), &y)); // adjacent: their place is kept
        assert_is(y, "float64[2, 2]", NUMBERS(9, 4, 21, 16));
        OK(index_get(x, ITEMS(BY(a), ALL, BY(b)), &y)); // parted: in front
        assert_is(y, "float64[2, 3]", NUMBERS(14, 18, 22, 1, 5, 9));
        OK(index_get(x, ITEMS(INT_ITEM(1), ALL, BY(b)), &y)); // an integer counts as one of them
        assert_is(y, "float64[2, 3]", NUMBERS(14, 18, 22, 13, 17, 21));
        OK(index_get(x, ITEMS(BY(a), BY(column)), &y)); // broadcast: [2] with [2, 1]
        assert_type(y, "float64[2, 2, 4]");
        double *got = read_all(y);
        assert_true(got[0] == 20 && got[4] == 8 && got[8] == 16 && got[12] == 4);
        free(got);
        tensor_release(y);
        tensor_release(a);
        tensor_release(b);
        tensor_release(column);
        tensor_release(x);
    }
}

static void test_parted_index_tensors_go_in_front(void **state) {
    (void)state;
    Tensor *x = iota(DTYPE_FLOAT32, SHAPE(3, 2, 4, 2)), *i = IDS(1, 0), *y;
    OK(index_get(x, ITEMS(ALL, BY(i), SLICE(0, 1), BY(i)), &y)); // x[:, i, 0:1, i]
    assert_is(y, "float32[2, 3, 1]", NUMBERS(9, 25, 41, 0, 16, 32));
    tensor_release(i);
    tensor_release(x);
}

static void test_masks(void **state) {
    (void)state;
    Tensor *x = iota(DTYPE_FLOAT32, SHAPE(2, 3)), *y;
    Tensor *mask = make_tensor(DTYPE_BOOL, SHAPE(2, 3), NUMBERS(1, 0, 1, 0, 0, 1));
    OK(index_get(x, ITEMS(BY(mask)), &y));
    assert_is(y, "float32[3]", NUMBERS(0, 2, 5));
    tensor_release(mask);
    mask = make_tensor(DTYPE_BOOL, SHAPE(3), NUMBERS(0, 1, 1));
    OK(index_get(x, ITEMS(ALL, BY(mask)), &y));
    assert_is(y, "float32[2, 2]", NUMBERS(1, 2, 4, 5));
    FAILS(STATUS_INDEX, "the mask is bool[3], but dimension 0 of float32[2, 3] has size 2",
          index_get(x, ITEMS(BY(mask)), &y));
    tensor_release(mask);
    mask = make_tensor(DTYPE_BOOL, SHAPE(2), NUMBERS(0, 0));
    OK(index_get(x, ITEMS(BY(mask)), &y));
    assert_is(y, "float32[0, 3]", NULL);
    tensor_release(mask);
    tensor_release(x);
}

static void test_errors(void **state) {
    (void)state;
    Tensor *x = iota(DTYPE_FLOAT32, SHAPE(2, 3)), *y, *far = IDS(0, 3), *three = IDS(0, 1, 0),
           *two = IDS(0, 1);
    FAILS(STATUS_INDEX,
          "index -4 is out of range for dimension 1 of float32[2, 3], which has size 3",
          index_get(x, ITEMS(INT_ITEM(0), INT_ITEM(-4)), &y));
    FAILS(STATUS_INDEX,
          "index 3 is out of range for dimension 1 of float32[2, 3], which has size 3",
          index_get(x, ITEMS(INT_ITEM(0), BY(far)), &y));
    FAILS(STATUS_INDEX, "float32[2, 3] has 2 dimensions, but the index names 3",
          index_get(x, ITEMS(ALL, ALL, ALL), &y));
    FAILS(STATUS_INDEX, "an index may hold only one ...", index_get(x, ITEMS(DOTS, DOTS), &y));
    FAILS(STATUS_SHAPE,
          "cannot apply index to int64[2] and int64[3]: dimension 0 is 2 here and 3 there",
          index_get(x, ITEMS(BY(two), BY(three)), &y));
    Tensor *half = make_tensor(DTYPE_FLOAT64, SHAPE(1), NUMBERS(0.5));
    FAILS(STATUS_INDEX, "an index must be an integer, not 0.5", index_get(x, ITEMS(BY(half)), &y));
    FAILS(STATUS_INDEX, "the step of a slice cannot be 0", index_get(x, ITEMS(STEP(0)), &y));
    FAILS(STATUS_SHAPE, "cannot assign int64[2] to a part of float32[2, 3] that has shape [3]",
          index_set(&x, ITEMS(INT_ITEM(0)), op_tensor(two), true));
    FAILS(STATUS_INDEX,
          "index 2 is out of range for dimension 0 of float32[2, 3], which has size 2",
          index_set(&x, ITEMS(INT_ITEM(2)), op_int(1), true));
    tensor_release(half);
    tensor_release(far);
    tensor_release(two);
    tensor_release(three);
    assert_is(x, "float32[2, 3]", NUMBERS(0, 1, 2, 3, 4, 5)); // failures changed nothing
}

static void test_assignments(void **state) {
    (void)state;
    Tensor *x = iota(DTYPE_FLOAT32, SHAPE(2, 3)), *row = iota(DTYPE_INT64, SHAPE(1, 3));
    OK(index_set(&x, ITEMS(INT_ITEM(0), INT_ITEM(1)), op_float(9.5), true));
    OK(index_set(&x, ITEMS(INT_ITEM(1)), op_tensor(row),
                 true)); // a leading 1 is dropped, ints converted
    assert_is(tensor_retain(x), "float32[2, 3]", NUMBERS(0, 9.5, 2, 0, 1, 2));
    OK(index_set(&x, ITEMS(ALL, STEP(-2)), op_int(7), true));
    assert_is(tensor_retain(x), "float32[2, 3]", NUMBERS(7, 9.5, 7, 7, 1, 7));
    OK(index_set(&x, ITEMS(DOTS), op_tensor(row), true));
    assert_is(tensor_retain(x), "float32[2, 3]", NUMBERS(0, 1, 2, 0, 1, 2));
    tensor_release(row);
    Tensor *i = IDS(1, 0), *j = IDS(2, 0),
           *values = make_tensor(DTYPE_FLOAT16, SHAPE(2), NUMBERS(5, 6));
    OK(index_set(&x, ITEMS(BY(i), BY(j)), op_tensor(values), true));
    assert_is(tensor_retain(x), "float32[2, 3]", NUMBERS(6, 1, 2, 0, 1, 5));
    OK(index_set(&x, ITEMS(ALL, BY(i)), op_tensor(values), true));
    assert_is(tensor_retain(x), "float32[2, 3]", NUMBERS(6, 5, 2, 6, 5, 5));
    OK(index_set(&x, ITEMS(BY(i)), op_int(3), true));
    assert_is(tensor_retain(x), "float32[2, 3]", NUMBERS(3, 3, 3, 3, 3, 3));
    tensor_release(i);
    tensor_release(j);
    Tensor *mask = make_tensor(DTYPE_BOOL, SHAPE(2, 3), NUMBERS(1, 0, 0, 0, 0, 1));
    OK(index_set(&x, ITEMS(BY(mask)), op_tensor(values), true)); // one value per true element
    assert_is(tensor_retain(x), "float32[2, 3]", NUMBERS(5, 3, 3, 3, 3, 6));
    OK(index_set(&x, ITEMS(BY(mask)), op_float(-1), true));
    assert_is(tensor_retain(x), "float32[2, 3]", NUMBERS(-1, 3, 3, 3, 3, -1));
    tensor_release(mask);
    mask = make_tensor(DTYPE_BOOL, SHAPE(2), NUMBERS(0, 1));
    OK(index_set(&x, ITEMS(BY(mask)), op_int(8), true)); // rows
    assert_is(x, "float32[2, 3]", NUMBERS(-1, 3, 3, 8, 8, 8));
    tensor_release(mask);
    tensor_release(values);
}

// Parted and adjacent index tensors put their values where reading finds them again.
static void test_what_is_assigned_is_read_back(void **state) {
    (void)state;
    Tensor *a = IDS(1, 0), *b = IDS(2, 1);
    const IndexItem cases[][3] = {
        {BY(a), ALL, BY(b)},       {ALL, BY(a), BY(b)},           {BY(a), BY(b), ALL},
        {INT_ITEM(1), ALL, BY(b)}, {SLICE(0, 1), BY(b), STEP(2)}, {BY(a), SLICE(1, 3), INT_ITEM(2)},
        {AXIS, BY(a), BY(b)},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        Tensor *x = iota(DTYPE_FLOAT32, SHAPE(2, 3, 4)), *part, *negative, *again;
        OK(index_get(x, cases[c], 3, &part));
        OK(op_unary(OP_neg, part, &negative));
        OK(index_set(&x, cases[c], 3, op_tensor(negative), true));
        OK(index_get(x, cases[c], 3, &again));
        double *wanted = read_all(negative), *got = read_all(again), *all = read_all(x);
        assert_memory_equal(got, wanted, (size_t)tensor_count(again) * sizeof *got);
        for (int i = 0; i < 24; i++) assert_true(fabs(all[i]) == i); // nothing else moved
        free(all);
        free(wanted);
        free(got);
        tensor_release(part);
        tensor_release(negative);
        tensor_release(again);
        tensor_release(x);
    }
    tensor_release(a);
    tensor_release(b);
}

static void test_copy_on_write(void **state) {
    (void)state;
    Tensor *x = iota(DTYPE_FLOAT32, SHAPE(4)), *view;
    Buffer *own = x->view.buffer;
    OK(index_set(&x, ITEMS(INT_ITEM(0)), op_int(9), true));
    assert_ptr_equal(x->view.buffer, own); // nobody else: in place
    Tensor *second = tensor_retain(x);
    OK(index_set(&x, ITEMS(INT_ITEM(1)), op_int(9), false));
    assert_ptr_not_equal(x, second);
    assert_is(second, "float32[4]", NUMBERS(9, 1, 2, 3));
    OK(tensor_slice(x, 0, 0, 2, &view));
    OK(index_set(&x, ITEMS(INT_ITEM(0)), op_int(5), true)); // a view holds the buffer
    assert_is(view, "float32[2]", NUMBERS(9, 9));
    // x[1:] = x[:-1]: the value is a view of the target.
    OK(tensor_slice(x, 0, 0, 3, &view));
    OK(index_set(&x, ITEMS(SLICE(1, 4)), op_tensor(view), true));
    assert_is(tensor_retain(x), "float32[4]", NUMBERS(5, 5, 9, 2));
    tensor_release(view);
    OK(index_set(&x, ITEMS(STEP(-1)), op_tensor(x), true)); // x[::-1] = x
    assert_is(x, "float32[4]", NUMBERS(2, 9, 5, 5));
    // A literal stays what the text says.
    Shape two = SHAPE(2);
    Tensor *literal;
    OK(tensor_from_floats(NUMBERS(1, 2), &two, DTYPE_FLOAT32, &literal));
    OK(tensor_materialize(literal));
    Tensor *variable = tensor_retain(literal);
    OK(index_set(&variable, ITEMS(INT_ITEM(0)), op_int(7), true));
    assert_is(variable, "float32[2]", NUMBERS(7, 2));
    assert_is(literal, "float32[2]", NUMBERS(1, 2));
    // A broadcast tensor has one element in many places.
    Tensor *one = iota(DTYPE_FLOAT32, SHAPE(1)), *wide;
    Shape three = SHAPE(3);
    OK(tensor_broadcast_to(one, &three, &wide));
    tensor_release(one);
    OK(index_set(&wide, ITEMS(INT_ITEM(1)), op_int(4), true));
    assert_is(wide, "float32[3]", NUMBERS(0, 4, 0));
}

static void test_every_dtype_takes_every_value(void **state) {
    (void)state;
    for (int d = 0; d < DTYPES; d++)
        for (int v = 0; v < DTYPES; v++) {
            Tensor *x = make_tensor(all_dtypes[d], SHAPE(2, 2), NUMBERS(0, 0, 0, 0));
            Tensor *value = make_tensor(all_dtypes[v], SHAPE(2), NUMBERS(1, 0)), *i = IDS(1);
            OK(index_set(&x, ITEMS(INT_ITEM(0)), op_tensor(value), true));
            OK(index_set(&x, ITEMS(BY(i)), op_tensor(value), true));
            double *got = read_all(x);
            assert_true(got[0] == 1 && got[1] == 0 && got[2] == 1 && got[3] == 0);
            free(got);
            tensor_release(i);
            tensor_release(value);
            tensor_release(x);
        }
}

// A device that runs ahead reads numbers of an index once, until something is written there.
static void test_known_indexes_are_not_read(void **state) {
    (void)state;
    Tensor *x = iota(DTYPE_FLOAT32, SHAPE(3, 2)), *literal = IDS(2, 0, 1), *i, *picked, *y;
    OK(op_binary(OP_add, op_tensor(literal), op_int(0), &i));
    OK(index_get(x, ITEMS(BY(i)), &y));
    tensor_release(y);
    uint64_t before = pool_statistics(x->device).bytes_downloaded;
    OK(index_get(i, ITEMS(BY(i)), &picked));
    OK(index_get(x, ITEMS(ALL, INT_ITEM(0)), &y));
    tensor_release(y);
    OK(index_get(x, ITEMS(BY(picked)), &y));
    uint64_t after = pool_statistics(x->device).bytes_downloaded;
    assert_true(after == before || !device_runs_ahead(x->device));
    assert_is(y, "float32[3, 2]", NUMBERS(2, 3, 4, 5, 0, 1));
    OK(index_set(&i, ITEMS(INT_ITEM(1)), op_int(7), true));
    FAILS(STATUS_INDEX,
          "index 7 is out of range for dimension 0 of float32[3, 2], which has size 3",
          index_get(x, ITEMS(BY(i)), &y));
    tensor_release(picked);
    tensor_release(i);
    tensor_release(literal);
    tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_basic_indexes_are_views),
        cmocka_unit_test(test_one_index_tensor),
        cmocka_unit_test(test_several_index_tensors),
        cmocka_unit_test(test_parted_index_tensors_go_in_front),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_assignments),
        cmocka_unit_test(test_what_is_assigned_is_read_back),
        cmocka_unit_test(test_copy_on_write),
        cmocka_unit_test(test_every_dtype_takes_every_value),
        cmocka_unit_test(test_known_indexes_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
