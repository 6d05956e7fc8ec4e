// Linear algebra by what the results must satisfy, and convolutions against loops.
#include "compare.h"

enum { N = 4 };

// Batches of well-conditioned matrices: the diagonal is large.
static double *matrices(int64_t batch, int64_t rows, int64_t columns, uint64_t seed) {
    double *x = numbers(batch * rows * columns, seed, DTYPE_FLOAT64);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < rows && i < columns; i++) x[(b * rows + i) * columns + i] += 6;
    return x;
}

static Tensor *multiply(Tensor *a, Tensor *b) {
    return apply(OP_matmul, NULL, 2, a, b);
}

static Tensor *turned(Tensor *x) {
    Tensor *result;
    OK(tensor_transpose(x, -2, -1, &result));
    return result;
}

static void expect_same(Tensor *have, Tensor *want, double epsilon) {
    double *values = read_all(want);
    assert_shape(have, tensor_shape(want));
    assert_numbers(have, values, epsilon, "product");
    free(values);
    tensor_release(have);
}

static Tensor *identity_like(Tensor *x) {
    OpAttributes a = {.given = ATTRIBUTE_BIT(dtype), .n = N, .dtype = tensor_dtype(x)};
    Tensor *eye = apply(OP_eye, &a, 0), *wide;
    Shape shape = tensor_shape(x);
    OK(tensor_broadcast_to(eye, &shape, &wide));
    tensor_release(eye);
    return wide;
}

static void check_square(Tensor *x, double epsilon) {
    Tensor *inverse = apply(OP_inv, NULL, 1, x), *eye = identity_like(x);
    expect_same(multiply(x, inverse), eye, epsilon);
    expect_same(multiply(inverse, x), eye, epsilon);
    Tensor *solution = apply(OP_solve, NULL, 2, x, eye);
    expect_same(solution, inverse, epsilon);
    Tensor *det = apply(OP_det, NULL, 1, x), *det_inverse = apply(OP_det, NULL, 1, inverse), *one;
    OK(op_binary(OP_mul, op_tensor(det), op_tensor(det_inverse), &one));
    double *values = read_all(one);
    for (int64_t i = 0; i < tensor_count(one); i++) assert_true(fabs(values[i] - 1) < epsilon);
    free(values);
    tensor_release(one);
    tensor_release(det);
    tensor_release(det_inverse);
    tensor_release(inverse);
    tensor_release(eye);
}

static void check_symmetric(Tensor *x, double epsilon) {
    Tensor *across = turned(x), *square = multiply(x, across), *pair[2], *eye = identity_like(x);
    Tensor *lower = apply(OP_cholesky, NULL, 1, square), *upper = turned(lower);
    expect_same(multiply(lower, upper), square, epsilon);
    OK(op_with(OP_eigh, &square, 1, NULL, pair));
    Tensor *vectors_turned = turned(pair[1]), *scaled, *row;
    expect_same(multiply(vectors_turned, pair[1]), eye, epsilon);
    OK(tensor_unsqueeze(pair[0], -2, &row));
    OK(op_binary(OP_mul, op_tensor(pair[1]), op_tensor(row), &scaled));
    expect_same(multiply(scaled, vectors_turned), square, epsilon);
    Tensor *all[] = {across, square, pair[0],        pair[1], eye,
                     lower,  upper,  vectors_turned, scaled,  row};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) tensor_release(all[i]);
}

static void check_factors(Tensor *x, double epsilon) {
    Tensor *qr[2], *usv[3], *row, *scaled;
    OK(op_with(OP_qr, &x, 1, NULL, qr));
    expect_same(multiply(qr[0], qr[1]), x, epsilon);
    OK(op_with(OP_svd, &x, 1, NULL, usv));
    OK(tensor_unsqueeze(usv[1], -2, &row));
    OK(op_binary(OP_mul, op_tensor(usv[0]), op_tensor(row), &scaled));
    expect_same(multiply(scaled, usv[2]), x, epsilon);
    Tensor *all[] = {qr[0], qr[1], usv[0], usv[1], usv[2], row, scaled};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) tensor_release(all[i]);
}

static void test_decompositions(void **state) {
    (void)state;
    DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT64};
    Shape squares[] = {SHAPE(N, N), SHAPE(3, N, N)}, tall[] = {SHAPE(5, 3), SHAPE(2, 3, 5)};
    for (int d = 0; d < 2; d++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int s = 0; s < 2; s++) {
                double epsilon = d ? 1e-10 : 1e-3;
                double *square = matrices(s ? 3 : 1, N, N, 7),
                       *other = numbers(30, 8, DTYPE_FLOAT64);
                Tensor *x = laid_out(dtypes[d], squares[s], square, (TestLayout)layout);
                Tensor *y = laid_out(dtypes[d], tall[s], other, (TestLayout)layout);
                check_square(x, epsilon);
                check_symmetric(x, epsilon);
                check_factors(x, epsilon);
                check_factors(y, epsilon);
                tensor_release(x);
                tensor_release(y);
                free(square);
                free(other);
            }
}

static void test_known_values(void **state) {
    (void)state;
    double x[] = {1, 2, 3, 4}, b[] = {5, 11}, det = -2, solution[] = {1, 2}, one = 1;
    Tensor *a = make_tensor(DTYPE_INT32, SHAPE(2, 2), x),
           *side = make_tensor(DTYPE_INT32, SHAPE(2), b);
    expect(apply(OP_det, NULL, 1, a), DTYPE_FLOAT32, (Shape){0}, &det);
    expect(apply(OP_solve, NULL, 2, a, side), DTYPE_FLOAT32, SHAPE(2), solution);
    tensor_release(a);
    tensor_release(side);
    a = make_tensor(DTYPE_FLOAT32, SHAPE(0, 0), x);
    expect(apply(OP_det, NULL, 1, a), DTYPE_FLOAT32, (Shape){0}, &one);
    tensor_release(a);
}

static void test_errors(void **state) {
    (void)state;
    double zeros[16] = {0};
    Tensor *result, *wide = make_tensor(DTYPE_FLOAT32, SHAPE(2, 3), zeros);
    Tensor *half = make_tensor(DTYPE_FLOAT16, SHAPE(2, 2), zeros);
    Tensor *square = make_tensor(DTYPE_FLOAT32, SHAPE(2, 2), zeros);
    Tensor *vector = make_tensor(DTYPE_FLOAT32, SHAPE(3), zeros);
    assert_fails(op_with(OP_inv, &wide, 1, NULL, &result), STATUS_SHAPE,
                 "inv needs a square matrix, but it is given float32[2, 3]", "");
    assert_fails(op_with(OP_det, &half, 1, NULL, &result), STATUS_DTYPE,
                 "det works on float32 and float64, but it is given float16[2, 2]",
                 "convert it first: x as float32");
    assert_fails(op_with(OP_qr, &vector, 1, NULL, &result), STATUS_SHAPE,
                 "qr needs a matrix, but it is given float32[3]", "");
    assert_fails(op_with(OP_solve, (Tensor *[]){square, vector}, 2, NULL, &result), STATUS_SHAPE,
                 "solve: the matrix is float32[2, 2], so the right side needs 2 rows, but it is "
                 "float32[3]",
                 "");
    assert_int_not_equal(op_with(OP_inv, &square, 1, NULL, &result), STATUS_OK);
    tensor_release(wide);
    tensor_release(half);
    tensor_release(square);
    tensor_release(vector);
}

typedef struct Window {
    int64_t stride[2], padding[2], dilation[2], groups;
} Window;

// x [N, C, H, W] with weight [O, C / groups, KH, KW]; `out` is the result's shape.
static double *convolve(const double *x, Shape sx, const double *w, Shape sw, const Window *o,
                        Shape out) {
    double *want = calloc((size_t)shape_count(&out) + 1, sizeof *want);
    for (int64_t i = 0; i < shape_count(&out); i++) {
        int64_t c = i % out.dims[3], r = i / out.dims[3] % out.dims[2];
        int64_t channel = i / (out.dims[2] * out.dims[3]) % out.dims[1];
        int64_t n = i / (out.dims[1] * out.dims[2] * out.dims[3]);
        int64_t group = channel / (out.dims[1] / o->groups);
        for (int64_t k = 0; k < sw.dims[1] * sw.dims[2] * sw.dims[3]; k++) {
            int64_t kc = k % sw.dims[3], kr = k / sw.dims[3] % sw.dims[2],
                    in = k / (sw.dims[2] * sw.dims[3]);
            int64_t y = r * o->stride[0] - o->padding[0] + kr * o->dilation[0];
            int64_t z = c * o->stride[1] - o->padding[1] + kc * o->dilation[1];
            if (y < 0 || z < 0 || y >= sx.dims[2] || z >= sx.dims[3]) continue;
            want[i] +=
                x[((n * sx.dims[1] + group * sw.dims[1] + in) * sx.dims[2] + y) * sx.dims[3] + z] *
                w[channel * sw.dims[1] * sw.dims[2] * sw.dims[3] + k];
        }
    }
    return want;
}

static OpAttributes attributes_of(const Window *o) {
    return (OpAttributes){.given = ATTRIBUTE_BIT(stride) | ATTRIBUTE_BIT(padding) |
                                   ATTRIBUTE_BIT(dilation) | ATTRIBUTE_BIT(groups),
                          .stride = {o->stride, 2},
                          .padding = {o->padding, 2},
                          .dilation = {o->dilation, 2},
                          .groups = o->groups};
}

static void test_convolutions(void **state) {
    (void)state;
    Window windows[] = {
        {{1, 1}, {0, 0}, {1, 1}, 1}, {{2, 1}, {1, 2}, {1, 2}, 1}, {{1, 2}, {2, 0}, {2, 1}, 2}};
    DType floats[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
    Shape sx = SHAPE(2, 4, 6, 7);
    for (int n = 0; n < 3; n++)
        for (int d = 0; d < 4; d++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                Window *o = &windows[n];
                Shape sw = {{6, 4 / o->groups, 3, 2}, 4}, out = {{2, 6, 0, 0}, 4};
                for (int i = 0; i < 2; i++)
                    out.dims[2 + i] = (sx.dims[2 + i] + 2 * o->padding[i] -
                                       o->dilation[i] * (sw.dims[2 + i] - 1) - 1) /
                                          o->stride[i] +
                                      1;
                double *vx = numbers(shape_count(&sx), 1, floats[d]),
                       *vw = numbers(shape_count(&sw), 2, floats[d]);
                double shifts[] = {1, 2, 3, 4, 5, 6};
                Tensor *x = laid_out(floats[d], sx, vx, (TestLayout)layout);
                Tensor *w = laid_out(floats[d], sw, vw, (TestLayout)layout);
                Tensor *b = make_tensor(DTYPE_FLOAT32, SHAPE(6), shifts);
                double *rx = read_all(x), *rw = read_all(w),
                       *want = convolve(rx, sx, rw, sw, o, out);
                OpAttributes a = attributes_of(o);
                Tensor *have = apply(OP_conv2d, &a, 2, x, w);
                assert_shape(have, out);
                assert_numbers(have, want, 10 * epsilon_of(floats[d]), "conv2d");
                tensor_release(have);
                for (int64_t i = 0; i < shape_count(&out); i++)
                    want[i] += shifts[i / (out.dims[2] * out.dims[3]) % 6];
                have = apply(OP_conv2d, &a, 3, x, w, b);
                assert_numbers(have, want, 10 * epsilon_of(floats[d]), "conv2d with bias");
                tensor_release(have);
                tensor_release(x);
                tensor_release(w);
                tensor_release(b);
                free(vx), free(vw), free(rx), free(rw), free(want);
            }
}

static void test_lines_and_pools(void **state) {
    (void)state;
    double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, w[] = {1, 0, -1};
    double line[] = {-2, -2, -2, -2}, most[] = {6, 8, 14, 16}, mean[] = {3.5, 5.5, 11.5, 13.5};
    double padded[] = {0.25, 1.25, 1, 3.5, 8.5, 5, 3.25, 7.25, 4};
    double inside[] = {1, 2.5, 4, 7, 8.5, 10, 13, 14.5, 16};
    Tensor *row = make_tensor(DTYPE_FLOAT32, SHAPE(1, 1, 6), x),
           *kernel = make_tensor(DTYPE_FLOAT32, SHAPE(1, 1, 3), w);
    Tensor *single, *image = make_tensor(DTYPE_INT32, SHAPE(1, 1, 4, 4), x);
    expect(apply(OP_conv1d, NULL, 2, row, kernel), DTYPE_FLOAT32, SHAPE(1, 1, 4), line);
    OK(tensor_squeeze(row, 0, &single));
    expect(apply(OP_conv1d, NULL, 2, single, kernel), DTYPE_FLOAT32, SHAPE(1, 4), line);
    int64_t two = 2, one = 1;
    OpAttributes a = {.given = ATTRIBUTE_BIT(size), .size = {&two, 1}, .padding = {&one, 1}};
    expect(apply(OP_max_pool2d, &a, 1, image), DTYPE_FLOAT32, SHAPE(1, 1, 2, 2), most);
    expect(apply(OP_avg_pool2d, &a, 1, image), DTYPE_FLOAT32, SHAPE(1, 1, 2, 2), mean);
    a.given |= ATTRIBUTE_BIT(padding);
    expect(apply(OP_avg_pool2d, &a, 1, image), DTYPE_FLOAT32, SHAPE(1, 1, 3, 3), padded);
    a.given |= ATTRIBUTE_BIT(count_padding);
    expect(apply(OP_avg_pool2d, &a, 1, image), DTYPE_FLOAT32, SHAPE(1, 1, 3, 3), inside);
    Tensor *result;
    int64_t seven = 7;
    OpAttributes wide = {.given = ATTRIBUTE_BIT(size), .size = {&seven, 1}};
    assert_fails(
        op_with(OP_max_pool2d, &image, 1, &wide, &result), STATUS_SHAPE,
        "max_pool2d: a window of 7 x 7 does not fit into float32[1, 1, 4, 4] with its padding", "");
    tensor_release(row);
    tensor_release(single);
    tensor_release(kernel);
    tensor_release(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BALANCED_TEST(test_decompositions),  BALANCED_TEST(test_known_values),
        BALANCED_TEST(test_errors),          BALANCED_TEST(test_convolutions),
        BALANCED_TEST(test_lines_and_pools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
