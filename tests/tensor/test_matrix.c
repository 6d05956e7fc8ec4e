// Matrix products and what contains them, against loops in double.
#include "compare.h"

static int64_t step_of(Shape shape, int dim) {
    int64_t step = 1;
    for (int i = dim + 1; i < shape.rank; i++) step *= shape.dims[i];
    return step;
}

// a [.., M, K] @ b [.., K, N] for shapes of rank 2 or more whose leading dimensions broadcast.
static double *multiply(const double *a, Shape sa, const double *b, Shape sb, Shape out) {
    int64_t m = sa.dims[sa.rank - 2], k = sa.dims[sa.rank - 1], n = sb.dims[sb.rank - 1];
    double *result = calloc((size_t)shape_count(&out) + 1, sizeof *result);
    for (int64_t i = 0; i < shape_count(&out); i++) {
        int64_t at_a = 0, at_b = 0, batch = i / (m * n);
        for (int d = out.rank - 3; d >= 0; batch /= out.dims[d--]) {
            int64_t index = batch % out.dims[d];
            int da = d - (out.rank - sa.rank), db = d - (out.rank - sb.rank);
            if (da >= 0 && sa.dims[da] > 1) at_a += index * step_of(sa, da);
            if (db >= 0 && sb.dims[db] > 1) at_b += index * step_of(sb, db);
        }
        for (int64_t j = 0; j < k; j++)
            result[i] += a[at_a + i / n % m * k + j] * b[at_b + j * n + i % n];
    }
    return result;
}

// As the user sees the shape of a @ b, and as loops do: rank 1 is a row or a column.
static Shape product_shape(Shape a, Shape b, Shape *wide_a, Shape *wide_b, Shape *wide) {
    *wide_a = a.rank == 1 ? SHAPE(1, (int)a.dims[0]) : a;
    *wide_b = b.rank == 1 ? SHAPE((int)b.dims[0], 1) : b;
    int rank = wide_a->rank > wide_b->rank ? wide_a->rank : wide_b->rank;
    *wide = (Shape){.rank = rank};
    for (int d = 0; d < rank - 2; d++) {
        int da = d - (rank - wide_a->rank), db = d - (rank - wide_b->rank);
        int64_t x = da >= 0 ? wide_a->dims[da] : 1, y = db >= 0 ? wide_b->dims[db] : 1;
        wide->dims[d] = x == 1 ? y : x;
    }
    wide->dims[rank - 2] = wide_a->dims[wide_a->rank - 2];
    wide->dims[rank - 1] = wide_b->dims[wide_b->rank - 1];
    Shape shape = {0};
    for (int d = 0; d < rank; d++)
        if (!(d == rank - 2 && a.rank == 1) && !(d == rank - 1 && b.rank == 1))
            shape.dims[shape.rank++] = wide->dims[d];
    return shape;
}

static void check_product(Tensor *a, Tensor *b, DType dtype) {
    Shape wide_a, wide_b, wide;
    Shape shape = product_shape(tensor_shape(a), tensor_shape(b), &wide_a, &wide_b, &wide);
    double *va = read_all(a), *vb = read_all(b);
    double *want = multiply(va, wide_a, vb, wide_b, wide);
    expect(apply(OP_matmul, NULL, 2, a, b), dtype, shape, want);
    free(va);
    free(vb);
    free(want);
}

static void test_products(void **state) {
    (void)state;
    Shape pairs[][2] = {{SHAPE(3), SHAPE(3)},
                        {SHAPE(3), SHAPE(3, 4)},
                        {SHAPE(2, 3), SHAPE(3)},
                        {SHAPE(2, 3), SHAPE(3, 4)},
                        {SHAPE(5, 2, 3), SHAPE(3, 4)},
                        {SHAPE(5, 2, 3), SHAPE(5, 3, 4)},
                        {SHAPE(1, 2, 3), SHAPE(5, 3, 4)},
                        {SHAPE(2, 1, 2, 3), SHAPE(5, 3, 1)},
                        {SHAPE(2, 0), SHAPE(0, 3)},
                        {SHAPE(0, 3), SHAPE(3, 4)},
                        {SHAPE(4, 1, 3), SHAPE(3)},
                        {SHAPE(3), SHAPE(2, 3, 4)},
                        {SHAPE(2, 3, 4, 5), SHAPE(5, 2)}};
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
        for (int d = 0; d < DTYPES; d++)
            for (int la = 0; la < LAYOUTS; la++)
                for (int lb = 0; lb < LAYOUTS; lb++) {
                    DType dtype = all_dtypes[d];
                    double *va = numbers(shape_count(&pairs[p][0]), p, dtype);
                    double *vb = numbers(shape_count(&pairs[p][1]), p + 9, dtype);
                    Tensor *a = laid_out(dtype, pairs[p][0], va, (TestLayout)la);
                    Tensor *b = laid_out(dtype, pairs[p][1], vb, (TestLayout)lb);
                    if (dtype != DTYPE_UINT8 && dtype != DTYPE_INT8)
                        check_product(a, b, dtype == DTYPE_BOOL ? DTYPE_INT64 : dtype);
                    tensor_release(a);
                    tensor_release(b);
                    free(va);
                    free(vb);
                }
}

static void test_mixed_dtypes(void **state) {
    (void)state;
    struct {
        DType a, b, result;
    } mixed[] = {{DTYPE_FLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT32},
                 {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_FLOAT64},
                 {DTYPE_INT32, DTYPE_FLOAT16, DTYPE_FLOAT32},
                 {DTYPE_BFLOAT16, DTYPE_FLOAT16, DTYPE_FLOAT32},
                 {DTYPE_INT16, DTYPE_INT64, DTYPE_INT64}};
    double va[6] = {1, 2, 3, -1, -2, 0.5}, vb[6] = {2, 1, 4, 1, -3, 1};
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) {
        Tensor *a = make_tensor(mixed[i].a, SHAPE(2, 3), va);
        Tensor *b = make_tensor(mixed[i].b, SHAPE(3, 2), vb);
        check_product(a, b, mixed[i].result);
        tensor_release(a);
        tensor_release(b);
    }
}

static uint64_t buffers_taken(void) {
    Device *device;
    OK(device_default(&device));
    PoolStatistics pool = pool_statistics(device);
    return pool.allocations + pool.reuses;
}

// Any two floats, in the shapes of each of the device's ways: no operand is converted in memory.
static void test_mixed_floats(void **state) {
    (void)state;
    const DType floats[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
    const int sizes[][3] = {{1, 70, 40}, {3, 300, 33}, {40, 33, 3}, {70, 65, 50}}; // m, k, n
    for (int p = 0; p < 16; p++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            DType left = floats[p / 4], right = floats[p % 4], dtype = dtype_promote(left, right);
            int m = sizes[s][0], k = sizes[s][1], n = sizes[s][2];
            double *va = numbers((int64_t)m * k, s, left),
                   *vb = numbers((int64_t)n * k, s + 5, right);
            Tensor *a = make_tensor(left, SHAPE(m, k), va),
                   *w = make_tensor(right, SHAPE(n, k), vb);
            Tensor *across;
            OK(tensor_transpose(w, 0, 1, &across));
            check_product(a, across, dtype);
            uint64_t before = buffers_taken();
            Tensor *product = apply(OP_linear, NULL, 2, a, w);
            assert_int_equal(buffers_taken() - before, 1); // the result
            assert_string_equal(dtype_name(tensor_dtype(product)), dtype_name(dtype));
            tensor_release(product);
            tensor_release(across);
            tensor_release(a);
            tensor_release(w);
            free(va);
            free(vb);
        }
}

static void test_wrapping(void **state) {
    (void)state;
    double values[2] = {100, 100}, want = (double)(int8_t)(20000 & 0xff);
    Tensor *a = make_tensor(DTYPE_INT8, SHAPE(2), values);
    expect(apply(OP_matmul, NULL, 2, a, a), DTYPE_INT8, (Shape){0}, &want);
    tensor_release(a);
}

static void test_linear(void **state) {
    (void)state;
    double x[] = {1, 2, 3, 4, 5, 6}, w[] = {1, 0, -1, 2, 1, 0}, bias[] = {10, 20};
    double want[] = {8, 24, 8, 33}, plain[] = {-2, 4, -2, 13};
    DType floats[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
    for (int d = 0; d < 4; d++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            Tensor *tx = laid_out(floats[d], SHAPE(2, 3), x, (TestLayout)layout);
            Tensor *tw = laid_out(floats[d], SHAPE(2, 3), w, (TestLayout)layout);
            Tensor *tb = make_tensor(DTYPE_FLOAT32, SHAPE(2), bias), *wide;
            expect(apply(OP_linear, NULL, 3, tx, tw, tb), floats[d], SHAPE(2, 2), want);
            expect(apply(OP_linear, NULL, 2, tx, tw), floats[d], SHAPE(2, 2), plain);
            OK(tensor_unsqueeze(tx, 1, &wide));
            expect(apply(OP_linear, NULL, 3, wide, tw, tb), floats[d], SHAPE(2, 1, 2), want);
            tensor_release(wide);
            tensor_release(tx);
            tensor_release(tw);
            tensor_release(tb);
        }
}

static void test_quantised_weights(void **state) {
    (void)state;
    double *w = numbers(3 * 64, 5, DTYPE_INT8), *x = numbers(2 * 64, 6, DTYPE_FLOAT32);
    // Of so few digits that 16 bits for a group of 32 lose nothing.
    for (int i = 0; i < 2 * 64; i++) x[i] = floor(x[i] * 4096) / 4096;
    Tensor *quantised = make_q8_0(3, 64, w), *dense = make_tensor(DTYPE_FLOAT32, SHAPE(3, 64), w);
    Tensor *rows = make_tensor(DTYPE_FLOAT32, SHAPE(2, 64), x);
    Tensor *vector = make_tensor(DTYPE_FLOAT32, SHAPE(64), x), *turned, *columns;
    OK(tensor_transpose(quantised, 0, 1, &turned));
    OK(tensor_transpose(rows, 0, 1, &columns));
    struct {
        OpId op;
        Tensor *a, *b;
        bool left;
    } calls[] = {{OP_linear, rows, quantised, false},
                 {OP_matmul, rows, turned, false},
                 {OP_matmul, quantised, columns, true},
                 {OP_matmul, quantised, vector, true},
                 {OP_linear, vector, quantised, false}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        Tensor *other = dense, *turned_dense;
        OK(tensor_transpose(dense, 0, 1, &turned_dense));
        if (calls[i].b == turned) other = turned_dense;
        Tensor *want = calls[i].left ? apply(calls[i].op, NULL, 2, dense, calls[i].b)
                                     : apply(calls[i].op, NULL, 2, calls[i].a, other);
        Tensor *have = apply(calls[i].op, NULL, 2, calls[i].a, calls[i].b);
        double *numbers_wanted = read_all(want);
        assert_values(have, DTYPE_FLOAT32, tensor_shape(want), numbers_wanted);
        free(numbers_wanted);
        tensor_release(want);
        tensor_release(have);
        tensor_release(turned_dense);
    }
    Tensor *result;
    Tensor *both[2] = {quantised, turned};
    assert_fails(
        op_with(OP_matmul, both, 2, NULL, &result), STATUS_DTYPE,
        "matmul: both operands are quantised, q8_0[3, 64] and q8_0[64, 3]; convert one with "
        "`as float32`",
        "");
    // Blocks that do not run along the inner dimension are unpacked first.
    double *square = numbers(32 * 32, 8, DTYPE_INT8), *line = numbers(32, 9, DTYPE_FLOAT32);
    Tensor *block = make_q8_0(32, 32, square),
           *plain = make_tensor(DTYPE_FLOAT32, SHAPE(32, 32), square);
    Tensor *short_row = make_tensor(DTYPE_FLOAT32, SHAPE(32), line);
    Tensor *want = apply(OP_matmul, NULL, 2, short_row, plain);
    double *wanted = read_all(want);
    expect(apply(OP_matmul, NULL, 2, short_row, block), DTYPE_FLOAT32, SHAPE(32), wanted);
    free(wanted);
    tensor_release(want);
    tensor_release(block);
    tensor_release(plain);
    tensor_release(short_row);
    tensor_release(quantised);
    tensor_release(dense);
    tensor_release(rows);
    tensor_release(vector);
    tensor_release(turned);
    tensor_release(columns);
    free(square);
    free(line);
    free(w);
    free(x);
}

static void test_small_operations(void **state) {
    (void)state;
    double a[] = {1, 2, 3, 4}, b[] = {5, 6}, outer[] = {5, 6, 10, 12, 15, 18, 20, 24};
    double trace = 5, diagonal[] = {1, 4}, square[] = {5, 0, 0, 6};
    Tensor *matrix = laid_out(DTYPE_INT32, SHAPE(2, 2), a, TRANSPOSED);
    Tensor *vector = make_tensor(DTYPE_INT32, SHAPE(2), b);
    expect(apply(OP_outer, NULL, 2, matrix, vector), DTYPE_INT32, SHAPE(2, 2, 2), outer);
    expect(apply(OP_trace, NULL, 1, matrix), DTYPE_INT64, (Shape){0}, &trace);
    expect(apply(OP_diag, NULL, 1, matrix), DTYPE_INT32, SHAPE(2), diagonal);
    expect(apply(OP_diag, NULL, 1, vector), DTYPE_INT32, SHAPE(2, 2), square);
    tensor_release(matrix);
    tensor_release(vector);
    double x[] = {-1, 2}, w[] = {1, 2, 3, 4}, shift[] = {0.5, -0.5}, want[2];
    double g0 = -1 * 0.5 * (1 + tanh(sqrt(2 / M_PI) * (-1 - 0.044715)));
    double g1 = 2 * 0.5 * (1 + tanh(sqrt(2 / M_PI) * (2 + 0.044715 * 8)));
    want[0] = g0 + 3 * g1 + 0.5;
    want[1] = 2 * g0 + 4 * g1 - 0.5;
    Tensor *tx = make_tensor(DTYPE_FLOAT32, SHAPE(2), x);
    Tensor *tw = make_tensor(DTYPE_FLOAT32, SHAPE(2, 2), w);
    Tensor *tb = make_tensor(DTYPE_FLOAT32, SHAPE(2), shift);
    expect(apply(OP_fused_gelu_linear, NULL, 3, tx, tw, tb), DTYPE_FLOAT32, SHAPE(2), want);
    tensor_release(tx);
    tensor_release(tw);
    tensor_release(tb);
}

static void check_error(OpId op, Shape a, Shape b, const char *message, const char *help) {
    double *zeros = calloc(64, sizeof *zeros);
    Tensor *inputs[2] = {make_tensor(DTYPE_FLOAT32, a, zeros),
                         make_tensor(DTYPE_FLOAT32, b, zeros)};
    Tensor *result;
    assert_fails(op_with(op, inputs, 2, NULL, &result), STATUS_SHAPE, message, help);
    tensor_release(inputs[0]);
    tensor_release(inputs[1]);
    free(zeros);
}

static void test_errors(void **state) {
    (void)state;
    check_error(OP_matmul, SHAPE(2, 3), SHAPE(4, 5),
                "cannot multiply float32[2, 3] by float32[4, 5]: inner sizes 3 and 4 differ",
                "transpose(b) is float32[5, 4]; its inner size is 5");
    check_error(OP_matmul, SHAPE(2, 3), SHAPE(4),
                "cannot multiply float32[2, 3] by float32[4]: inner sizes 3 and 4 differ", "");
    check_error(OP_matmul, SHAPE(2, 3), (Shape){0},
                "cannot multiply float32[2, 3] by float32[] as matrices: float32[] is one number",
                "use * to multiply by a number");
    check_error(OP_linear, SHAPE(2, 3), SHAPE(3, 4),
                "linear: x is float32[2, 3], but the weight float32[3, 4] takes 4 numbers in",
                "the weight is [out, in]: transpose(weight) would fit, or matmul(x, weight)");
    check_error(OP_bmm, SHAPE(2, 3), SHAPE(3, 4),
                "bmm multiplies [batch, m, k] by [batch, k, n], not float32[2, 3] by float32[3, 4]",
                "matmul(a, b) broadcasts its leading dimensions");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BALANCED_TEST(test_products),         BALANCED_TEST(test_mixed_dtypes),
        BALANCED_TEST(test_mixed_floats),     BALANCED_TEST(test_wrapping),
        BALANCED_TEST(test_linear),           BALANCED_TEST(test_quantised_weights),
        BALANCED_TEST(test_small_operations), BALANCED_TEST(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
