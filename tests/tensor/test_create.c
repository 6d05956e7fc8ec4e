// Creating operations and random numbers.
#include "compare.h"
#include "tensor/random.h"

static Scalar whole(int64_t i) {
    return (Scalar){.dtype = DTYPE_INT64, .as.i = i};
}
static Scalar real(double f) {
    return (Scalar){.dtype = DTYPE_FLOAT64, .as.f = f};
}

static OpAttributes shaped(Shape shape) {
    return (OpAttributes){.given = ATTRIBUTE_BIT(shape), .shape = shape};
}
static OpAttributes sized(int64_t n) {
    return (OpAttributes){.given = ATTRIBUTE_BIT(n), .n = n};
}
static OpAttributes typed(OpAttributes attributes, DType dtype) {
    attributes.given |= ATTRIBUTE_BIT(dtype);
    attributes.dtype = dtype;
    return attributes;
}
static OpAttributes ranged(Scalar start, Scalar stop, Scalar step) {
    return (OpAttributes){.given = ATTRIBUTE_BIT(start) | ATTRIBUTE_BIT(stop) | ATTRIBUTE_BIT(step),
                          .start = start,
                          .stop = stop,
                          .step = step};
}

static void test_constants(void **state) {
    (void)state;
    double zeros[6] = {0}, ones[6] = {1, 1, 1, 1, 1, 1}, seven[] = {7, 7, 7, 7, 7, 7};
    double identity[] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    OpAttributes a = shaped(SHAPE(2, 3));
    expect(apply(OP_zeros, &a, 0), DTYPE_FLOAT32, SHAPE(2, 3), zeros);
    for (int d = 0; d < DTYPES; d++) {
        OpAttributes t = typed(a, all_dtypes[d]), n = typed(sized(3), all_dtypes[d]);
        t.value = whole(7);
        expect(apply(OP_zeros, &t, 0), all_dtypes[d], SHAPE(2, 3), zeros);
        expect(apply(OP_ones, &t, 0), all_dtypes[d], SHAPE(2, 3), ones);
        expect(apply(OP_full, &t, 0), all_dtypes[d], SHAPE(2, 3), d == 0 ? ones : seven);
        expect(apply(OP_eye, &n, 0), all_dtypes[d], SHAPE(3, 3), identity);
        Tensor *x = laid_out(all_dtypes[d], SHAPE(2, 3), seven, TRANSPOSED);
        expect(apply(OP_zeros_like, NULL, 1, x), all_dtypes[d], SHAPE(2, 3), zeros);
        expect(apply(OP_ones_like, NULL, 1, x), all_dtypes[d], SHAPE(2, 3), ones);
        expect(apply(OP_clone, NULL, 1, x), all_dtypes[d], SHAPE(2, 3), d == 0 ? ones : seven);
        tensor_release(x);
    }
    OpAttributes none = shaped((Shape){0}), no_rows = shaped(SHAPE(0, 3));
    expect(apply(OP_zeros, &none, 0), DTYPE_FLOAT32, (Shape){0}, zeros);
    expect(apply(OP_ones, &no_rows, 0), DTYPE_FLOAT32, SHAPE(0, 3), zeros);
    expect(apply(OP_empty, &no_rows, 0), DTYPE_FLOAT32, SHAPE(0, 3), zeros);
}

static void test_ranges(void **state) {
    (void)state;
    double up[] = {0, 1, 2, 3}, down[] = {5, 3, 1}, quarters[] = {1, 1.25, 1.5, 1.75};
    double line[] = {0, 0.25, 0.5, 0.75, 1};
    OpAttributes a = ranged(whole(5), whole(0), whole(-2));
    expect(apply(OP_arange_from, &a, 0), DTYPE_INT64, SHAPE(3), down);
    a.stop = whole(4);
    expect(apply(OP_arange, &a, 0), DTYPE_INT64, SHAPE(4), up);
    a.stop = real(3.5);
    expect(apply(OP_arange, &a, 0), DTYPE_FLOAT32, SHAPE(4), up);
    a = ranged(whole(1), whole(2), real(0.25));
    expect(apply(OP_arange_from, &a, 0), DTYPE_FLOAT32, SHAPE(4), quarters);
    for (int d = 1; d < DTYPES; d++) {
        a = typed(ranged(whole(5), whole(0), whole(-2)), all_dtypes[d]);
        expect(apply(OP_arange_from, &a, 0), all_dtypes[d], SHAPE(3), down);
    }
    a = ranged(whole(3), whole(3), whole(1));
    expect(apply(OP_arange_from, &a, 0), DTYPE_INT64, SHAPE(0), up);
    a = ranged(whole(9007199254740993), whole(9007199254740995), whole(1));
    Tensor *exact = apply(OP_arange_from, &a, 0);
    int64_t values[2];
    OK(tensor_read_integers(exact, values));
    assert_int_equal(values[1], 9007199254740994);
    tensor_release(exact);
    a = ranged(whole(0), whole(1), whole(1));
    a.n = 5;
    expect(apply(OP_linspace, &a, 0), DTYPE_FLOAT32, SHAPE(5), line);
    a = typed(ranged(real(0.1), real(0.7), whole(1)), DTYPE_FLOAT64);
    a.n = 7;
    Tensor *tenths = apply(OP_linspace, &a, 0);
    double *read = read_all(tenths);
    assert_true(read[0] == 0.1 && read[6] == 0.7);
    free(read);
    tensor_release(tenths);
}

static void test_masks(void **state) {
    (void)state;
    double x[] = {1, 2, 3, 4, 5, 6}, low[] = {1, 0, 0, 4, 5, 0}, high[] = {1, 2, 3, 0, 5, 6};
    double lower[] = {0, 0, 0, 4, 0, 0}, causal[] = {1, 0, 0, 1, 1, 0, 1, 1, 1};
    double hot[] = {0, 0, 1, 1, 0, 0}, ids[] = {2, -3}, padding[] = {1, 0, 0, 1, 1, 1};
    double lengths[] = {1, 5}, product[] = {1, 0, 0, 0, 0, 0, 0, 0, 0};
    for (int d = 1; d < DTYPES; d++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            Tensor *t = laid_out(all_dtypes[d], SHAPE(2, 3), x, (TestLayout)layout);
            expect(apply(OP_tril, NULL, 1, t), all_dtypes[d], SHAPE(2, 3), low);
            expect(apply(OP_triu, NULL, 1, t), all_dtypes[d], SHAPE(2, 3), high);
            OpAttributes below = {.given = ATTRIBUTE_BIT(k), .k = -1};
            expect(apply(OP_tril, &below, 1, t), all_dtypes[d], SHAPE(2, 3), lower);
            below.k = INT64_MIN;
            Tensor *all = apply(OP_triu, &below, 1, t);
            expect(all, all_dtypes[d], SHAPE(2, 3), x);
            tensor_release(t);
        }
    OpAttributes three = sized(3);
    Tensor *mask = apply(OP_causal_mask, &three, 0), *one = apply(OP_eye, &three, 0), *first;
    OK(tensor_slice(one, 0, 0, 1, &first));
    expect(apply(OP_combine_masks, NULL, 2, one, first), DTYPE_FLOAT32, SHAPE(3, 3), product);
    expect(mask, DTYPE_FLOAT32, SHAPE(3, 3), causal);
    tensor_release(one);
    tensor_release(first);
    Tensor *t = make_tensor(DTYPE_INT32, SHAPE(2), ids);
    expect(apply(OP_one_hot, &three, 1, t), DTYPE_FLOAT32, SHAPE(2, 3), hot);
    tensor_release(t);
    t = make_tensor(DTYPE_FLOAT32, SHAPE(2), lengths);
    OpAttributes width = {.given = ATTRIBUTE_BIT(max_len), .max_len = 3};
    expect(apply(OP_padding_mask, &width, 1, t), DTYPE_FLOAT32, SHAPE(2, 3), padding);
    tensor_release(t);
}

static void test_position_tables(void **state) {
    (void)state;
    double want[5 * 6], cosines[5 * 3], sines[5 * 3];
    for (int row = 0; row < 5; row++)
        for (int i = 0; i < 6; i++) {
            double angle = row / pow(10000, 2 * floor(i / 2.0) / 6);
            want[row * 6 + i] = i % 2 ? cos(angle) : sin(angle);
            cosines[row * 3 + i / 2] = cos(row * pow(500, -2.0 * (i / 2) / 6));
            sines[row * 3 + i / 2] = sin(row * pow(500, -2.0 * (i / 2) / 6));
        }
    OpAttributes a = {
        .given = ATTRIBUTE_BIT(base), .seq = 5, .d = 6, .head_dim = 6, .max_len = 5, .base = 500};
    expect(apply(OP_positional_encoding, &a, 0), DTYPE_FLOAT32, SHAPE(5, 6), want);
    expect(apply(OP_precompute_rope_cos, &a, 0), DTYPE_FLOAT32, SHAPE(5, 3), cosines);
    expect(apply(OP_precompute_rope_sin, &a, 0), DTYPE_FLOAT32, SHAPE(5, 3), sines);
    a.seq = 0;
    expect(apply(OP_positional_encoding, &a, 0), DTYPE_FLOAT32, SHAPE(0, 6), want);
}

static void moments(Tensor *x, double *mean, double *std, double *low, double *high) {
    double *values = read_all(x), total = 0, squares = 0;
    int64_t n = tensor_count(x);
    *low = INFINITY;
    *high = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        total += values[i];
        squares += values[i] * values[i];
        *low = fmin(*low, values[i]);
        *high = fmax(*high, values[i]);
    }
    *mean = total / (double)n;
    *std = sqrt(squares / (double)n - *mean * *mean);
    free(values);
}

static void test_distributions(void **state) {
    (void)state;
    double mean, std, low, high;
    OpAttributes a = shaped(SHAPE(200, 100));
    random_seed(1);
    a.lo = whole(-3);
    a.hi = whole(5);
    a.given |= ATTRIBUTE_BIT(mean) | ATTRIBUTE_BIT(std);
    a.mean = 10;
    a.std = 2;
    a.p = 0.25;
    struct {
        OpId op;
        DType dtype;
        double mean, std, low, high;
    } cases[] = {{OP_rand, DTYPE_FLOAT32, 0.5, sqrt(1 / 12.0), 0, 0.99999999},
                 {OP_randn, DTYPE_FLOAT32, 0, 1, -7, 7},
                 {OP_uniform, DTYPE_FLOAT32, 1, 8 * sqrt(1 / 12.0), -3, 5},
                 {OP_normal, DTYPE_FLOAT32, 10, 2, -4, 24},
                 {OP_randint, DTYPE_INT64, 0.5, sqrt(63 / 12.0), -3, 4},
                 {OP_bernoulli, DTYPE_FLOAT32, 0.25, sqrt(0.1875), 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Tensor *x = apply(cases[i].op, &a, 0);
        assert_int_equal(tensor_dtype(x), cases[i].dtype);
        moments(x, &mean, &std, &low, &high);
        assert_true(fabs(mean - cases[i].mean) < 0.03 * cases[i].std);
        assert_true(fabs(std - cases[i].std) < 0.03 * cases[i].std);
        assert_true(low >= cases[i].low && high <= cases[i].high);
        tensor_release(x);
    }
    double chances[] = {0, 1, 0, 1};
    Tensor *p = make_tensor(DTYPE_FLOAT16, SHAPE(4), chances);
    expect(apply(OP_bernoulli_each, NULL, 1, p), DTYPE_FLOAT16, SHAPE(4), chances);
    Tensor *like = apply(OP_rand_like, NULL, 1, p);
    assert_int_equal(tensor_dtype(like), DTYPE_FLOAT16);
    assert_shape(like, SHAPE(4));
    tensor_release(like);
    tensor_release(p);
}

static void test_seeds(void **state) {
    (void)state;
    OpAttributes a = shaped(SHAPE(5)), own = a;
    own.given |= ATTRIBUTE_BIT(seed);
    own.seed = 42;
    random_seed(42);
    Tensor *first = apply(OP_randn, &a, 0), *second = apply(OP_randn, &a, 0);
    Tensor *keyed = apply(OP_randn, &own, 0), *again = apply(OP_randn, &own, 0);
    random_seed(42);
    Tensor *replayed = apply(OP_randn, &a, 0), *next = apply(OP_randn, &a, 0);
    double *values = read_all(first), *later = read_all(second);
    expect(replayed, DTYPE_FLOAT32, SHAPE(5), values);
    expect(next, DTYPE_FLOAT32, SHAPE(5), later);
    expect(keyed, DTYPE_FLOAT32, SHAPE(5), values);
    expect(again, DTYPE_FLOAT32, SHAPE(5), values);
    for (int i = 0; i < 5; i++) assert_true(values[i] != later[i]);
    free(values);
    free(later);
    tensor_release(first);
    tensor_release(second);
}

static void test_dropout(void **state) {
    (void)state;
    OpAttributes a = shaped(SHAPE(10000)), options = {.given = ATTRIBUTE_BIT(p), .p = 0.25};
    Tensor *ones = apply(OP_ones, &a, 0), *same = apply(OP_dropout, &options, 1, ones);
    double mean, std, low, high;
    moments(same, &mean, &std, &low, &high);
    assert_true(mean == 1 && std == 0);
    tensor_release(same);
    options.given |= ATTRIBUTE_BIT(training);
    options.training = true;
    Tensor *dropped = apply(OP_dropout, &options, 1, ones);
    moments(dropped, &mean, &std, &low, &high);
    assert_true(low == 0 && fabs(high - 1 / 0.75) < 1e-6 && fabs(mean - 1) < 0.03);
    tensor_release(dropped);
    tensor_release(ones);
}

static void test_errors(void **state) {
    (void)state;
    Tensor *result;
    OpAttributes none = {0}, negative = shaped(SHAPE(2, -1)), quantised = shaped(SHAPE(32));
    assert_fails(op_with(OP_zeros, NULL, 0, &none, &result), STATUS_ARITY, "zeros needs a shape",
                 "for example zeros(shape: [2, 3])");
    assert_fails(op_with(OP_ones, NULL, 0, &negative, &result), STATUS_SHAPE,
                 "ones: dimension 1 of the shape is -1; it must not be negative", "");
    quantised = typed(quantised, DTYPE_Q8_0);
    assert_fails(op_with(OP_ones, NULL, 0, &quantised, &result), STATUS_DTYPE,
                 "ones: q8_0 is a type of read-only weights; it cannot be made", "");
    OpAttributes range = ranged(whole(0), whole(5), whole(0));
    assert_fails(op_with(OP_arange_from, NULL, 0, &range, &result), STATUS_VALUE,
                 "arange: the step must not be 0", "");
    range = ranged(whole(0), real(INFINITY), whole(1));
    assert_fails(op_with(OP_arange_from, NULL, 0, &range, &result), STATUS_VALUE,
                 "arange: from 0 to inf by 1 is not a range that ends", "");
    OpAttributes bounds = shaped(SHAPE(2));
    bounds.lo = whole(3);
    bounds.hi = whole(3);
    assert_fails(op_with(OP_randint, NULL, 0, &bounds, &result), STATUS_VALUE,
                 "randint: there is no integer from 3 up to, without, 3", "");
    bounds.lo = real(0.5);
    assert_fails(op_with(OP_randint, NULL, 0, &bounds, &result), STATUS_VALUE,
                 "randint: lo must be an integer, but it is 0.5", "");
    OpAttributes ints = typed(shaped(SHAPE(2)), DTYPE_INT32);
    assert_fails(op_with(OP_rand, NULL, 0, &ints, &result), STATUS_DTYPE,
                 "rand makes floats; int32 cannot hold them",
                 "randint(lo, hi, shape) makes integers");
    OpAttributes huge = shaped(SHAPE(1 << 30, 1 << 30, 1 << 30));
    assert_int_equal(op_with(OP_zeros, NULL, 0, &huge, &result), STATUS_SHAPE);
    double ids[] = {1, 3};
    Tensor *t = make_tensor(DTYPE_INT64, SHAPE(2), ids);
    OpAttributes three = sized(3);
    assert_fails(op_with(OP_one_hot, &t, 1, &three, &result), STATUS_INDEX,
                 "one_hot: id 3 is out of range: there are 3 places", "");
    tensor_release(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BALANCED_TEST(test_constants),     BALANCED_TEST(test_ranges),
        BALANCED_TEST(test_masks),         BALANCED_TEST(test_position_tables),
        BALANCED_TEST(test_distributions), BALANCED_TEST(test_seeds),
        BALANCED_TEST(test_dropout),       BALANCED_TEST(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
