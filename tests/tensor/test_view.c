// Shapes: which results are views, what they hold in every layout, and the words of the errors.
#include "tests/tensor/tensors.h"

static Tensor *iota(Shape shape) {
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++) count *= shape.dims[i];
    double *values = malloc((size_t)count * sizeof *values + 1);
    for (int64_t i = 0; i < count; i++) values[i] = (double)i;
    Tensor *x = make_tensor(DTYPE_FLOAT32, shape, values);
    free(values);
    return x;
}

// Type and contents; takes x.
static void assert_is(Tensor *x, const char *type, const double *wanted) {
    assert_type(x, type);
    double *got = read_all(x);
    for (int64_t i = 0; i < tensor_count(x); i++)
        if (got[i] != wanted[i]) fail_msg("element %d is %g, not %g", (int)i, got[i], wanted[i]);
    free(got);
    tensor_release(x);
}
#define NUMBERS(...) ((double[]){__VA_ARGS__})

static void test_reshape(void **state) {
    (void)state;
    for (int layout = 0; layout < LAYOUTS; layout++) {
        Tensor *x = lay_out_as(iota(SHAPE(2, 3, 4)), (TestLayout)layout), *y;
        double *wanted = read_all(x);
        Shape shapes[] = {SHAPE(24),      SHAPE(4, -1),      SHAPE(2, 12),
                          SHAPE(3, 1, 8), SHAPE(2, 3, 2, 2), SHAPE(1, 24)};
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            OK(tensor_reshape(x, &shapes[s], &y));
            double *got = read_all(y);
            assert_memory_equal(got, wanted, 24 * sizeof *got);
            free(got);
            tensor_release(y);
        }
        free(wanted);
        tensor_release(x);
    }
    Tensor *x = iota(SHAPE(2, 3, 4)), *rows, *y;
    OK(tensor_slice(x, 1, 0, 2, &rows)); // [2, 2, 4], the last dimension can still be cut
    Shape cut = SHAPE(2, 2, 2, 2), merged = SHAPE(4, 4);
    OK(tensor_reshape(rows, &cut, &y));
    assert_ptr_equal(y->view.buffer, x->view.buffer);
    tensor_release(y);
    OK(tensor_reshape(rows, &merged, &y)); // but rows of different matrices do not lie evenly
    assert_ptr_not_equal(y->view.buffer, x->view.buffer);
    assert_is(y, "float32[4, 4]", NUMBERS(0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15, 16, 17, 18, 19));
    tensor_release(rows);
    tensor_release(x);
}

static void test_reshape_over_sizes_of_1(void **state) {
    (void)state;
    Tensor *x = iota(SHAPE(2, 2, 8, 3)), *first, *rows, *turned, *y;
    OK(tensor_slice(x, 1, 0, 1, &first));
    OK(tensor_slice(first, 2, 0, 4, &rows));
    OK(tensor_transpose(rows, 1, 2, &turned)); // [2, 4, 1, 3]: the stride of the 1 does not matter
    Shape merged = SHAPE(2, 12);
    OK(tensor_reshape(turned, &merged, &y));
    assert_ptr_equal(y->view.buffer, x->view.buffer);
    assert_int_equal(y->view.strides[0], 2 * 8 * 3);
    tensor_release(y);
    tensor_release(turned);
    tensor_release(rows);
    tensor_release(first);
    tensor_release(x);
}

static void test_reshape_errors(void **state) {
    (void)state;
    Tensor *x = iota(SHAPE(2, 3)), *y;
    Shape s = SHAPE(4, 2);
    FAILS(STATUS_SHAPE, "cannot reshape float32[2, 3] (6 elements) to [4, 2], which has 8",
          tensor_reshape(x, &s, &y));
    s = SHAPE(4, -1);
    FAILS(STATUS_SHAPE,
          "cannot reshape float32[2, 3] (6 elements) to [4, -1]: 6 is not a multiple of 4",
          tensor_reshape(x, &s, &y));
    s = SHAPE(-1, -1);
    FAILS(STATUS_SHAPE,
          "cannot reshape float32[2, 3] (6 elements) to [-1, -1]: only one size may be -1",
          tensor_reshape(x, &s, &y));
    s = SHAPE(-2, 3);
    FAILS(STATUS_SHAPE,
          "cannot reshape float32[2, 3] (6 elements) to [-2, 3]: a size cannot be negative",
          tensor_reshape(x, &s, &y));
    s = (Shape){.rank = 2, .dims = {1ll << 40, 1ll << 40}};
    assert_int_equal(tensor_reshape(x, &s, &y), STATUS_SHAPE);
    tensor_release(x);
    x = iota(SHAPE(0, 3));
    s = SHAPE(0, -1);
    FAILS(
        STATUS_SHAPE,
        "cannot reshape float32[0, 3] (0 elements) to [0, -1]: next to a size of 0 the rest could "
        "be "
        "anything",
        tensor_reshape(x, &s, &y));
    s = SHAPE(5, 0);
    OK(tensor_reshape(x, &s, &y));
    assert_type(y, "float32[5, 0]");
    tensor_release(y);
    tensor_release(x);
}

static void test_permutations(void **state) {
    (void)state;
    Tensor *x = iota(SHAPE(2, 3)), *y;
    OK(tensor_transpose(x, -1, 0, &y));
    assert_ptr_equal(y->view.buffer, x->view.buffer);
    assert_is(y, "float32[3, 2]", NUMBERS(0, 3, 1, 4, 2, 5));
    FAILS(STATUS_INDEX, "dim 2 is out of range for float32[2, 3]: it has 2 dimensions",
          tensor_transpose(x, 0, 2, &y));
    Shape order = SHAPE(0, 0);
    FAILS(STATUS_SHAPE,
          "permute needs each of the 2 dimensions of float32[2, 3] once, but got [0, 0]",
          tensor_permute(x, &order, &y));
    tensor_release(x);
    x = iota(SHAPE(2, 3, 4));
    order = SHAPE(2, 0, -2);
    OK(tensor_permute(x, &order, &y));
    assert_type(y, "float32[4, 2, 3]");
    tensor_release(y);
    OK(tensor_move_dim(x, 0, 1, &y));
    assert_type(y, "float32[3, 2, 4]");
    tensor_release(y);
    OK(tensor_move_dim_last(x, 0, &y));
    assert_type(y, "float32[3, 4, 2]");
    tensor_release(y);
    OK(tensor_move_dim(x, -1, 0, &y));
    assert_type(y, "float32[4, 2, 3]");
    tensor_release(y);
    tensor_release(x);
    x = make_samples(DTYPE_FLOAT32, shape_of(0), 0);
    OK(tensor_reverse_dims(x, &y));
    assert_type(y, "float32[]");
    tensor_release(y);
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(d0) | ATTRIBUTE_BIT(d1), .d0 = -2, .d1 = -1};
    OK(op_with(OP_transpose, &x, 1, &attributes, &y));
    assert_type(y, "float32[]");
    tensor_release(y);
    FAILS(STATUS_INDEX, "dim 0 is out of range for float32[]: it has 0 dimensions",
          tensor_transpose(x, 0, 0, &y));
    tensor_release(x);
}

static void test_small_views(void **state) {
    (void)state;
    Tensor *x = iota(SHAPE(1, 3, 1)), *y;
    OK(tensor_squeeze_all(x, &y));
    assert_is(y, "float32[3]", NUMBERS(0, 1, 2));
    OK(tensor_squeeze(x, 0, &y));
    assert_is(y, "float32[3, 1]", NUMBERS(0, 1, 2));
    OK(tensor_squeeze(x, 1, &y));
    assert_is(y, "float32[1, 3, 1]", NUMBERS(0, 1, 2));
    OK(tensor_unsqueeze(x, -1, &y));
    assert_is(y, "float32[1, 3, 1, 1]", NUMBERS(0, 1, 2));
    OK(tensor_flatten(x, 0, -1, &y));
    assert_is(y, "float32[3]", NUMBERS(0, 1, 2));
    FAILS(STATUS_INDEX, "dim 4 is out of range for float32[1, 3, 1]: it may be -4 to 3",
          tensor_unsqueeze(x, 4, &y));
    tensor_release(x);
    x = iota(SHAPE(3, 3));
    OK(tensor_diagonal(x, 0, 1, &y));
    assert_is(y, "float32[3]", NUMBERS(0, 4, 8));
    OK(tensor_flip(x, 0, &y));
    assert_is(y, "float32[3, 3]", NUMBERS(6, 7, 8, 3, 4, 5, 0, 1, 2));
    OK(tensor_slice_by(x, 1, &(SliceBounds){true, true, true, -1, -10, -2}, &y));
    assert_is(y, "float32[3, 2]", NUMBERS(2, 0, 5, 3, 8, 6));
    OK(tensor_slice(x, 0, 2, 1, &y));
    assert_is(y, "float32[0, 3]", NULL);
    OK(tensor_slice_by(x, 0, &(SliceBounds){true, true, true, 0, 3, INT64_MAX}, &y));
    assert_is(y, "float32[1, 3]", NUMBERS(0, 1, 2));
    OK(tensor_slice_by(x, 0, &(SliceBounds){true, true, true, INT64_MAX, INT64_MIN, INT64_MIN},
                       &y));
    assert_is(y, "float32[1, 3]", NUMBERS(6, 7, 8));
    FAILS(STATUS_INDEX, "the step of a slice cannot be 0",
          tensor_slice_by(x, 0, &(SliceBounds){true, true, true, 0, 3, 0}, &y));
    OK(tensor_select(x, 1, -1, &y));
    assert_is(y, "float32[3]", NUMBERS(2, 5, 8));
    FAILS(STATUS_INDEX,
          "index 3 is out of range for dimension 1 of float32[3, 3], which has size 3",
          tensor_select(x, 1, 3, &y));
    tensor_release(x);
}

static void test_broadcast_to(void **state) {
    (void)state;
    Tensor *x = iota(SHAPE(2, 1)), *y;
    Shape s = SHAPE(2, -1, 3);
    OK(tensor_broadcast_to(x, &s, &y));
    assert_ptr_equal(y->view.buffer, x->view.buffer);
    assert_is(y, "float32[2, 2, 3]", NUMBERS(0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1));
    s = SHAPE(3, 2);
    FAILS(STATUS_SHAPE, "cannot broadcast float32[2, 1] to [3, 2]", tensor_broadcast_to(x, &s, &y));
    s = SHAPE(2);
    FAILS(STATUS_SHAPE, "cannot broadcast float32[2, 1] to [2]", tensor_broadcast_to(x, &s, &y));
    s = (Shape){.rank = 4, .dims = {1ll << 40, 1ll << 40, 2, 1}};
    assert_int_equal(tensor_broadcast_to(x, &s, &y), STATUS_SHAPE);
    tensor_release(x);
}

static void test_joins(void **state) {
    (void)state;
    Tensor *x = iota(SHAPE(2, 2)), *y = make_samples(DTYPE_INT32, SHAPE(2, 1), 2), *out;
    OK(tensor_concat((Tensor *const[]){x, y}, 2, -1, &out));
    assert_is(out, "float32[2, 3]", NUMBERS(0, 1, -3, 2, 3, 2));
    FAILS(STATUS_SHAPE,
          "cannot concat float32[2, 2] and int32[2, 1] along dimension 0: dimension 1 is 2 here "
          "and 1 "
          "there",
          tensor_concat((Tensor *const[]){x, y}, 2, 0, &out));
    FAILS(STATUS_SHAPE, "cannot stack float32[2, 2] and int32[2, 1]: all shapes must be equal",
          tensor_stack((Tensor *const[]){x, y}, 2, 0, &out));
    FAILS(STATUS_VALUE, "concat needs at least one tensor", tensor_concat(NULL, 0, 0, &out));
    OK(tensor_stack((Tensor *const[]){x, x}, 2, -1, &out));
    assert_is(out, "float32[2, 2, 2]", NUMBERS(0, 0, 1, 1, 2, 2, 3, 3));
    OpInput many[] = {op_tensor(x), op_tensor(y), op_int(1)};
    OpCall call = {.op = &op_rows[OP_concat_each], .many = many, .n_many = 3};
    OK(op_apply(&call, &out));
    assert_is(out, "float32[2, 3]", NUMBERS(0, 1, -3, 2, 3, 2));
    tensor_release(x);
    tensor_release(y);
}

static void test_pieces(void **state) {
    (void)state;
    Tensor *x = iota(SHAPE(5));
    TensorArray pieces;
    OK(tensor_split(x, (int64_t[]){2}, 1, 0, &pieces));
    assert_int_equal(pieces.count, 3);
    assert_type(pieces.items[2], "float32[1]");
    assert_ptr_equal(pieces.items[1]->view.buffer, x->view.buffer);
    tensor_array_release(&pieces);
    OK(tensor_split(x, (int64_t[]){1, 0, 4}, 3, -1, &pieces));
    assert_type(pieces.items[2], "float32[4]");
    tensor_array_release(&pieces);
    FAILS(STATUS_SHAPE,
          "split sizes [2, 2] must add up to 5, the size of dimension 0 of float32[5]",
          tensor_split(x, (int64_t[]){2, 2}, 2, 0, &pieces));
    FAILS(STATUS_VALUE, "split: the size of a piece must be positive, not 0",
          tensor_split(x, (int64_t[]){0}, 1, 0, &pieces));
    OK(tensor_chunk(x, 3, 0, &pieces));
    assert_int_equal(pieces.count, 3);
    tensor_array_release(&pieces);
    OK(tensor_chunk(x, 1000000, 0, &pieces));
    assert_int_equal(pieces.count, 5);
    tensor_array_release(&pieces);
    FAILS(STATUS_VALUE, "chunk: the number of pieces must be positive, not 0",
          tensor_chunk(x, 0, 0, &pieces));
    tensor_release(x);
}

static Status run(OpId op, Tensor *x, const OpAttributes *attributes, Tensor **out) {
    return op_with(op, &x, 1, attributes, out);
}

static void test_repetition_at_the_greatest_rank(void **state) {
    (void)state;
    Tensor *x = iota(SHAPE(1, 1, 1, 1, 1, 1, 2, 2)), *out;
    int64_t twice[] = {2}, grid[] = {2, 1};
    OK(run(OP_tile, x, &(OpAttributes){.given = ATTRIBUTE_BIT(repeats), .repeats = {grid, 2}},
           &out));
    assert_is(out, "float32[1, 1, 1, 1, 1, 1, 4, 2]", NUMBERS(0, 1, 2, 3, 0, 1, 2, 3));
    OpAttributes each = {
        .given = ATTRIBUTE_BIT(repeats) | ATTRIBUTE_BIT(dim), .repeats = {twice, 1}, .dim = 6};
    OK(run(OP_repeat, x, &each, &out));
    assert_is(out, "float32[1, 1, 1, 1, 1, 1, 4, 2]", NUMBERS(0, 1, 0, 1, 2, 3, 2, 3));
    tensor_release(x);
}

static void test_rows_with_attributes(void **state) {
    (void)state;
    Tensor *x = iota(SHAPE(2, 2)), *out;
#define GIVEN(name) .given = ATTRIBUTE_BIT(name), .name
    int64_t twice[] = {2}, grid[] = {2, 1}, one[] = {1}, pair[] = {1, 2}, three[] = {1, 2, 3};
    OK(run(OP_tile, x, &(OpAttributes){GIVEN(repeats) = {twice, 1}}, &out));
    assert_is(out, "float32[2, 4]", NUMBERS(0, 1, 0, 1, 2, 3, 2, 3));
    OK(run(OP_repeat, x, &(OpAttributes){GIVEN(repeats) = {grid, 2}}, &out));
    assert_is(out, "float32[4, 2]", NUMBERS(0, 1, 2, 3, 0, 1, 2, 3));
    OpAttributes each = {
        .given = ATTRIBUTE_BIT(repeats) | ATTRIBUTE_BIT(dim), .repeats = {twice, 1}, .dim = 0};
    OK(run(OP_repeat, x, &each, &out));
    assert_is(out, "float32[4, 2]", NUMBERS(0, 1, 0, 1, 2, 3, 2, 3));
    OK(run(OP_flip, x, NULL, &out));
    assert_is(out, "float32[2, 2]", NUMBERS(3, 2, 1, 0));
    OK(run(OP_roll, x, &(OpAttributes){GIVEN(shifts) = {one, 1}}, &out));
    assert_is(out, "float32[2, 2]", NUMBERS(3, 0, 1, 2));
    OpAttributes along = {
        .given = ATTRIBUTE_BIT(shifts) | ATTRIBUTE_BIT(dims), .shifts = {one, 1}, .dims = SHAPE(1)};
    OK(run(OP_roll, x, &along, &out));
    assert_is(out, "float32[2, 2]", NUMBERS(1, 0, 3, 2));
    OK(run(OP_pad, x, &(OpAttributes){GIVEN(padding) = {pair, 2}}, &out));
    assert_is(out, "float32[2, 5]", NUMBERS(0, 0, 1, 0, 0, 0, 2, 3, 0, 0));
    OpAttributes border = {.given = ATTRIBUTE_BIT(padding) | ATTRIBUTE_BIT(value),
                           .padding = {one, 1},
                           .value = {.dtype = DTYPE_FLOAT64, .as.f = 0.5}};
    OK(run(OP_pad, x, &border, &out));
    assert_is(out, "float32[4, 4]",
              NUMBERS(.5, .5, .5, .5, .5, 0, 1, .5, .5, 2, 3, .5, .5, .5, .5, .5));
    FAILS(STATUS_VALUE, "pad: 3 numbers do not fit float32[2, 2]",
          run(OP_pad, x, &(OpAttributes){GIVEN(padding) = {three, 3}}, &out));
    OpAttributes part = {.row = 1,
                         .start = {.dtype = DTYPE_INT64, .as.i = 0},
                         .stop = {.dtype = DTYPE_INT64, .as.i = 1}};
    OK(run(OP_slice, x, &part, &out));
    assert_is(out, "float32[1]", NUMBERS(2));
    OK(run(OP_slice_last, x, NULL, &out));
    assert_is(out, "float32[2]", NUMBERS(2, 3));
    OK(run(OP_slice_last, x, &(OpAttributes){GIVEN(dim) = 1}, &out));
    assert_is(out, "float32[2]", NUMBERS(1, 3));
    OK(run(OP_gelu_choice, x, &(OpAttributes){GIVEN(exact) = true}, &out));
    double *got = read_all(out);
    assert_true(fabs(got[1] - 0.5 * (1 + erf(1 / sqrt(2)))) < 1e-6);
    free(got);
    tensor_release(out);
    tensor_release(x);
}

static void test_quantised_views(void **state) {
    (void)state;
    Device *device;
    OK(device_default(&device));
    Shape shape = SHAPE(4, 64), split = SHAPE(2, 2, 64), cut = SHAPE(8, 32);
    Tensor *w, *out;
    OK(tensor_new(device, DTYPE_Q8_0, &shape, &w));
    static const uint8_t zeros[4 * 2 * 34];
    assert_int_equal(w->view.buffer->bytes, sizeof zeros);
    OK(buffer_upload(w->view.buffer, 0, zeros, sizeof zeros));
    OK(tensor_select(w, 0, 2, &out));
    assert_type(out, "q8_0[64]");
    assert_int_equal(out->view.offset, 2 * 2 * 34);
    tensor_release(out);
    OK(tensor_transpose(w, 0, 1, &out));
    assert_type(out, "q8_0[64, 4]");
    tensor_release(out);
    OK(tensor_reshape(w, &split, &out));
    tensor_release(out);
    assert_int_equal(tensor_reshape(w, &cut, &out), STATUS_SHAPE);
    FAILS(STATUS_DTYPE,
          "cannot cut q8_0[4, 64] along dimension 1: its blocks of 32 elements lie there",
          tensor_slice(w, 1, 0, 32, &out));
    OK(tensor_cast(w, DTYPE_FLOAT16, &out));
    assert_type(out, "float16[4, 64]");
    tensor_release(out);
    Tensor *column;
    OK(tensor_unsqueeze(w, -1, &column)); // no blocks lie along the new dimension
    OK(tensor_select(column, 2, 0, &out));
    assert_type(out, "q8_0[4, 64]");
    tensor_release(out);
    tensor_release(column);
    OK(tensor_new(device, DTYPE_FLOAT32, &shape, &column));
    FAILS(STATUS_DTYPE, "concat cannot take q8_0[4, 64]: quantised tensors are read-only weights",
          tensor_concat((Tensor *const[]){column, w}, 2, 0, &out));
    tensor_release(column);
    tensor_release(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reshape),
        cmocka_unit_test(test_reshape_errors),
        cmocka_unit_test(test_permutations),
        cmocka_unit_test(test_small_views),
        cmocka_unit_test(test_broadcast_to),
        cmocka_unit_test(test_joins),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_repetition_at_the_greatest_rank),
        cmocka_unit_test(test_rows_with_attributes),
        cmocka_unit_test(test_quantised_views),
        cmocka_unit_test(test_reshape_over_sizes_of_1),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
