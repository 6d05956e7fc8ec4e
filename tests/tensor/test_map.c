// Elementwise operations: dtypes, broadcasting, layouts, donation, plain numbers, errors; results
// against loops over doubles.
#include <stdio.h>

#include "tensor/map.h"
#include "tensor/scalar.h"
#include "tests/tensor/tensors.h"

static double wrap(DType dtype, int64_t value) {
    switch (dtype) {
    case DTYPE_BOOL: return value != 0;
    case DTYPE_UINT8: return (uint8_t)value;
    case DTYPE_INT8: return (int8_t)(uint8_t)value;
    case DTYPE_INT16: return (int16_t)(uint16_t)value;
    case DTYPE_INT32: return (int32_t)(uint32_t)value;
    default: return (double)value;
    }
}

static double tolerance(DType dtype) {
    switch (dtype) {
    case DTYPE_FLOAT16: return 2e-3;
    case DTYPE_BFLOAT16: return 1.6e-2;
    case DTYPE_FLOAT32: return 2e-6;
    case DTYPE_FLOAT64: return 1e-14;
    default: return 0;
    }
}

static void assert_near(double got, double wanted, DType dtype, const char *what) {
    if (isnan(wanted) && isnan(got)) return;
    if (got == wanted) return;
    if (!(fabs(got - wanted) <= tolerance(dtype) * (1 + fabs(wanted))))
        fail_msg("%s as %s: got %.17g, wanted %.17g", what, dtype_name(dtype), got, wanted);
}

typedef struct Binary {
    OpId op;
    double (*in_floats)(double x, double y);
    int64_t (*in_integers)(int64_t x, int64_t y); // NULL: ints are computed as floats
    bool to_bool;
} Binary;

static double add_f(double x, double y) {
    return x + y;
}
static double sub_f(double x, double y) {
    return x - y;
}
static double mul_f(double x, double y) {
    return x * y;
}
static double div_f(double x, double y) {
    return x / y;
}
static double max_f(double x, double y) {
    return x > y ? x : y;
}
static double min_f(double x, double y) {
    return x < y ? x : y;
}
static double less_f(double x, double y) {
    return x < y;
}
static double equal_f(double x, double y) {
    return x == y;
}
static double and_f(double x, double y) {
    return x != 0 && y != 0;
}
static int64_t add_i(int64_t x, int64_t y) {
    return x + y;
}
static int64_t sub_i(int64_t x, int64_t y) {
    return x - y;
}
static int64_t mul_i(int64_t x, int64_t y) {
    return x * y;
}
static int64_t max_i(int64_t x, int64_t y) {
    return x > y ? x : y;
}
static int64_t min_i(int64_t x, int64_t y) {
    return x < y ? x : y;
}

static const Binary binaries[] = {
    {OP_add, add_f, add_i, false},     {OP_sub, sub_f, sub_i, false},
    {OP_mul, mul_f, mul_i, false},     {OP_div, div_f, NULL, false},
    {OP_atan2, atan2, NULL, false},    {OP_maximum, max_f, max_i, false},
    {OP_minimum, min_f, min_i, false}, {OP_lt, less_f, NULL, true},
    {OP_eq, equal_f, NULL, true},      {OP_logical_and, and_f, NULL, true},
};

static double expected(const Binary *b, DType result, double x, double y) {
    if (b->to_bool || dtype_is_float(result)) return b->in_floats(x, y);
    return wrap(result, b->in_integers((int64_t)x, (int64_t)y));
}

static void check_binary(const Binary *b, DType x_dtype, DType y_dtype, TestLayout layout) {
    Tensor *x = lay_out_as(make_samples(x_dtype, SHAPE(3, 4), 0), layout);
    Tensor *y = lay_out_as(make_samples(y_dtype, SHAPE(3, 4), 5), (layout + 2) % LAYOUTS);
    Tensor *out;
    OK(op_binary(b->op, op_tensor(x), op_tensor(y), &out));
    double *xs = read_all(x), *ys = read_all(y), *got = read_all(out);
    for (int i = 0; i < 12; i++)
        assert_near(got[i], expected(b, out->view.dtype, xs[i], ys[i]), out->view.dtype,
                    op_rows[b->op].name);
    free(xs);
    free(ys);
    free(got);
    tensor_release(x);
    tensor_release(y);
    tensor_release(out);
}

static void test_every_dtype_pair_and_layout(void **state) {
    (void)state;
    for (size_t b = 0; b < sizeof binaries / sizeof *binaries; b++)
        for (int x = 0; x < DTYPES; x++)
            for (int y = 0; y < DTYPES; y++)
                for (int layout = 0; layout < LAYOUTS; layout++)
                    check_binary(&binaries[b], all_dtypes[x], all_dtypes[y], (TestLayout)layout);
}

static void test_float_functions_on_every_dtype(void **state) {
    (void)state;
    static const struct {
        OpId op;
        double (*wanted)(double);
    } unaries[] = {{OP_exp, exp}, {OP_tanh, tanh}, {OP_sin, sin}, {OP_erf, erf}, {OP_sqrt, sqrt}};
    for (size_t u = 0; u < sizeof unaries / sizeof *unaries; u++)
        for (int d = 0; d < DTYPES; d++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                Tensor *x =
                    lay_out_as(make_samples(all_dtypes[d], SHAPE(5, 3), 1), (TestLayout)layout);
                Tensor *out;
                OK(op_unary(unaries[u].op, x, &out));
                assert_int_equal(out->view.dtype,
                                 dtype_is_float(all_dtypes[d]) ? all_dtypes[d] : DTYPE_FLOAT32);
                double *xs = read_all(x), *got = read_all(out);
                for (int i = 0; i < 15; i++)
                    assert_near(got[i], unaries[u].wanted(xs[i]), out->view.dtype,
                                op_rows[unaries[u].op].name);
                free(xs);
                free(got);
                tensor_release(x);
                tensor_release(out);
            }
}

// The dtype of `x op y`, where operands are tensors [2] ("float16"), rank-0 tensors ("0:int64") or
// plain numbers ("int", "float").
static OpInput operand(const char *word, Tensor **made) {
    *made = NULL;
    if (strcmp(word, "int") == 0) return op_int(2);
    if (strcmp(word, "float") == 0) return op_float(0.5);
    DType dtype;
    bool rank_0 = strncmp(word, "0:", 2) == 0;
    const char *name = rank_0 ? word + 2 : word;
    assert_true(dtype_find(name, strlen(name), &dtype));
    *made = make_samples(dtype, rank_0 ? shape_of(0) : SHAPE(2), 1);
    return op_tensor(*made);
}

static void test_dtype_rules(void **state) {
    (void)state;
    static const struct {
        OpId op;
        const char *x, *y, *wanted;
    } cases[] = {
        {OP_add, "float16", "float", "float16[2]"},
        {OP_mul, "float16", "int", "float16[2]"},
        {OP_add, "int32", "float", "float32[2]"},
        {OP_add, "int8", "int", "int8[2]"},
        {OP_add, "bool", "bool", "int64[2]"},
        {OP_add, "bool", "int", "int64[2]"},
        {OP_mul, "bool", "float16", "float16[2]"},
        {OP_div, "int64", "int64", "float32[2]"},
        {OP_div, "int64", "int", "float32[2]"},
        {OP_add, "uint8", "int8", "int16[2]"},
        {OP_add, "uint8", "int16", "int16[2]"},
        {OP_add, "int64", "float16", "float32[2]"},
        {OP_add, "int64", "bfloat16", "float32[2]"},
        {OP_add, "float16", "bfloat16", "float32[2]"},
        {OP_add, "float32", "float64", "float64[2]"},
        {OP_add, "float16", "0:float32", "float16[2]"},
        {OP_add, "float16", "0:float64", "float16[2]"},
        {OP_add, "int8", "0:int64", "int8[2]"},
        {OP_add, "int8", "0:float64", "float32[2]"},
        {OP_add, "0:int8", "0:int64", "int64[]"},
        {OP_div, "0:int64", "0:int64", "float32[]"},
        {OP_add, "0:float64", "float", "float64[]"},
        {OP_add, "0:int32", "float", "float32[]"},
        {OP_lt, "float16", "int64", "bool[2]"},
        {OP_maximum, "bool", "bool", "bool[2]"},
        {OP_bit_and, "uint8", "int32", "int32[2]"},
        {OP_pow, "int32", "int", "int32[2]"},
        {OP_logical_or, "float32", "int8", "bool[2]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Tensor *x, *y, *out;
        OpInput a = operand(cases[i].x, &x), b = operand(cases[i].y, &y);
        OK(op_binary(cases[i].op, a, b, &out));
        assert_type(out, cases[i].wanted);
        tensor_release(x);
        tensor_release(y);
        tensor_release(out);
    }
}

static void test_broadcasting(void **state) {
    (void)state;
    Tensor *x = make_samples(DTYPE_FLOAT32, SHAPE(2, 1, 3), 0);
    Tensor *y = make_samples(DTYPE_FLOAT64, SHAPE(4, 1), 7), *out;
    OK(op_binary(OP_mul, op_tensor(x), op_tensor(y), &out));
    assert_type(out, "float64[2, 4, 3]");
    double *got = read_all(out);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int k = 0; k < 3; k++)
                assert_true(got[(i * 4 + j) * 3 + k] == sample(i * 3 + k) * sample(7 + j));
    free(got);
    tensor_release(out);
    tensor_release(y);
    y = make_samples(DTYPE_FLOAT32, SHAPE(0, 1), 0);
    OK(op_binary(OP_add, op_tensor(x), op_tensor(y), &out));
    assert_type(out, "float32[2, 0, 3]");
    tensor_release(out);
    tensor_release(y);
    tensor_release(x);
}

static void test_broadcast_errors(void **state) {
    (void)state;
    Tensor *x = make_samples(DTYPE_FLOAT32, SHAPE(2, 3), 0),
           *y = make_samples(DTYPE_FLOAT32, SHAPE(4), 0);
    Tensor *z = make_samples(DTYPE_INT64, SHAPE(2), 0), *out;
    FAILS(STATUS_SHAPE,
          "cannot add float32[2, 3] and float32[4]: dimension 1 is 3 here and 4 there",
          op_binary(OP_add, op_tensor(x), op_tensor(y), &out));
    assert_string_equal(error_current()->help, "");
    FAILS(STATUS_SHAPE,
          "cannot divide float32[2, 3] by int64[2]: dimension 1 is 3 here and 2 there",
          op_binary(OP_div, op_tensor(x), op_tensor(z), &out));
    assert_string_equal(
        error_current()->help,
        "shapes line up at the last dimension: reshape the int64[2] to [2, 1] to use "
        "it along dimension 0");
    FAILS(STATUS_SHAPE,
          "cannot apply atan2 to float32[4] and float32[2, 3]: dimension 1 is 4 here and 3 there",
          op_binary(OP_atan2, op_tensor(y), op_tensor(x), &out));
    FAILS(STATUS_DTYPE, "bit_and works on integers, but an operand is float32[4]",
          op_binary(OP_bit_and, op_tensor(y), op_int(1), &out));
    FAILS(STATUS_DTYPE, "shift_left works on integers, but an operand is the float 0.5",
          op_binary(OP_shift_left, op_tensor(z), op_float(0.5), &out));
    tensor_release(x);
    tensor_release(y);
    tensor_release(z);
}

static int warnings;
static void count_warning(const char *op_name, const Shape *x, const Shape *y) {
    (void)op_name, (void)x, (void)y;
    warnings++;
}

static int warnings_of(Shape a, Shape b) {
    Tensor *x = make_samples(DTYPE_FLOAT32, a, 0), *y = make_samples(DTYPE_FLOAT32, b, 0), *out;
    warnings = 0;
    OK(op_binary(OP_add, op_tensor(x), op_tensor(y), &out));
    tensor_release(x);
    tensor_release(y);
    tensor_release(out);
    return warnings;
}

static void test_row_and_column_warn(void **state) {
    (void)state;
    op_set_broadcast_warning(count_warning);
    assert_int_equal(warnings_of(SHAPE(3), SHAPE(3, 1)), 1);
    assert_int_equal(warnings_of(SHAPE(3, 1), SHAPE(3)), 1);
    assert_int_equal(warnings_of(SHAPE(3, 3), SHAPE(3, 3, 1)), 1);
    assert_int_equal(warnings_of(SHAPE(3), SHAPE(2, 3, 1)), 1);
    assert_int_equal(warnings_of(SHAPE(1, 3), SHAPE(3, 1)), 0);
    assert_int_equal(warnings_of(SHAPE(1), SHAPE(1, 1)), 0);
    assert_int_equal(warnings_of(SHAPE(4), SHAPE(3, 1)), 0);
    assert_int_equal(warnings_of(SHAPE(3), SHAPE(3, 3)), 0);
    op_set_broadcast_warning(NULL);
}

static void test_donation_reuses_the_buffer(void **state) {
    (void)state;
    Tensor *x = make_samples(DTYPE_FLOAT32, SHAPE(4), 0), *out;
    Buffer *buffer = x->view.buffer;
    OK(op_binary(OP_add, op_donated(x), op_float(1), &out));
    assert_ptr_equal(out->view.buffer, buffer);
    tensor_release(x);
    double *got = read_all(out);
    for (int i = 0; i < 4; i++) assert_true(got[i] == sample(i) + 1);
    free(got);
    // A comparison needs another size; a view, a second holder or a literal forbids it.
    Tensor *other;
    OK(op_binary(OP_lt, op_donated(out), op_float(1), &other));
    assert_ptr_not_equal(other->view.buffer, buffer);
    tensor_release(other);
    Tensor *view;
    OK(tensor_unsqueeze(out, 0, &view));
    OK(op_unary(OP_exp, out, &other));
    tensor_release(other);
    OK(op_binary(OP_add, op_donated(out), op_float(1), &other));
    assert_ptr_not_equal(other->view.buffer, buffer);
    tensor_release(other);
    tensor_release(view);
    tensor_retain(out);
    OK(op_binary(OP_add, op_donated(out), op_float(1), &other));
    assert_ptr_not_equal(other->view.buffer, buffer);
    tensor_release(other);
    tensor_release(out);
    tensor_release(out);
    double numbers[] = {1, 2};
    Shape shape = SHAPE(2);
    OK(tensor_from_floats(numbers, &shape, DTYPE_FLOAT32, &x));
    OK(tensor_materialize(x));
    OK(op_binary(OP_add, op_donated(x), op_float(1), &other));
    assert_ptr_not_equal(other->view.buffer, x->view.buffer);
    tensor_release(other);
    tensor_release(x);
    // An operand of another dtype of the same size is written over as well.
    x = make_samples(DTYPE_INT32, SHAPE(3), 0);
    buffer = x->view.buffer;
    OK(op_unary(OP_neg, x, &other));
    tensor_release(other);
    OK(op_binary(OP_div, op_donated(x), op_int(2), &out));
    assert_ptr_equal(out->view.buffer, buffer);
    assert_type(out, "float32[3]");
    tensor_release(x);
    tensor_release(out);
}

static void test_where(void **state) {
    (void)state;
    double boolean[] = {0.5, 0, NAN, -0.0};
    Tensor *condition = make_tensor(DTYPE_FLOAT32, SHAPE(4), boolean), *out;
    Tensor *x = make_samples(DTYPE_INT64, SHAPE(4), 2);
    OK(op_ternary(OP_where, op_tensor(condition), op_tensor(x), op_int(-7), &out));
    assert_type(out, "int64[4]"); // the condition takes no part in the dtype
    double *got = read_all(out), *xs = read_all(x);
    assert_true(got[0] == xs[0] && got[1] == -7 && got[2] == xs[2] && got[3] == -7);
    free(got);
    free(xs);
    tensor_release(out);
    OK(op_ternary(OP_where, op_tensor(condition), op_float(1), op_int(0), &out));
    assert_type(out, "float32[4]");
    tensor_release(out);
    tensor_release(x);
    tensor_release(condition);
}

static void test_large_integers_compare_exactly(void **state) {
    (void)state;
    int64_t big[] = {16777217, 16777216};
    Shape shape = SHAPE(2);
    Tensor *x, *out;
    OK(tensor_from_integers(big, &shape, DTYPE_INT64, &x));
    OK(op_binary(OP_eq, op_tensor(x), op_float(16777217.0), &out));
    double *got = read_all(out);
    assert_true(got[0] == 1 && got[1] == 0);
    free(got);
    tensor_release(out);
    OK(op_unary(OP_bit_not, x, &out));
    got = read_all(out);
    assert_true(got[0] == -16777218.0);
    free(got);
    tensor_release(out);
    tensor_release(x);
    x = make_tensor(DTYPE_BOOL, shape, (double[]){1, 0});
    OK(op_unary(OP_bit_not, x, &out));
    got = read_all(out);
    assert_true(got[0] == 0 && got[1] == 1);
    free(got);
    tensor_release(out);
    tensor_release(x);
}

static Status scalars(OpId op, int n, OpInput x, OpInput y, OpInput z, Scalar *out) {
    OpCall call = {.op = &op_rows[op], .n_inputs = n, .inputs = {x, y, z}};
    return op_apply_scalars(&call, out);
}

static void assert_scalar(OpId op, int n, OpInput x, OpInput y, Scalar wanted) {
    Scalar got;
    OK(scalars(op, n, x, y, op_int(0), &got));
    assert_int_equal(got.dtype, wanted.dtype);
    if (got.dtype == DTYPE_FLOAT64)
        assert_true(got.as.f == wanted.as.f);
    else
        assert_int_equal(got.as.i, wanted.as.i);
}

// Powers as <math.h> has them: signs of zeros, infinities, negative bases; the exponent as a plain
// number, where small ones are products, and as a tensor.
static void test_powers(void **state) {
    (void)state;
    static const double bases[] = {0.0,  -0.0,  1, -1, 0.5,      -0.5,      2,   -2,
                                   3.25, -3.25, 5, -5, INFINITY, -INFINITY, NAN, 0.125};
    static const double exponents[] = {0,  1,   -1,   2,   -2,  3,       -3,       4,         5,  6,
                                       -4, 0.5, -0.5, 1.5, 2.5, 1.0 / 3, INFINITY, -INFINITY, NAN};
    static const DType dtypes[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
    enum { BASES = sizeof bases / sizeof *bases };
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        Tensor *x = make_tensor(dtypes[d], SHAPE(BASES), bases);
        for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++) {
            double repeated[BASES];
            for (int i = 0; i < BASES; i++) repeated[i] = exponents[e];
            Tensor *y = make_tensor(dtypes[d], SHAPE(BASES), repeated);
            double *rounded = read_all(y);
            for (int form = 0; form < 2; form++) {
                Tensor *power;
                OK(op_binary(OP_pow, op_tensor(x), form ? op_tensor(y) : op_float(exponents[e]),
                             &power));
                double *got = read_all(power);
                for (int i = 0; i < BASES; i++) {
                    double exponent = form ? rounded[i] : exponents[e];
                    double wanted = pow(bases[i], exponent);
                    char what[64];
                    snprintf(what, sizeof what, "%g ** %g", bases[i], exponent);
                    assert_near(got[i], wanted, dtypes[d], what);
                    if (!isnan(wanted) && !signbit(wanted) != !signbit(got[i]))
                        fail_msg("%s as %s has the wrong sign", what, dtype_name(dtypes[d]));
                }
                free(got);
                tensor_release(power);
            }
            free(rounded);
            tensor_release(y);
        }
        tensor_release(x);
    }
}

static void test_plain_numbers(void **state) {
    (void)state;
    OpInput yes = op_scalar((Scalar){.dtype = DTYPE_BOOL, .as.i = 1});
#define INT(v) ((Scalar){.dtype = DTYPE_INT64, .as.i = (v)})
#define FLOAT(v) ((Scalar){.dtype = DTYPE_FLOAT64, .as.f = (v)})
#define BOOL(v) ((Scalar){.dtype = DTYPE_BOOL, .as.i = (v)})
    assert_scalar(OP_pow, 2, op_int(2), op_int(3), INT(8));
    assert_scalar(OP_pow, 2, op_int(2), op_int(-1), FLOAT(0.5));
    assert_scalar(OP_abs, 1, op_int(-3), op_int(0), INT(3));
    assert_scalar(OP_abs, 1, op_float(-3.5), op_int(0), FLOAT(3.5));
    assert_scalar(OP_exp, 1, op_int(0), op_int(0), FLOAT(1.0));
    assert_scalar(OP_sqrt, 1, op_float(2.0), op_int(0), FLOAT(sqrt(2.0)));
    assert_scalar(OP_maximum, 2, op_int(2), op_int(3), INT(3));
    assert_scalar(OP_maximum, 2, op_int(2), op_float(1.5), FLOAT(2.0));
    assert_scalar(OP_div, 2, op_int(-7), op_int(2), INT(-3));
    assert_scalar(OP_rem, 2, op_int(-7), op_int(2), INT(-1));
    assert_scalar(OP_floor_div, 2, op_int(-7), op_int(2), INT(-4));
    assert_scalar(OP_mod, 2, op_int(-7), op_int(2), INT(1));
    assert_scalar(OP_mod, 2, op_float(-7), op_int(2), FLOAT(1.0));
    assert_scalar(OP_pow, 2, op_int(-2), op_int(63), INT(INT64_MIN));
    assert_scalar(OP_pow, 2, op_int(2), op_float(0.5), FLOAT(sqrt(2.0)));
    assert_scalar(OP_add, 2, yes, yes, INT(2));
    assert_scalar(OP_lt, 2, op_int(1), op_float(1.5), BOOL(1));
    assert_scalar(OP_bit_and, 2, op_int(6), op_int(3), INT(2));
    assert_scalar(OP_bit_not, 1, yes, op_int(0), BOOL(0));
    assert_scalar(OP_shift_left, 2, op_int(1), op_int(63), INT(INT64_MIN));
    assert_scalar(OP_shift_right, 2, op_int(-8), op_int(70), INT(-1));
    assert_scalar(OP_gcd, 2, op_int(-12), op_int(18), INT(6));
    assert_scalar(OP_round, 1, op_float(2.5), op_int(0), FLOAT(2.0));
    assert_scalar(OP_step, 1, op_float(0.1), op_int(0), FLOAT(1.0));
    assert_scalar(OP_approx_equal, 2, op_int(1), op_float(1.000001), BOOL(1));
    Scalar out;
    OK(scalars(OP_where, 3, yes, op_int(1), op_float(2), &out));
    assert_true(out.dtype == DTYPE_FLOAT64 && out.as.f == 1.0);
    OK(scalars(OP_clamp, 3, op_int(9), op_int(0), op_int(5), &out));
    assert_true(out.dtype == DTYPE_INT64 && out.as.i == 5);
}

static void test_plain_ints_trap(void **state) {
    (void)state;
    Scalar out;
    OpInput none = op_int(0);
    FAILS(STATUS_OVERFLOW, "add(9223372036854775807, 1) does not fit in 64 bits",
          scalars(OP_add, 2, op_int(INT64_MAX), op_int(1), none, &out));
    FAILS(STATUS_OVERFLOW, "neg(-9223372036854775808) does not fit in 64 bits",
          scalars(OP_neg, 1, op_int(INT64_MIN), none, none, &out));
    FAILS(STATUS_OVERFLOW, "pow(10, 19) does not fit in 64 bits",
          scalars(OP_pow, 2, op_int(10), op_int(19), none, &out));
    FAILS(STATUS_OVERFLOW, "pow(-3, 9223372036854775807) does not fit in 64 bits",
          scalars(OP_pow, 2, op_int(-3), op_int(INT64_MAX), none, &out));
    FAILS(STATUS_OVERFLOW, "div(-9223372036854775808, -1) does not fit in 64 bits",
          scalars(OP_div, 2, op_int(INT64_MIN), op_int(-1), none, &out));
    FAILS(STATUS_DIVIDE, "mod(5, 0): division by zero",
          scalars(OP_mod, 2, op_int(5), op_int(0), none, &out));
    FAILS(STATUS_TYPE, "bit_or works on integers, but an operand is the float 1.5",
          scalars(OP_bit_or, 2, op_int(2), op_float(1.5), none, &out));
}

static void test_quantised_operands_are_refused(void **state) {
    (void)state;
    Device *device;
    OK(device_default(&device));
    Shape shape = SHAPE(2, 32);
    Tensor *weights, *out;
    OK(tensor_new(device, DTYPE_Q4_0, &shape, &weights));
    FAILS(STATUS_DTYPE, "exp cannot take q4_0[2, 32]: quantised tensors are read-only weights",
          op_unary(OP_exp, weights, &out));
    assert_non_null(strstr(error_current()->help, "as float32"));
    tensor_release(weights);
    FAILS(STATUS_SHAPE, "cannot make q4_0[2, 31]: the last size must be a multiple of 32",
          tensor_new(device, DTYPE_Q4_0, &(Shape){.rank = 2, .dims = {2, 31}}, &out));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_dtype_pair_and_layout),
        cmocka_unit_test(test_float_functions_on_every_dtype),
        cmocka_unit_test(test_dtype_rules),
        cmocka_unit_test(test_broadcasting),
        cmocka_unit_test(test_broadcast_errors),
        cmocka_unit_test(test_row_and_column_warn),
        cmocka_unit_test(test_donation_reuses_the_buffer),
        cmocka_unit_test(test_where),
        cmocka_unit_test(test_large_integers_compare_exactly),
        cmocka_unit_test(test_powers),
        cmocka_unit_test(test_plain_numbers),
        cmocka_unit_test(test_plain_ints_trap),
        cmocka_unit_test(test_quantised_operands_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
