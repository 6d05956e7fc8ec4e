// SOFTMAX, RMS_NORM and LAYER_NORM against double loops: float dtypes, short and long rows, awkward
// layouts, infinities and NaN, weights of other dtypes; once per instruction set.
#include "arrays.h"

static const DType dtypes[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

// What the stored type rounds away, relative; float32 is given a few units for its arithmetic.
static double unit_of(DType dtype) {
    return dtype == DTYPE_FLOAT16    ? 0x1p-11
           : dtype == DTYPE_BFLOAT16 ? 0x1p-8
           : dtype == DTYPE_FLOAT32  ? 8 * 0x1p-24
                                     : 1e-14;
}

static KernelCall call_of(KernelId kernel, Array *in, Array *out) {
    return (KernelCall){.kernel = kernel,
                        .n_inputs = 1,
                        .n_outputs = 1,
                        .inputs = {{.view = array_view(in)}},
                        .outputs = {array_view(out)},
                        .op_name = "test"};
}

static void run_softmax(Array *in, Array *out, bool logarithm) {
    KernelCall call = call_of(KERNEL_SOFTMAX, in, out);
    call.options.flag = logarithm;
    assert_int_equal(run_kernel(KERNEL_SOFTMAX, &call), STATUS_OK);
}

// Runs it over an input that is filled here.
static void compare_softmax(Array *in, Array *out, bool logarithm) {
    DType dtype = in->view.dtype;
    for (int64_t i = 0; i < array_count(&in->view); i++) array_set(in, i, 12 * array_random_real());
    run_softmax(in, out, logarithm);
    int64_t n = in->view.rank > 0 ? in->view.dims[in->view.rank - 1] : 1;
    for (int64_t first = 0; first < array_count(&in->view); first += n) {
        double max = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++) max = fmax(max, array_get(in, first + i));
        for (int64_t i = 0; i < n; i++) sum += exp(array_get(in, first + i) - max);
        for (int64_t i = 0; i < n; i++) {
            double x = array_get(in, first + i) - max, got = array_get(out, first + i);
            double expected = logarithm ? x - log(sum) : exp(x) / sum;
            double least = dtype == DTYPE_FLOAT16 ? 0x1p-25 : 0; // half of its smallest number
            // x itself is rounded, which its exponential magnifies.
            double bound = unit_of(dtype) * fabs(expected) * (1 + fabs(x) / 8) + least;
            if (logarithm) bound += unit_of(dtype);
            if (!(fabs(got - expected) <= bound))
                fail_msg("%s of %s, row of %lld: %.9g, expected %.9g",
                         logarithm ? "log softmax" : "softmax", dtype_name(dtype), (long long)n,
                         got, expected);
        }
    }
    array_free(in);
    array_free(out);
}

static void check_softmax(DType dtype, Layout layout, int rank, const int64_t *dims,
                          bool logarithm) {
    Array in, out;
    array_make(&in, dtype, layout, rank, dims);
    array_make(&out, dtype, (Layout)((layout + (rank > 1)) % LAYOUT_COUNT), rank, dims);
    compare_softmax(&in, &out, logarithm);
}

static void test_softmax(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},    {2, 3, 5},    {1, 4, 17},    {1, 3, 1030},
                                        {1, 2, 4096}, {1, 2, 4097}, {1, 1, 33000}, {3, 0, 4},
                                        {2, 50, 16},  {1, 2, 0}};
    for (int d = 0; d < DTYPES; d++)
        for (int layout = 0; layout < LAYOUT_COUNT; layout++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                for (int logarithm = 0; logarithm < 2; logarithm++)
                    check_softmax(dtypes[d], (Layout)layout, 3, shapes[s], logarithm);
    check_softmax(DTYPE_FLOAT32, LAYOUT_PLAIN, 0, NULL, false);
}

// Rows of 2, special, 2.
static void check_special_row(double special, double first, double second, double third) {
    const int64_t dims[2] = {2, 3};
    const double expected[3] = {first, second, third};
    for (int d = 0; d < DTYPES; d++) {
        Array in, out;
        array_make(&in, dtypes[d], LAYOUT_PLAIN, 2, dims);
        array_make(&out, dtypes[d], LAYOUT_PLAIN, 2, dims);
        for (int i = 0; i < 6; i++) array_set(&in, i, i % 3 == 1 ? special : 2);
        run_softmax(&in, &out, false);
        for (int i = 0; i < 6; i++) {
            double got = array_get(&out, i), wanted = expected[i % 3];
            assert_true(wanted != wanted ? got != got : got == wanted);
        }
        array_free(&in);
        array_free(&out);
    }
}

static void test_special_rows(void **state) {
    (void)state;
    check_special_row(-INFINITY, 0.5, 0, 0.5);
    check_special_row(NAN, NAN, NAN, NAN);
    check_special_row(INFINITY, NAN, NAN, NAN);
    const int64_t dims[1] = {40};
    for (int d = 0; d < DTYPES; d++) { // all -inf
        Array in;
        array_make(&in, dtypes[d], LAYOUT_PLAIN, 1, dims);
        for (int i = 0; i < 40; i++) array_set(&in, i, -INFINITY);
        run_softmax(&in, &in, false); // in place
        for (int i = 0; i < 40; i++) assert_true(isnan(array_get(&in, i)));
        array_free(&in);
    }
}

// Log softmax keeps small differences next to large numbers.
static void test_log_softmax_of_large_numbers(void **state) {
    (void)state;
    const int64_t dims[1] = {3};
    Array in, out;
    array_make(&in, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, dims);
    array_make(&out, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, dims);
    for (int i = 0; i < 3; i++) array_set(&in, i, 1e6 - 20 * i);
    run_softmax(&in, &out, true);
    assert_true(fabs(array_get(&out, 0) + log1p(exp(-20) + exp(-40))) < 1e-12);
    array_free(&in);
    array_free(&out);
}

typedef struct NormCase {
    DType dtype, weight_dtype;
    Layout layout;
    int count;
    bool centred, weight, bias;
} NormCase;

// Runs it over an input that is filled here.
static void compare_norm(const NormCase *c, Array *in, Array *out) {
    Array operands[2];
    const int64_t *dims = in->view.dims + in->view.rank - c->count;
    for (int64_t i = 0; i < array_count(&in->view); i++)
        array_set(in, i, 3 * array_random_real() + 1);
    for (int k = 0; k < 2; k++) {
        array_make(&operands[k], c->weight_dtype, (Layout)(((int)c->layout + 2 + k) % LAYOUT_COUNT),
                   c->count, dims);
        array_fill_random(&operands[k]);
    }
    KernelCall call = call_of(c->centred ? KERNEL_LAYER_NORM : KERNEL_RMS_NORM, in, out);
    call.options.count = c->count;
    call.options.scalars[0] = 1e-5;
    call.n_inputs = c->bias ? 3 : (c->weight ? 2 : 1);
    if (c->weight) call.inputs[1].view = array_view(&operands[0]);
    if (c->bias) call.inputs[2].view = array_view(&operands[1]);
    assert_int_equal(run_kernel(c->centred ? KERNEL_LAYER_NORM : KERNEL_RMS_NORM, &call),
                     STATUS_OK);
    int64_t n = 1;
    for (int d = 0; d < c->count; d++) n *= dims[d];
    for (int64_t first = 0; first < array_count(&in->view); first += n) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < n; i++) mean += array_get(in, first + i) / (double)n;
        if (!c->centred) mean = 0;
        for (int64_t i = 0; i < n; i++)
            square += pow(array_get(in, first + i) - mean, 2) / (double)n;
        for (int64_t i = 0; i < n; i++) {
            double normal = (array_get(in, first + i) - mean) / sqrt(square + 1e-5);
            double expected = normal * (c->weight ? array_get(&operands[0], i) : 1) +
                              (c->bias ? array_get(&operands[1], i) : 0);
            double got = array_get(out, first + i);
            if (!(fabs(got - expected) <= unit_of(c->dtype) * (fabs(expected) + 1)))
                fail_msg("norm of %s over %d dims: %.9g, expected %.9g", dtype_name(c->dtype),
                         c->count, got, expected);
        }
    }
    array_free(in);
    array_free(out);
    for (int k = 0; k < 2; k++) array_free(&operands[k]);
}

static void check_norm(const NormCase *c, const int64_t dims[3]) {
    Array in, out;
    array_make(&in, c->dtype, c->layout, 3, dims);
    array_make(&out, c->dtype, (Layout)((c->layout + 1) % LAYOUT_COUNT), 3, dims);
    compare_norm(c, &in, &out);
}

static void test_norms(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{2, 3, 5},   {4, 7, 64}, {1, 3, 2050},
                                        {2, 30, 40}, {2, 1, 1},  {0, 3, 4}};
    for (int d = 0; d < DTYPES; d++)
        for (int layout = 0; layout < LAYOUT_COUNT; layout++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                for (int count = 1; count <= 2; count++)
                    for (int kind = 0; kind < 6; kind++) {
                        // Centring one number leaves only rounding to divide by.
                        NormCase c = {
                            dtypes[d], dtypes[(d + kind) % DTYPES],         (Layout)layout, count,
                            kind >= 2, kind == 1 || kind == 3 || kind == 5, kind >= 4};
                        check_norm(&c, shapes[s]);
                    }
}

// Three rows inside a wider matrix, which begin anywhere.
static void make_inside(Array *array, DType dtype, int64_t width, int start) {
    array_make(array, dtype, LAYOUT_PLAIN, 2, (const int64_t[]){3, width + 5});
    array->view.dims[1] = width;
    array->view.offset = (size_t)start * dtype_size(dtype);
}

static void check_inside(DType dtype, int64_t width, const int starts[2]) {
    Array in, out;
    for (int logarithm = 0; logarithm < 2; logarithm++) {
        make_inside(&in, dtype, width, starts[0]);
        make_inside(&out, dtype, width, starts[1]);
        compare_softmax(&in, &out, logarithm);
    }
    for (int centred = 0; centred < 2; centred++) {
        NormCase c = {dtype, dtype, LAYOUT_STEPPED, 1, centred, true, centred};
        make_inside(&in, dtype, width, starts[0]);
        make_inside(&out, dtype, width, starts[1]);
        compare_norm(&c, &in, &out);
    }
}

// Alike in input and output, and not.
static void test_rows_inside_others(void **state) {
    (void)state;
    static const int64_t widths[] = {64, 67, 1029};
    static const int starts[][2] = {{0, 0}, {3, 3}, {2, 1}};
    for (int d = 0; d < DTYPES; d++)
        for (int w = 0; w < 3; w++)
            for (int s = 0; s < 3; s++) check_inside(dtypes[d], widths[w], starts[s]);
    check_inside(DTYPE_FLOAT32, 9003, starts[1]);
    check_inside(DTYPE_FLOAT32, 33003, starts[1]);
    check_inside(DTYPE_FLOAT32, 32768, starts[0]);
}

static void test_refusals(void **state) {
    (void)state;
    const int64_t dims[1] = {4};
    Array in;
    array_make(&in, DTYPE_INT32, LAYOUT_PLAIN, 1, dims);
    KernelCall call = call_of(KERNEL_SOFTMAX, &in, &in);
    assert_int_equal(run_kernel(KERNEL_SOFTMAX, &call), STATUS_DTYPE);
    assert_string_equal(error_current()->message, "test works on float types, not on int32");
    call.options.count = 1;
    assert_int_equal(run_kernel(KERNEL_RMS_NORM, &call), STATUS_DTYPE);
    array_free(&in);
}

static int run_suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_special_rows),
        cmocka_unit_test(test_log_softmax_of_large_numbers),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_rows_inside_others),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(run_suite);
}
