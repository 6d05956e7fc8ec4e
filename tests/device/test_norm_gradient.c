// LAYER_NORM_GRADIENT against plain float64 loops.
#include "tests/device/arrays.h"

#include "device/work.h"

typedef struct Case {
    DType dtype;
    int64_t rows, count;
    bool weight, sums;
} Case;

enum { UP, X, WEIGHT, X_OUT, WEIGHT_OUT, BIAS_OUT, ARRAYS };

static const double eps = 1e-3;

static void compare(const Case *c, Array *array, int64_t index, double want, double scale) {
    double got = array_get(array, index);
    double bound = (c->dtype == DTYPE_FLOAT64 ? 1e-13 : 1e-6) * scale;
    if (!(fabs(got - want) <= bound))
        fail_msg("%ld rows of %ld: %.9g, not %.9g", (long)c->rows, (long)c->count, got, want);
}

static double inner(const Case *c, Array *a, int64_t row, int64_t i) {
    double up = array_get(&a[UP], row * c->count + i);
    return c->weight ? up * array_get(&a[WEIGHT], i) : up;
}

static void check_row(const Case *c, Array *a, int64_t row, double *sums) {
    int64_t n = c->count, at = row * n;
    double mean = 0, square = 0, whole = 0, along = 0;
    for (int64_t i = 0; i < n; i++) mean += array_get(&a[X], at + i) / (double)n;
    for (int64_t i = 0; i < n; i++) square += pow(array_get(&a[X], at + i) - mean, 2) / (double)n;
    double factor = 1 / sqrt(square + eps);
    for (int64_t i = 0; i < n; i++) {
        double normal = (array_get(&a[X], at + i) - mean) * factor;
        whole += inner(c, a, row, i) / (double)n;
        along += inner(c, a, row, i) * normal / (double)n;
        sums[i] += array_get(&a[UP], at + i) * normal;
        sums[n + i] += array_get(&a[UP], at + i);
    }
    for (int64_t i = 0; i < n; i++) {
        double normal = (array_get(&a[X], at + i) - mean) * factor;
        compare(c, &a[X_OUT], at + i, factor * (inner(c, a, row, i) - whole - normal * along),
                4 * factor);
    }
}

static void check(Case c) {
    Array a[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) {
        bool is_row = i == WEIGHT || i >= WEIGHT_OUT;
        array_make(&a[i], c.dtype, LAYOUT_PLAIN, is_row ? 1 : 2,
                   is_row ? (int64_t[]){c.count} : (int64_t[]){c.rows, c.count});
        array_fill_random(&a[i]);
    }
    // Far from 0, next to what it varies by.
    for (int64_t i = 0; i < c.rows * c.count; i++) array_set(&a[X], i, array_get(&a[X], i) + 3);
    KernelCall call = {.n_inputs = c.weight ? 3 : 2, .n_outputs = c.sums ? 3 : 1};
    call.op_name = "layer_norm";
    call.options.count = 1;
    call.options.scalars[0] = eps;
    for (int i = 0; i < 3; i++) {
        call.inputs[i].view = array_view(&a[UP + i]);
        call.outputs[i] = array_view(&a[X_OUT + i]);
    }
    assert_int_equal(run_kernel(KERNEL_LAYER_NORM_GRADIENT, &call), STATUS_OK);
    double *sums = calloc((size_t)(2 * c.count) + 1, sizeof *sums);
    for (int64_t row = 0; row < c.rows; row++) check_row(&c, a, row, sums);
    for (int64_t i = 0; i < c.count && c.sums; i++) {
        compare(&c, &a[WEIGHT_OUT], i, sums[i], 4 + (double)c.rows);
        compare(&c, &a[BIAS_OUT], i, sums[c.count + i], 4 + (double)c.rows);
    }
    free(sums);
    for (int i = 0; i < ARRAYS; i++) array_free(&a[i]);
}

static void test_gradients(void **state) {
    (void)state;
    Device *device = array_device();
    if (device && !device_has(device, KERNEL_LAYER_NORM_GRADIENT)) skip();
    static const int64_t shapes[][2] = {{1, 1},   {3, 7},    {64, 16}, {65, 33},
                                        {200, 5}, {130, 70}, {2, 999}, {0, 4}};
    for (int d = 0; d < 2; d++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int form = 0; form < 3; form++)
                check((Case){.dtype = d ? DTYPE_FLOAT64 : DTYPE_FLOAT32,
                             .rows = shapes[s][0],
                             .count = shapes[s][1],
                             .weight = form > 0,
                             .sums = form > 1});
}

static int suite(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(suite);
}
