// CROSS_ENTROPY and CROSS_ENTROPY_LOGITS against plain float64 loops.
#include "tests/device/arrays.h"

#include "device/work.h"

static void check(DType dtype, int64_t rows, int64_t count, double scale) {
    Array logits, classes, losses, share, gradient;
    array_make(&logits, dtype, LAYOUT_PLAIN, 2, (int64_t[]){rows, count});
    array_make(&gradient, dtype, LAYOUT_PLAIN, 2, (int64_t[]){rows, count});
    array_make(&losses, dtype, LAYOUT_PLAIN, 1, (int64_t[]){rows});
    array_make(&classes, DTYPE_INT64, LAYOUT_PLAIN, 1, (int64_t[]){rows});
    array_make(&share, dtype, LAYOUT_PLAIN, 0, NULL);
    array_fill_random(&logits);
    for (int64_t i = 0; i < rows * count; i++)
        array_set(&logits, i, array_get(&logits, i) * scale + scale);
    for (int64_t i = 0; i < rows; i++) array_set(&classes, i, (double)(i * 7 % count));
    array_set(&share, 0, 0.25);
    KernelCall call = {.n_inputs = 2, .n_outputs = 1, .op_name = "cross_entropy"};
    call.inputs[0].view = array_view(&logits);
    call.inputs[1].view = array_view(&classes);
    call.inputs[2].view = array_view(&share);
    call.outputs[0] = array_view(&losses);
    assert_int_equal(run_kernel(KERNEL_CROSS_ENTROPY, &call), STATUS_OK);
    call.n_inputs = 3;
    call.outputs[0] = array_view(&gradient);
    assert_int_equal(run_kernel(KERNEL_CROSS_ENTROPY_LOGITS, &call), STATUS_OK);
    double bound = dtype == DTYPE_FLOAT64 ? 1e-12 : 2e-6;
    for (int64_t r = 0; r < rows; r++) {
        double max = -INFINITY, sum = 0;
        int64_t class = r * 7 % count;
        for (int64_t i = 0; i < count; i++) max = fmax(max, array_get(&logits, r * count + i));
        for (int64_t i = 0; i < count; i++) sum += exp(array_get(&logits, r * count + i) - max);
        double want = log(sum) + max - array_get(&logits, r * count + class);
        double got = array_get(&losses, r);
        if (!(fabs(got - want) <= bound * (1 + fabs(want)) * 4))
            fail_msg("row %ld: loss %.9g, not %.9g", (long)r, got, want);
        for (int64_t i = 0; i < count; i++) {
            double slope = exp(array_get(&logits, r * count + i) - max) / sum - (i == class);
            got = array_get(&gradient, r * count + i);
            if (!(fabs(got - 0.25 * slope) <= bound))
                fail_msg("row %ld, class %ld: %.9g, not %.9g", (long)r, (long)i, got, 0.25 * slope);
        }
    }
    Array *all[] = {&logits, &classes, &losses, &share, &gradient};
    for (int i = 0; i < 5; i++) array_free(all[i]);
}

static void test_losses_and_gradients(void **state) {
    (void)state;
    Device *device = array_device();
    if (device && !device_has(device, KERNEL_CROSS_ENTROPY)) skip();
    const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT64};
    for (int d = 0; d < 2; d++) {
        check(dtypes[d], 5, 1, 1);
        check(dtypes[d], 300, 10, 3);
        check(dtypes[d], 7, 33, 100); // beyond what exp can hold
        check(dtypes[d], 3, 5000, 1);
        check(dtypes[d], 0, 4, 1);
    }
}

static int suite(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_losses_and_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(suite);
}
