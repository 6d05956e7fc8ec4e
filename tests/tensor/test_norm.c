// Softmax and normalisations against loops in double.
#include "compare.h"

static const DType floats[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
enum { FLOATS = 4, ROWS = 3, COLUMNS = 5 };

// Runs `op` on [3, 5] numbers in every dtype and layout; `want` gets the rows as they are stored.
typedef void (*Reference)(const double *x, double *want);

static void softmax_rows(const double *x, double *want) {
    for (int r = 0; r < ROWS; r++) {
        double total = 0;
        for (int c = 0; c < COLUMNS; c++) total += exp(x[r * COLUMNS + c]);
        for (int c = 0; c < COLUMNS; c++) want[r * COLUMNS + c] = exp(x[r * COLUMNS + c]) / total;
    }
}
static void log_softmax_rows(const double *x, double *want) {
    softmax_rows(x, want);
    for (int i = 0; i < ROWS * COLUMNS; i++) want[i] = log(want[i]);
}
static void softmax_columns(const double *x, double *want) {
    for (int c = 0; c < COLUMNS; c++) {
        double total = 0;
        for (int r = 0; r < ROWS; r++) total += exp(x[r * COLUMNS + c]);
        for (int r = 0; r < ROWS; r++) want[r * COLUMNS + c] = exp(x[r * COLUMNS + c]) / total;
    }
}
static void rms_rows(const double *x, double *want) {
    for (int r = 0; r < ROWS; r++) {
        double total = 0;
        for (int c = 0; c < COLUMNS; c++) total += x[r * COLUMNS + c] * x[r * COLUMNS + c];
        for (int c = 0; c < COLUMNS; c++)
            want[r * COLUMNS + c] = x[r * COLUMNS + c] / sqrt(total / COLUMNS + 1e-6);
    }
}
static void normal_line(const double *x, double *want, int n, int step) {
    double mean = 0, variance = 0;
    for (int i = 0; i < n; i++) mean += x[i * step] / n;
    for (int i = 0; i < n; i++) variance += (x[i * step] - mean) * (x[i * step] - mean) / n;
    for (int i = 0; i < n; i++) want[i * step] = (x[i * step] - mean) / sqrt(variance + 1e-5);
}
static void layer_rows(const double *x, double *want) {
    for (int r = 0; r < ROWS; r++) normal_line(x + r * COLUMNS, want + r * COLUMNS, COLUMNS, 1);
}
static void batch_columns(const double *x, double *want) {
    for (int c = 0; c < COLUMNS; c++) normal_line(x + c, want + c, ROWS, COLUMNS);
}
static void unit_rows(const double *x, double *want) {
    for (int r = 0; r < ROWS; r++) {
        double total = 0;
        for (int c = 0; c < COLUMNS; c++) total += x[r * COLUMNS + c] * x[r * COLUMNS + c];
        for (int c = 0; c < COLUMNS; c++) want[r * COLUMNS + c] = x[r * COLUMNS + c] / sqrt(total);
    }
}

static void test_without_weights(void **state) {
    (void)state;
    OpAttributes columns = {.given = ATTRIBUTE_BIT(dim), .dim = 0};
    struct {
        OpId op;
        const OpAttributes *attributes;
        Reference reference;
    } cases[] = {{OP_softmax, NULL, softmax_rows},         {OP_softmax, &columns, softmax_columns},
                 {OP_log_softmax, NULL, log_softmax_rows}, {OP_rms_norm, NULL, rms_rows},
                 {OP_layer_norm, NULL, layer_rows},        {OP_batch_norm, NULL, batch_columns},
                 {OP_normalize_features, NULL, unit_rows}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int d = 0; d < FLOATS; d++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                double *values = numbers(ROWS * COLUMNS, i, floats[d]), want[ROWS * COLUMNS];
                Tensor *x = laid_out(floats[d], SHAPE(ROWS, COLUMNS), values, (TestLayout)layout);
                free(values);
                values = read_all(x);
                cases[i].reference(values, want);
                expect(apply(cases[i].op, cases[i].attributes, 1, x), floats[d],
                       SHAPE(ROWS, COLUMNS), want);
                free(values);
                tensor_release(x);
            }
}

static void test_ints_become_floats(void **state) {
    (void)state;
    double x[] = {0, 0}, want[] = {0.5, 0.5};
    for (int d = 0; d < 6; d++) {
        Tensor *t = make_tensor(all_dtypes[d], SHAPE(2), x);
        expect(apply(OP_softmax, NULL, 1, t), DTYPE_FLOAT32, SHAPE(2), want);
        tensor_release(t);
    }
}

static void test_edges(void **state) {
    (void)state;
    double one = 1, five = 5, odd[] = {-INFINITY, -INFINITY, INFINITY, 0, NAN, 0, -INFINITY, 0};
    double want[] = {NAN, NAN, NAN, NAN, NAN, NAN, 0, 1};
    Tensor *x = make_tensor(DTYPE_FLOAT32, (Shape){0}, &five);
    expect(apply(OP_softmax, NULL, 1, x), DTYPE_FLOAT32, (Shape){0}, &one);
    tensor_release(x);
    x = make_tensor(DTYPE_FLOAT32, SHAPE(0, 3), &five);
    expect(apply(OP_softmax, NULL, 1, x), DTYPE_FLOAT32, SHAPE(0, 3), &one);
    tensor_release(x);
    x = make_tensor(DTYPE_FLOAT32, SHAPE(4, 2), odd);
    Tensor *result = apply(OP_softmax, NULL, 1, x);
    assert_numbers(result, want, 0, "odd rows");
    tensor_release(result);
    tensor_release(x);
}

static void with_affine(double *want, const double *weight, const double *bias) {
    for (int i = 0; i < ROWS * COLUMNS; i++)
        want[i] = want[i] * (weight ? weight[i % COLUMNS] : 1) + (bias ? bias[i % COLUMNS] : 0);
}

static void test_weights(void **state) {
    (void)state;
    double weight[] = {1, 2, -1, 0.5, 3}, bias[] = {0.5, 0, -1, 2, 1}, five = 5, tiny = 1e-5;
    for (int d = 0; d < FLOATS; d++) {
        double *values = numbers(ROWS * COLUMNS, 3, floats[d]), normal[ROWS * COLUMNS], want[15];
        Tensor *x = laid_out(floats[d], SHAPE(ROWS, COLUMNS), values, TRANSPOSED);
        Tensor *w = make_tensor(DTYPE_FLOAT32, SHAPE(COLUMNS), weight);
        Tensor *b = make_tensor(DTYPE_FLOAT32, SHAPE(COLUMNS), bias);
        Tensor *size = make_tensor(DTYPE_INT64, SHAPE(1), &five);
        Tensor *eps = make_tensor(DTYPE_FLOAT64, (Shape){0}, &tiny);
        free(values);
        values = read_all(x);
        Shape shape = SHAPE(ROWS, COLUMNS);
        rms_rows(values, want);
        with_affine(want, weight, NULL);
        expect(apply(OP_rms_norm, NULL, 2, x, w), floats[d], shape, want);
        layer_rows(values, normal);
        memcpy(want, normal, sizeof want);
        expect(apply(OP_layer_norm, NULL, 2, x, size), floats[d], shape, want);
        expect(apply(OP_layer_norm, NULL, 3, x, size, eps), floats[d], shape, want);
        expect(apply(OP_layer_norm, NULL, 2, x, eps), floats[d], shape, want);
        with_affine(want, weight, NULL);
        expect(apply(OP_layer_norm, NULL, 2, x, w), floats[d], shape, want);
        expect(apply(OP_layer_norm, NULL, 3, x, size, w), floats[d], shape, want);
        memcpy(want, normal, sizeof want);
        with_affine(want, weight, bias);
        expect(apply(OP_layer_norm, NULL, 3, x, w, b), floats[d], shape, want);
        expect(apply(OP_layer_norm, NULL, 4, x, w, b, eps), floats[d], shape, want);
        expect(apply(OP_layer_norm, NULL, 4, x, size, w, b), floats[d], shape, want);
        memcpy(want, normal, sizeof want);
        with_affine(want, NULL, bias);
        expect(apply(OP_layer_norm, NULL, 4, x, NULL, NULL, b), floats[d], shape, want);
        batch_columns(values, want);
        with_affine(want, weight, bias);
        expect(apply(OP_batch_norm, NULL, 3, x, w, b), floats[d], shape, want);
        free(values);
        tensor_release(x);
        tensor_release(w);
        tensor_release(b);
        tensor_release(size);
        tensor_release(eps);
    }
}

static void test_group_norm(void **state) {
    (void)state;
    enum { N = 2 * 4 * 3 };
    double *x = numbers(N, 4, DTYPE_FLOAT32), want[N], weight[] = {1, 2, 3, 4},
           bias[] = {0, 1, 0, 1};
    for (int g = 0; g < 4; g++) normal_line(x + g * 6, want + g * 6, 6, 1);
    for (int i = 0; i < N; i++) want[i] = want[i] * weight[i / 3 % 4] + bias[i / 3 % 4];
    Tensor *w = make_tensor(DTYPE_FLOAT32, SHAPE(4), weight);
    Tensor *b = make_tensor(DTYPE_FLOAT32, SHAPE(4), bias);
    OpAttributes groups = {.given = ATTRIBUTE_BIT(groups), .groups = 2};
    for (int layout = 0; layout < LAYOUTS; layout++) {
        Tensor *t = laid_out(DTYPE_FLOAT32, SHAPE(2, 4, 3), x, (TestLayout)layout);
        expect(apply(OP_group_norm, &groups, 3, t, w, b), DTYPE_FLOAT32, SHAPE(2, 4, 3), want);
        tensor_release(t);
    }
    tensor_release(w);
    tensor_release(b);
    free(x);
}

static void test_errors(void **state) {
    (void)state;
    double zeros[16] = {0};
    Tensor *result, *pair[2] = {make_tensor(DTYPE_FLOAT32, SHAPE(2, 4), zeros),
                                make_tensor(DTYPE_FLOAT32, SHAPE(3), zeros)};
    assert_fails(op_with(OP_rms_norm, pair, 2, NULL, &result), STATUS_SHAPE,
                 "rms_norm: weight is [3], but the trailing dimensions of float32[2, 4] differ",
                 "");
    assert_fails(op_with(OP_layer_norm, pair, 2, NULL, &result), STATUS_SHAPE,
                 "layer_norm: weight is [3], but the trailing dimensions of float32[2, 4] differ",
                 "");
    OpAttributes wrong = {.given = ATTRIBUTE_BIT(dim) | ATTRIBUTE_BIT(norm) | ATTRIBUTE_BIT(eps),
                          .dim = 2,
                          .norm = "l3",
                          .eps = -1,
                          .groups = 3};
    assert_fails(op_with(OP_softmax, pair, 1, &wrong, &result), STATUS_INDEX,
                 "dim 2 is out of range for float32[2, 4]: it has 2 dimensions", "");
    assert_fails(op_with(OP_normalize_features, pair, 1, &wrong, &result), STATUS_VALUE,
                 "normalize_features: there is no norm \"l3\"",
                 "\"l2\", \"l1\" and \"max\" are known");
    assert_fails(op_with(OP_rms_norm, pair, 1, &wrong, &result), STATUS_VALUE,
                 "rms_norm: eps is -1; it must not be negative", "");
    wrong.given = ATTRIBUTE_BIT(groups);
    assert_fails(op_with(OP_group_norm, pair, 1, &wrong, &result), STATUS_SHAPE,
                 "group_norm: float32[2, 4] cannot be split into 3 groups of channels", "");
    tensor_release(pair[0]);
    tensor_release(pair[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BALANCED_TEST(test_without_weights), BALANCED_TEST(test_ints_become_floats),
        BALANCED_TEST(test_edges),           BALANCED_TEST(test_weights),
        BALANCED_TEST(test_group_norm),      BALANCED_TEST(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
