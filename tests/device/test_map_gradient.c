// MAP_GRADIENT against differences of the formulas in float64, for every length up to two vectors.
#include "tests/device/arrays.h"

#include "device/work.h"

enum { UP, X, Y, RESULT, OUT, ARRAYS };

typedef struct Case {
    MapOp map;
    const char *name;
    int arity;
    double low, high; // where the formula is smooth
} Case;

static const Case cases[] = {
    {MAP_EXP, "exp", 1, -2, 2},         {MAP_TANH, "tanh", 1, -2, 2},
    {MAP_SIGMOID, "sigmoid", 1, -4, 4}, {MAP_SILU, "silu", 1, -4, 4},
    {MAP_GELU, "gelu", 1, -4, 4},       {MAP_GELU_EXACT, "gelu_exact", 1, -4, 4},
    {MAP_MISH, "mish", 1, -4, 4},       {MAP_RELU, "relu", 1, 0.1, 2},
    {MAP_ABS, "abs", 1, -2, -0.1},      {MAP_SQRT, "sqrt", 1, 0.5, 2},
    {MAP_DIV, "div", 2, 0.5, 2},        {MAP_POW, "pow", 2, 0.5, 2},
    {MAP_SWIGLU, "swiglu", 2, -2, 2},
};

static void run_map(const Case *c, Array *a) {
    KernelCall call = {.n_inputs = c->arity, .n_outputs = 1, .op_name = c->name};
    call.inputs[0].view = array_view(&a[X]);
    call.inputs[1].view = array_view(&a[Y]);
    call.outputs[0] = array_view(&a[RESULT]);
    call.options.n_steps = 1;
    call.options.compute = a[X].view.dtype;
    call.options.steps[0] = (MapStep){(uint16_t)c->map, 0, 1, 0};
    assert_int_equal(run_kernel(KERNEL_MAP, &call), STATUS_OK);
}

static void make(Array *a, const Case *c, DType dtype, int64_t count) {
    for (int i = 0; i < ARRAYS; i++) array_make(&a[i], dtype, LAYOUT_PLAIN, 1, &count);
    for (int64_t i = 0; i < count; i++) {
        array_set(&a[UP], i, array_random_real());
        for (int k = X; k <= Y; k++)
            array_set(&a[k], i, c->low + (c->high - c->low) * (array_random_real() + 1) / 2);
    }
}

// The formula's change around the operand, in float64.
static void differences(const Case *c, Array *from, int operand, double *slopes) {
    const double step = 1e-5;
    int64_t count = array_count(&from[X].view);
    Array a[ARRAYS];
    make(a, c, DTYPE_FLOAT64, count);
    for (int side = 1; side >= -1; side -= 2) {
        for (int64_t i = 0; i < count; i++) {
            array_set(&a[X], i, array_get(&from[X], i) + (operand == 0 ? side * step : 0));
            array_set(&a[Y], i, array_get(&from[Y], i) + (operand == 1 ? side * step : 0));
        }
        run_map(c, a);
        for (int64_t i = 0; i < count; i++)
            slopes[i] += side * array_get(&a[RESULT], i) / (2 * step);
    }
    for (int i = 0; i < ARRAYS; i++) array_free(&a[i]);
}

static void check(const Case *c, DType dtype, int operand, int64_t count) {
    Array a[ARRAYS];
    make(a, c, dtype, count);
    run_map(c, a);
    double *slopes = calloc((size_t)count + 1, sizeof *slopes);
    differences(c, a, operand, slopes);
    KernelCall call = {.n_inputs = 4, .n_outputs = 1, .op_name = c->name};
    for (int i = UP; i <= RESULT; i++) call.inputs[i].view = array_view(&a[i]);
    call.outputs[0] = array_view(&a[OUT]);
    call.options.op = (int)c->map;
    call.options.dim = operand;
    assert_int_equal(run_kernel(KERNEL_MAP_GRADIENT, &call), STATUS_OK);
    for (int64_t i = 0; i < count; i++) {
        double want = array_get(&a[UP], i) * slopes[i], got = array_get(&a[OUT], i);
        if (!(fabs(got - want) <= (dtype == DTYPE_FLOAT64 ? 1e-8 : 4e-6) * (1 + fabs(slopes[i]))))
            fail_msg("%s by operand %d, %ld of %ld: %.9g, not %.9g", c->name, operand, (long)i,
                     (long)count, got, want);
    }
    free(slopes);
    for (int i = 0; i < ARRAYS; i++) array_free(&a[i]);
}

static void test_derivatives(void **state) {
    (void)state;
    Device *device = array_device();
    if (device && !device_has(device, KERNEL_MAP_GRADIENT)) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int operand = 0; operand < cases[i].arity; operand++)
            for (int64_t count = 0; count <= 33; count++) {
                check(&cases[i], DTYPE_FLOAT32, operand, count);
                check(&cases[i], DTYPE_FLOAT64, operand, count);
            }
    check(&cases[4], DTYPE_FLOAT32, 0, 40001); // more than a thread's work
}

static int suite(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_derivatives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(suite);
}
