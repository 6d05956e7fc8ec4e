// Reductions against loops in double: every dtype, layout and dimension.
#include "compare.h"

typedef double (*Fold)(const double *values, int64_t count);

static double fold_sum(const double *v, int64_t n) {
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += v[i];
    return total;
}
static double fold_mean(const double *v, int64_t n) {
    return fold_sum(v, n) / (double)n;
}
static double fold_prod(const double *v, int64_t n) {
    double product = 1;
    for (int64_t i = 0; i < n; i++) product *= v[i];
    return product;
}
static double fold_max(const double *v, int64_t n) {
    double best = v[0];
    for (int64_t i = 1; i < n; i++) best = v[i] > best ? v[i] : best;
    return best;
}
static double fold_min(const double *v, int64_t n) {
    double best = v[0];
    for (int64_t i = 1; i < n; i++) best = v[i] < best ? v[i] : best;
    return best;
}
static double fold_any(const double *v, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (v[i] != 0) return 1;
    return 0;
}
static double fold_all(const double *v, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (v[i] == 0) return 0;
    return 1;
}
static double fold_count(const double *v, int64_t n) {
    double count = 0;
    for (int64_t i = 0; i < n; i++) count += v[i] != 0;
    return count;
}
static double fold_var(const double *v, int64_t n) {
    double mean = fold_mean(v, n), total = 0;
    for (int64_t i = 0; i < n; i++) total += (v[i] - mean) * (v[i] - mean);
    return total / (double)n;
}
static double fold_std(const double *v, int64_t n) {
    return sqrt(fold_var(v, n));
}
static double fold_norm(const double *v, int64_t n) {
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += v[i] * v[i];
    return sqrt(total);
}
static double fold_logsumexp(const double *v, int64_t n) {
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += exp(v[i]);
    return log(total);
}
static double fold_argmax(const double *v, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return (double)best;
}
static double fold_argmin(const double *v, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (v[i] < v[best]) best = i;
    return (double)best;
}
static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double fold_median(const double *v, int64_t n) {
    double *sorted = malloc((size_t)n * sizeof *sorted);
    memcpy(sorted, v, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_doubles);
    double middle = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    free(sorted);
    return middle;
}

typedef enum ResultType { SAME, SUM, FLOATING, BOOLEAN, COUNT } ResultType;

typedef struct Case {
    OpId op;
    Fold fold;
    ResultType type;
    bool needs_elements;
} Case;

static const Case cases[] = {
    {OP_sum, fold_sum, SUM, false},           {OP_mean, fold_mean, FLOATING, false},
    {OP_prod, fold_prod, SUM, false},         {OP_max_along, fold_max, SAME, true},
    {OP_min_along, fold_min, SAME, true},     {OP_any, fold_any, BOOLEAN, false},
    {OP_all, fold_all, BOOLEAN, false},       {OP_count_nonzero, fold_count, COUNT, false},
    {OP_var, fold_var, FLOATING, false},      {OP_std, fold_std, FLOATING, false},
    {OP_norm, fold_norm, FLOATING, false},    {OP_logsumexp, fold_logsumexp, FLOATING, false},
    {OP_argmax, fold_argmax, COUNT, true},    {OP_argmin, fold_argmin, COUNT, true},
    {OP_median, fold_median, FLOATING, true},
};
enum { CASES = sizeof cases / sizeof *cases };

static DType type_of(ResultType type, DType input) {
    bool floating = dtype_is_float(input);
    if (type == SUM) return floating ? input : DTYPE_INT64;
    if (type == FLOATING) return floating ? input : DTYPE_FLOAT32;
    if (type == BOOLEAN) return DTYPE_BOOL;
    return type == COUNT ? DTYPE_INT64 : input;
}

// Reduces `values` over dim (-1: all of it) by the fold.
static double *fold_along(const double *values, Shape shape, int dim, Fold fold) {
    int64_t inner = 1, outer = 1, n = dim < 0 ? shape_count(&shape) : shape.dims[dim];
    for (int i = 0; i < shape.rank && dim >= 0; i++) {
        if (i < dim) outer *= shape.dims[i];
        if (i > dim) inner *= shape.dims[i];
    }
    double *out = calloc((size_t)(outer * inner) + 1, sizeof *out);
    double *row = calloc((size_t)n + 1, sizeof *row);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            for (int64_t k = 0; k < n; k++) row[k] = values[(o * n + k) * inner + i];
            out[o * inner + i] = fold(row, n);
        }
    free(row);
    return out;
}

static Shape reduced_shape(Shape shape, int dim, bool keepdim) {
    Shape result = {0};
    for (int i = 0; i < shape.rank; i++) {
        bool gone = dim < 0 || i == dim;
        if (!gone || keepdim) result.dims[result.rank++] = gone ? 1 : shape.dims[i];
    }
    return result;
}

static void check_case(const Case *c, Tensor *x, Shape shape, int dim, bool keepdim) {
    int64_t reduced = dim < 0 ? shape_count(&shape) : shape.dims[dim];
    Shape want_shape = reduced_shape(shape, dim, keepdim);
    if (c->needs_elements && reduced == 0) return;
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(keepdim), .keepdim = keepdim};
    if (dim >= 0) {
        attributes.given |= ATTRIBUTE_BIT(dim);
        attributes.dim = dim % 2 ? dim : dim - shape.rank;
    }
    double *values = read_all(x), *want = fold_along(values, shape, dim, c->fold);
    Tensor *result;
    OK(op_with(c->op, &x, 1, &attributes, &result));
    DType dtype = type_of(c->type, tensor_dtype(x));
    assert_string_equal(dtype_name(tensor_dtype(result)), dtype_name(dtype));
    assert_shape(result, want_shape);
    assert_numbers(result, want, 4 * epsilon_of(dtype), op_rows[c->op].name);
    tensor_release(result);
    free(values);
    free(want);
}

static void test_every_reduction(void **state) {
    (void)state;
    Shape shapes[] = {{0},         SHAPE(5), SHAPE(0), SHAPE(3, 4), SHAPE(2, 3, 4), SHAPE(2, 0, 3),
                      SHAPE(1, 33)};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int d = 0; d < DTYPES; d++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                double *values =
                    numbers(shape_count(&shapes[s]), s * 31 + (uint64_t)d, all_dtypes[d]);
                Tensor *x = laid_out(all_dtypes[d], shapes[s], values, (TestLayout)layout);
                for (int c = 0; c < CASES; c++)
                    for (int dim = -1; dim < shapes[s].rank; dim++) {
                        check_case(&cases[c], x, shapes[s], dim, false);
                        check_case(&cases[c], x, shapes[s], dim, true);
                    }
                tensor_release(x);
                free(values);
            }
}

static void test_several_dims(void **state) {
    (void)state;
    double values[24], want[3] = {0};
    for (int i = 0; i < 24; i++) {
        values[i] = i * i % 7;
        want[i / 4 % 3] += values[i];
    }
    Tensor *x = laid_out(DTYPE_INT8, SHAPE(2, 3, 4), values, TRANSPOSED), *result;
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dims), .dims = SHAPE(-1, 0)};
    OK(op_with(OP_sum_dims, &x, 1, &attributes, &result));
    assert_values(result, DTYPE_INT64, SHAPE(3), want);
    tensor_release(result);
    attributes.dims = SHAPE(0, -3);
    assert_fails(op_with(OP_sum_dims, &x, 1, &attributes, &result), STATUS_VALUE,
                 "sum: dimension 0 is given twice", "");
    tensor_release(x);
}

static void test_float16_sums_do_not_overflow_early(void **state) {
    (void)state;
    enum { N = 3000 };
    double *values = calloc(N, sizeof *values), want = 300, mean = 200, norm = sqrt(3000.0) * 200;
    for (int i = 0; i < N; i++) values[i] = i % 2 ? 200 : -199.9;
    for (int i = 0; i < N; i++) values[i] = 0.1;
    Tensor *x = make_tensor(DTYPE_FLOAT16, SHAPE(N), values), *result;
    OK(op_unary(OP_sum, x, &result));
    assert_numbers(result, &want, 1e-3, "sum");
    tensor_release(result);
    tensor_release(x);
    for (int i = 0; i < N; i++) values[i] = 200;
    x = make_tensor(DTYPE_FLOAT16, SHAPE(N), values);
    OK(op_unary(OP_norm, x, &result));
    assert_numbers(result, &norm, 1e-3, "norm");
    tensor_release(result);
    OK(op_unary(OP_mean, x, &result));
    assert_numbers(result, &mean, 1e-3, "mean");
    tensor_release(result);
    tensor_release(x);
    free(values);
}

static void test_norms(void **state) {
    (void)state;
    double values[] = {3, -4, 0, 1};
    struct {
        double p, want;
    } norms[] = {{0, 3}, {1, 8}, {2, sqrt(26)}, {3, cbrt(92)}, {INFINITY, 4}, {-INFINITY, 0}};
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        Tensor *x = make_tensor(DTYPE_FLOAT32, SHAPE(4), values), *result;
        OpAttributes attributes = {.given = ATTRIBUTE_BIT(p), .p = norms[i].p};
        OK(op_with(OP_norm, &x, 1, &attributes, &result));
        assert_values(result, DTYPE_FLOAT32, (Shape){0}, &norms[i].want);
        tensor_release(result);
        tensor_release(x);
    }
}

static void test_scans_and_sorts(void **state) {
    (void)state;
    double values[] = {3, 1, 2, 1, 5, 4};
    double sums[] = {3, 4, 6, 1, 6, 10}, down[] = {3, 1, 2, 4, 6, 6}, flat[] = {3, 4, 6, 7, 12, 16};
    double sorted[] = {1, 2, 3, 1, 4, 5}, falling[] = {3, 5, 4, 1, 1, 2};
    double order[] = {1, 2, 0, 0, 2, 1}, top[] = {3, 2, 5, 4}, top_index[] = {0, 2, 1, 2};
    double different[] = {1, 2, 3, 4, 5};
    for (int d = 1; d < DTYPES; d++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            Tensor *x = laid_out(all_dtypes[d], SHAPE(2, 3), values, (TestLayout)layout), *result,
                   *pair[2];
            DType sum_type = type_of(SUM, all_dtypes[d]);
            OpAttributes last = {.given = ATTRIBUTE_BIT(dim), .dim = -1}, first = last;
            first.dim = 0;
            OK(op_with(OP_cumsum, &x, 1, &last, &result));
            assert_values(result, sum_type, SHAPE(2, 3), sums);
            tensor_release(result);
            OK(op_with(OP_cumsum, &x, 1, &first, &result));
            assert_values(result, sum_type, SHAPE(2, 3), down);
            tensor_release(result);
            OK(op_unary(OP_cumsum, x, &result));
            assert_values(result, sum_type, SHAPE(6), flat);
            tensor_release(result);
            OK(op_unary(OP_sort, x, &result));
            assert_values(result, all_dtypes[d], SHAPE(2, 3), sorted);
            tensor_release(result);
            OpAttributes descending = first;
            descending.given |= ATTRIBUTE_BIT(descending);
            descending.descending = true;
            OK(op_with(OP_sort, &x, 1, &descending, &result));
            assert_values(result, all_dtypes[d], SHAPE(2, 3), falling);
            tensor_release(result);
            OK(op_unary(OP_argsort, x, &result));
            assert_values(result, DTYPE_INT64, SHAPE(2, 3), order);
            tensor_release(result);
            last.given |= ATTRIBUTE_BIT(k);
            last.k = 2;
            OK(op_with(OP_topk, &x, 1, &last, pair));
            assert_values(pair[0], all_dtypes[d], SHAPE(2, 2), top);
            assert_values(pair[1], DTYPE_INT64, SHAPE(2, 2), top_index);
            tensor_release(pair[0]);
            tensor_release(pair[1]);
            OK(op_unary(OP_unique, x, &result));
            assert_values(result, all_dtypes[d], SHAPE(5), different);
            tensor_release(result);
            tensor_release(x);
        }
}

static void test_rank_0_and_empty(void **state) {
    (void)state;
    double seven = 7, zero = 0;
    Tensor *x = make_tensor(DTYPE_FLOAT32, (Shape){0}, &seven), *result;
    OpId ops[] = {OP_cumsum, OP_cumprod, OP_sort};
    OpAttributes last = {.given = ATTRIBUTE_BIT(dim), .dim = -1};
    for (size_t i = 0; i < 3; i++) {
        OK(op_with(ops[i], &x, 1, &last, &result));
        assert_values(result, DTYPE_FLOAT32, (Shape){0}, &seven);
        tensor_release(result);
    }
    OK(op_with(OP_argsort, &x, 1, &last, &result));
    assert_values(result, DTYPE_INT64, (Shape){0}, &zero);
    tensor_release(result);
    tensor_release(x);
    x = make_tensor(DTYPE_FLOAT32, SHAPE(0), &seven);
    OK(op_unary(OP_unique, x, &result));
    assert_shape(result, SHAPE(0));
    tensor_release(result);
    tensor_release(x);
}

static void test_nan_and_infinities(void **state) {
    (void)state;
    double values[] = {1, NAN, 3, -INFINITY, -INFINITY, -INFINITY}, most[] = {NAN, -INFINITY};
    double total[] = {NAN, -INFINITY}, where[] = {1, 0}, middle[] = {NAN, -INFINITY};
    Tensor *x = make_tensor(DTYPE_FLOAT32, SHAPE(2, 3), values), *result;
    OpAttributes last = {.given = ATTRIBUTE_BIT(dim), .dim = 1};
    OK(op_with(OP_max_along, &x, 1, &last, &result));
    assert_values(result, DTYPE_FLOAT32, SHAPE(2), most);
    tensor_release(result);
    OK(op_with(OP_argmax, &x, 1, &last, &result));
    assert_values(result, DTYPE_INT64, SHAPE(2), where);
    tensor_release(result);
    OK(op_with(OP_logsumexp, &x, 1, &last, &result));
    assert_values(result, DTYPE_FLOAT32, SHAPE(2), total);
    tensor_release(result);
    OK(op_with(OP_median, &x, 1, &last, &result));
    assert_values(result, DTYPE_FLOAT32, SHAPE(2), middle);
    tensor_release(result);
    tensor_release(x);
}

static void test_errors(void **state) {
    (void)state;
    double values[6] = {0};
    Tensor *x = make_tensor(DTYPE_FLOAT32, SHAPE(2, 3), values), *result;
    Tensor *empty = make_tensor(DTYPE_FLOAT32, SHAPE(2, 0), values);
    OpAttributes wrong = {.given = ATTRIBUTE_BIT(dim) | ATTRIBUTE_BIT(k), .dim = 3, .k = 4};
    assert_fails(op_with(OP_sum, &x, 1, &wrong, &result), STATUS_INDEX,
                 "dim 3 is out of range for float32[2, 3]: it has 2 dimensions", "");
    wrong.dim = 1;
    assert_fails(op_with(OP_topk, &x, 1, &wrong, &result), STATUS_VALUE,
                 "topk: k is 4, but dimension 1 of float32[2, 3] has 3 elements", "");
    assert_fails(op_with(OP_max_along, &empty, 1, &wrong, &result), STATUS_VALUE,
                 "max of float32[2, 0] has no value: there are no elements to compare", "");
    OpAttributes half = {.given = ATTRIBUTE_BIT(value),
                         .value = {.dtype = DTYPE_FLOAT64, .as.f = 0.5}};
    assert_fails(
        op_with(OP_max_with_number, &x, 1, &half, &result), STATUS_TYPE,
        "max of float32[2, 3] and the float 0.5: a dimension is an integer",
        "maximum(x, 0.5) compares each element with the number; max(x, dim) reduces along a "
        "dimension");
    tensor_release(x);
    tensor_release(empty);
}

static void test_one_number_beside_another(void **state) {
    (void)state;
    double three = 3, five = 5;
    Tensor *x = make_tensor(DTYPE_FLOAT32, (Shape){0}, &three), *result;
    OpAttributes dim = {.given = ATTRIBUTE_BIT(dim), .dim = 5};
    OK(op_with(OP_max_along, &x, 1, &dim, &result));
    assert_numbers(result, &five, 0, "max");
    tensor_release(result);
    OK(op_with(OP_min_along, &x, 1, &dim, &result));
    assert_numbers(result, &three, 0, "min");
    tensor_release(result);
    tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BALANCED_TEST(test_every_reduction),
        BALANCED_TEST(test_several_dims),
        BALANCED_TEST(test_float16_sums_do_not_overflow_early),
        BALANCED_TEST(test_norms),
        BALANCED_TEST(test_scans_and_sorts),
        BALANCED_TEST(test_rank_0_and_empty),
        BALANCED_TEST(test_nan_and_infinities),
        BALANCED_TEST(test_errors),
        BALANCED_TEST(test_one_number_beside_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
