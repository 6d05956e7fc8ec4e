// The MAP kernel against plain loops: every formula in every compute type with a stated bound,
// edges, every dtype in and out, awkward layouts, programs, aliasing; once per instruction set.
#include "arrays.h"

enum { COUNT = 1037 }; // no multiple of any vector

typedef long double (*Reference)(long double x, long double y, long double z);

static long double greater_of(long double a, long double b) {
    return a != a || a > b ? a : b;
}

static long double smaller_of(long double a, long double b) {
    return a != a || a < b ? a : b;
}

static long double sigmoid_of(long double x) {
    return 1 / (1 + expl(-x));
}

static long double modulo_of(long double x, long double y) {
    long double rest = fmodl(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

#define UNUSED __attribute__((unused))
#define REFERENCE(code, value)                                                                     \
    static long double expect_##code(long double x UNUSED, long double y UNUSED,                   \
                                     long double z UNUSED) {                                       \
        return value;                                                                              \
    }
// FORMULA(code, operands, lowest, highest operand, bound in units of the last place, reference)
#define FORMULAS(F)                                                                                \
    F(COPY, 1, -9, 9, 0, x)                                                                        \
    F(NEG, 1, -9, 9, 0, -x)                                                                        \
    F(ABS, 1, -9, 9, 0, fabsl(x))                                                                  \
    F(SIGN, 1, -9, 9, 0, (x > 0) - (x < 0))                                                        \
    F(SQUARE, 1, -9, 9, 1, x *x)                                                                   \
    F(FLOOR, 1, -9, 9, 0, floorl(x))                                                               \
    F(CEIL, 1, -9, 9, 0, ceill(x))                                                                 \
    F(ROUND, 1, -9, 9, 0, rintl(x))                                                                \
    F(TRUNC, 1, -9, 9, 0, truncl(x))                                                               \
    F(ISNAN, 1, -9, 9, 0, 0)                                                                       \
    F(ISINF, 1, -9, 9, 0, 0)                                                                       \
    F(ISFINITE, 1, -9, 9, 0, 1)                                                                    \
    F(LOGICAL_NOT, 1, -9, 9, 0, x == 0)                                                            \
    F(STEP, 1, -9, 9, 0, x > 0)                                                                    \
    F(RELU, 1, -9, 9, 0, x > 0 ? x : 0)                                                            \
    F(EXP, 1, -80, 80, 4, expl(x))                                                                 \
    F(EXPM1, 1, -80, 80, 4, expm1l(x))                                                             \
    F(LOG, 1, 1e-6, 1e6, 4, logl(x))                                                               \
    F(LOG1P, 1, -0.9, 1e4, 4, log1pl(x))                                                           \
    F(LOG10, 1, 1e-6, 1e6, 4, log10l(x))                                                           \
    F(LOG2, 1, 1e-6, 1e6, 4, log2l(x))                                                             \
    F(SQRT, 1, 0, 1e6, 1, sqrtl(x))                                                                \
    F(RSQRT, 1, 1e-6, 1e6, 2, 1 / sqrtl(x))                                                        \
    F(SIN, 1, -50, 50, 4, sinl(x))                                                                 \
    F(COS, 1, -50, 50, 4, cosl(x))                                                                 \
    F(TAN, 1, -50, 50, 4, tanl(x))                                                                 \
    F(ASIN, 1, -1, 1, 4, asinl(x))                                                                 \
    F(ACOS, 1, -1, 1, 4, acosl(x))                                                                 \
    F(ATAN, 1, -50, 50, 4, atanl(x))                                                               \
    F(SINH, 1, -50, 50, 4, sinhl(x))                                                               \
    F(COSH, 1, -50, 50, 4, coshl(x))                                                               \
    F(TANH, 1, -12, 12, 4, tanhl(x))                                                               \
    F(ERF, 1, -5, 5, 4, erfl(x))                                                                   \
    F(SIGMOID, 1, -80, 80, 6, sigmoid_of(x))                                                       \
    F(LOG_SIGMOID, 1, -80, 80, 6, -log1pl(expl(-x)))                                               \
    F(SOFTPLUS, 1, -80, 80, 6, log1pl(expl(x)))                                                    \
    F(SILU, 1, -80, 80, 6, x *sigmoid_of(x))                                                       \
    F(MISH, 1, -40, 40, 10, x *tanhl(log1pl(expl(x))))                                             \
    F(HARDSWISH, 1, -9, 9, 4, x *smaller_of(greater_of(x + 3, 0), 6) / 6)                          \
    F(GELU, 1, -3, 9, 24,                                                                          \
      0.5L * x * (1 + tanhl(0.79788456080286535588L * (x + 0.044715L * x * x * x))))               \
    F(GELU_EXACT, 1, -3, 9, 24, 0.5L * x * erfcl(-x * 0.70710678118654752440L))                    \
    F(ADD, 2, -9, 9, 1, x + y)                                                                     \
    F(SUB, 2, -9, 9, 1, x - y)                                                                     \
    F(MUL, 2, -9, 9, 1, x *y)                                                                      \
    F(DIV, 2, -9, 9, 1, x / y)                                                                     \
    F(REM, 2, -9, 9, 1, fmodl(x, y))                                                               \
    F(FLOOR_DIV, 2, -9, 9, 1, floorl(x / y))                                                       \
    F(MOD, 2, -9, 9, 1, modulo_of(x, y))                                                           \
    F(POW, 2, 0.01, 9, 4, powl(x, y))                                                              \
    F(MIN, 2, -9, 9, 0, smaller_of(x, y))                                                          \
    F(MAX, 2, -9, 9, 0, greater_of(x, y))                                                          \
    F(EQ, 2, -9, 9, 0, x == y)                                                                     \
    F(NE, 2, -9, 9, 0, x != y)                                                                     \
    F(LT, 2, -9, 9, 0, x < y)                                                                      \
    F(LE, 2, -9, 9, 0, x <= y)                                                                     \
    F(GT, 2, -9, 9, 0, x > y)                                                                      \
    F(GE, 2, -9, 9, 0, x >= y)                                                                     \
    F(APPROX, 2, -9, 9, 0, fabsl(x - y) <= 1e-5L + 1e-5L * fabsl(y))                               \
    F(LOGICAL_AND, 2, -9, 9, 0, x != 0 && y != 0)                                                  \
    F(LOGICAL_OR, 2, -9, 9, 0, x != 0 || y != 0)                                                   \
    F(ATAN2, 2, -9, 9, 4, atan2l(x, y))                                                            \
    F(LEAKY_RELU, 2, -9, 9, 1, x > 0 ? x : x * y)                                                  \
    F(ELU, 2, -9, 9, 5, x > 0 ? x : y * expm1l(x))                                                 \
    F(SWIGLU, 2, -9, 9, 7, x *sigmoid_of(x) * y)                                                   \
    F(ADD_RELU, 2, -9, 9, 1, x + y > 0 ? x + y : 0)                                                \
    F(MUL_RELU, 2, -9, 9, 1, x *y > 0 ? x * y : 0)                                                 \
    F(WHERE, 3, -9, 9, 0, x != 0 ? y : z)                                                          \
    F(CLAMP, 3, -9, 9, 0, smaller_of(greater_of(x, y), z))

#define DEFINE(code, operands, low, high, bound, value) REFERENCE(code, value)
FORMULAS(DEFINE)
REFERENCE(AFFINE, x *y + z)

typedef struct Formula {
    const char *name;
    MapOp op;
    int operands;
    double low, high, bound;
    Reference expect;
} Formula;

#define ROW(code, operands, low, high, bound, value)                                               \
    {#code, MAP_##code, operands, low, high, bound, expect_##code},
static const Formula formulas[] = {FORMULAS(ROW){"AFFINE", MAP_AFFINE, 3, 0, 9, 2, expect_AFFINE}};
enum { FORMULA_COUNT = sizeof formulas / sizeof *formulas };

static KernelCall map_call(MapOp op, DType compute, const TensorView *out) {
    KernelCall call = {.kernel = KERNEL_MAP, .n_outputs = 1, .outputs = {out}, .op_name = "test"};
    call.options.compute = compute;
    call.options.n_steps = 1;
    call.options.steps[0] = (MapStep){(uint16_t)op, 0, 1, 2};
    return call;
}

static void run_map(MapOp op, DType compute, Array *out, Array *inputs, int n_inputs) {
    KernelCall call = map_call(op, compute, array_view(out));
    call.n_inputs = n_inputs;
    for (int k = 0; k < n_inputs; k++) call.inputs[k].view = array_view(&inputs[k]);
    assert_int_equal(run_kernel(KERNEL_MAP, &call), STATUS_OK);
}

// The distance from one number of the type to the next at `value`.
static double last_place(long double value, DType dtype) {
    int exponent;
    frexpl(value, &exponent);
    int bits = dtype == DTYPE_FLOAT32 ? 24 : 53, least = dtype == DTYPE_FLOAT32 ? -149 : -1074;
    return ldexp(1, exponent - bits > least ? exponent - bits : least);
}

static void check_formula(const Formula *formula, DType dtype) {
    Array in[3], out;
    const int64_t dims[1] = {COUNT};
    for (int k = 0; k < formula->operands; k++) {
        array_make(&in[k], dtype, LAYOUT_PLAIN, 1, dims);
        double middle = (formula->low + formula->high) / 2, half = formula->high - middle;
        for (int64_t i = 0; i < COUNT; i++)
            array_set(&in[k], i, middle + half * array_random_real());
        for (int64_t i = 0; i < COUNT && formula->low < 0; i += 7 + k) array_set(&in[k], i, k);
    }
    array_make(&out, dtype, LAYOUT_PLAIN, 1, dims);
    run_map(formula->op, dtype, &out, in, formula->operands);
    for (int64_t i = 0; i < COUNT; i++) {
        double x[3] = {0};
        for (int k = 0; k < formula->operands; k++) x[k] = array_get(&in[k], i);
        long double expected = formula->expect(x[0], x[1], x[2]);
        double got = array_get(&out, i);
        if (expected != expected ? got != got : got == (double)expected) continue;
        double error = (double)fabsl(got - expected) / last_place(expected, dtype);
        if (!(error <= formula->bound))
            fail_msg("%s of %s: (%.17g, %.17g, %.17g) gives %.17g, expected %.17Lg: %.1f units",
                     formula->name, dtype_name(dtype), x[0], x[1], x[2], got, expected, error);
    }
    for (int k = 0; k < formula->operands; k++) array_free(&in[k]);
    array_free(&out);
}

static void test_every_formula_in_float32(void **state) {
    (void)state;
    for (int i = 0; i < FORMULA_COUNT; i++) check_formula(&formulas[i], DTYPE_FLOAT32);
}

static void test_every_formula_in_float64(void **state) {
    (void)state;
    for (int i = 0; i < FORMULA_COUNT; i++) check_formula(&formulas[i], DTYPE_FLOAT64);
}

static const int64_t whole_cases[] = {
    INT64_MIN, INT64_MIN + 1, INT64_MAX, -7, -3, -2, -1, 0, 1, 2, 3, 7, 12, 63, 64, 1000003};
enum { WHOLE_CASES = sizeof whole_cases / sizeof *whole_cases };

typedef __int128 Big;

static Big power_of(Big base, int64_t exponent) {
    uint64_t power = 1;
    for (int64_t i = 0; i < exponent; i++) power *= (uint64_t)(int64_t)base;
    return (int64_t)power;
}

static Big divisor_of(Big a, Big b) {
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b != 0) {
        Big rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// The exact result, before it wraps.
static Big expect_whole(MapOp op, Big x, Big y) {
    Big quotient = y == 0 ? 0 : x / y, rest = y == 0 ? 0 : x % y;
    bool inexact = rest != 0 && (rest < 0) != (y < 0);
    switch (op) {
    case MAP_ADD: return x + y;
    case MAP_SUB: return x - y;
    case MAP_MUL: return x * y;
    case MAP_DIV: return quotient;
    case MAP_REM: return rest;
    case MAP_FLOOR_DIV: return quotient - inexact;
    case MAP_MOD: return inexact ? rest + y : rest;
    case MAP_MIN: return x < y ? x : y;
    case MAP_MAX: return x > y ? x : y;
    case MAP_BIT_AND: return x & y;
    case MAP_BIT_OR: return x | y;
    case MAP_BIT_XOR: return x ^ y;
    case MAP_BIT_NOT: return ~x;
    case MAP_NEG: return -x;
    case MAP_ABS: return x < 0 ? -x : x;
    case MAP_SIGN: return (x > 0) - (x < 0);
    case MAP_SQUARE: return x * x;
    case MAP_ROUND:
    case MAP_COPY: return x;
    case MAP_ISFINITE: return 1;
    case MAP_ISNAN: return 0;
    case MAP_LOGICAL_NOT: return x == 0;
    case MAP_SHIFT_LEFT: return y < 0 || y > 63 ? 0 : (Big)((uint64_t)(int64_t)x << y);
    case MAP_SHIFT_RIGHT: return x >> (y < 0 || y > 63 ? 63 : y);
    case MAP_GCD: return divisor_of(x, y);
    case MAP_LT: return x < y;
    case MAP_GE: return x >= y;
    case MAP_RELU: return x > 0 ? x : 0;
    case MAP_POW:
        if (y >= 0) return power_of(x, (int64_t)y);
        return x == 1 ? 1 : (x == -1 ? (y % 2 == 0 ? 1 : -1) : 0);
    default: fail_msg("no reference"); return 0;
    }
}

static void test_whole_numbers(void **state) {
    (void)state;
    static const MapOp ops[] = {MAP_ADD,        MAP_SUB,         MAP_MUL,     MAP_DIV,  MAP_REM,
                                MAP_FLOOR_DIV,  MAP_MOD,         MAP_MIN,     MAP_MAX,  MAP_BIT_AND,
                                MAP_BIT_OR,     MAP_BIT_XOR,     MAP_BIT_NOT, MAP_NEG,  MAP_ABS,
                                MAP_SIGN,       MAP_SQUARE,      MAP_ROUND,   MAP_COPY, MAP_ISNAN,
                                MAP_ISFINITE,   MAP_LOGICAL_NOT, MAP_LT,      MAP_GE,   MAP_RELU,
                                MAP_SHIFT_LEFT, MAP_SHIFT_RIGHT, MAP_GCD,     MAP_POW};
    const int64_t dims[1] = {WHOLE_CASES * WHOLE_CASES};
    Array in[2], out;
    for (int k = 0; k < 2; k++) array_make(&in[k], DTYPE_INT64, LAYOUT_PLAIN, 1, dims);
    array_make(&out, DTYPE_INT64, LAYOUT_PLAIN, 1, dims);
    int64_t *x = in[0].buffer.handle, *y = in[1].buffer.handle, *got = out.buffer.handle;
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        for (int i = 0; i < dims[0]; i++) {
            x[i] = whole_cases[i / WHOLE_CASES];
            y[i] = whole_cases[i % WHOLE_CASES];
            // A reference by repeated multiplication has small exponents only.
            if (ops[o] == MAP_POW && y[i] > 1000) y[i] = 1000;
        }
        bool one = ops[o] == MAP_BIT_NOT || ops[o] < MAP_EXP;
        run_map(ops[o], DTYPE_INT64, &out, in, one ? 1 : 2);
        for (int i = 0; i < dims[0]; i++) {
            int64_t expected = (int64_t)expect_whole(ops[o], x[i], y[i]);
            if (got[i] != expected)
                fail_msg("op %d of %lld, %lld gives %lld, expected %lld", ops[o], (long long)x[i],
                         (long long)y[i], (long long)got[i], (long long)expected);
        }
    }
    for (int k = 0; k < 2; k++) array_free(&in[k]);
    array_free(&out);
}

// NaN equals NaN, and zeros differ in sign, unless `expected` is an ordinary number: then 4 units.
static void check_edge(MapOp op, DType dtype, double x, double y, double z, double expected) {
    const int64_t dims[1] = {3};
    Array in[3], out;
    const double values[3] = {x, y, z};
    for (int k = 0; k < 3; k++) {
        array_make(&in[k], dtype, LAYOUT_PLAIN, 1, dims);
        for (int i = 0; i < 3; i++) array_set(&in[k], i, values[k]);
    }
    array_make(&out, dtype, LAYOUT_PLAIN, 1, dims);
    run_map(op, dtype, &out, in, 3);
    for (int i = 0; i < 3; i++) {
        double got = array_get(&out, i);
        bool same = expected != expected ? got != got : got == expected;
        if (!same && isfinite(expected) && isfinite(got))
            same = fabs(got - expected) <= 4 * last_place(expected, dtype);
        if (!same)
            fail_msg("op %d of %s (%g, %g, %g) gives %.9g, expected %.9g", op, dtype_name(dtype), x,
                     y, z, got, expected);
    }
    for (int k = 0; k < 3; k++) array_free(&in[k]);
    array_free(&out);
}

static void test_edges(void **state) {
    (void)state;
    static const struct {
        MapOp op;
        double x, y, z, expected;
    } edges[] = {
        {MAP_MAX, NAN, 1, 0, NAN},
        {MAP_MAX, 1, NAN, 0, NAN},
        {MAP_MIN, NAN, 1, 0, NAN},
        {MAP_MIN, 1, NAN, 0, NAN},
        {MAP_MAX, -INFINITY, 2, 0, 2},
        {MAP_RELU, NAN, 0, 0, NAN},
        {MAP_RELU, -INFINITY, 0, 0, 0},
        {MAP_RELU, INFINITY, 0, 0, INFINITY},
        {MAP_CLAMP, NAN, 0, 1, NAN},
        {MAP_CLAMP, INFINITY, 0, 1, 1},
        {MAP_CLAMP, 5, 3, 2, 2},
        {MAP_SIGN, NAN, 0, 0, NAN},
        {MAP_EXP, INFINITY, 0, 0, INFINITY},
        {MAP_EXP, -INFINITY, 0, 0, 0},
        {MAP_EXP, 1e5, 0, 0, INFINITY},
        {MAP_EXP, -1e5, 0, 0, 0},
        {MAP_EXP, NAN, 0, 0, NAN},
        {MAP_EXP, 0, 0, 0, 1},
        {MAP_LOG, 0, 0, 0, -INFINITY},
        {MAP_LOG, -1, 0, 0, NAN},
        {MAP_LOG, INFINITY, 0, 0, INFINITY},
        {MAP_LOG, 1, 0, 0, 0},
        {MAP_LOG1P, -1, 0, 0, -INFINITY},
        {MAP_SQRT, -1, 0, 0, NAN},
        {MAP_SQRT, INFINITY, 0, 0, INFINITY},
        {MAP_RSQRT, 0, 0, 0, INFINITY},
        {MAP_SIN, INFINITY, 0, 0, NAN},
        {MAP_TANH, INFINITY, 0, 0, 1},
        {MAP_TANH, -1e30, 0, 0, -1},
        {MAP_ERF, 1e30, 0, 0, 1},
        {MAP_SIGMOID, -INFINITY, 0, 0, 0},
        {MAP_SIGMOID, INFINITY, 0, 0, 1},
        {MAP_SIGMOID, NAN, 0, 0, NAN},
        {MAP_SIGMOID, 1e30, 0, 0, 1},
        {MAP_SOFTPLUS, 1e30, 0, 0, 1e30},
        {MAP_SOFTPLUS, -1e30, 0, 0, 0},
        {MAP_LOG_SIGMOID, -1e30, 0, 0, -1e30},
        {MAP_LOG_SIGMOID, 1e30, 0, 0, 0},
        {MAP_SILU, -1e30, 0, 0, 0},
        {MAP_SILU, 1e30, 0, 0, 1e30},
        {MAP_GELU, -1e5, 0, 0, 0},
        {MAP_GELU, 1e5, 0, 0, 1e5},
        {MAP_GELU_EXACT, -1e5, 0, 0, 0},
        {MAP_GELU_EXACT, 1e5, 0, 0, 1e5},
        {MAP_MISH, 1e30, 0, 0, 1e30},
        {MAP_MISH, -1e30, 0, 0, 0},
        {MAP_POW, 0, 0, 0, 1},
        {MAP_POW, -2, 3, 0, -8},
        {MAP_POW, -2, 0.5, 0, NAN},
        {MAP_POW, 0, -1, 0, INFINITY},
        {MAP_DIV, 1, 0, 0, INFINITY},
        {MAP_DIV, 0, 0, 0, NAN},
        {MAP_REM, -7, 3, 0, -1},
        {MAP_MOD, -7, 3, 0, 2},
        {MAP_MOD, 7, -3, 0, -2},
        {MAP_FLOOR_DIV, -7, 2, 0, -4},
        {MAP_FLOOR_DIV, 1, 0, 0, INFINITY},
        {MAP_MOD, 1, 0, 0, NAN},
        {MAP_ROUND, 0.5, 0, 0, 0},
        {MAP_ROUND, 2.5, 0, 0, 2},
        {MAP_ROUND, -1.5, 0, 0, -2},
        {MAP_ISNAN, NAN, 0, 0, 1},
        {MAP_ISINF, -INFINITY, 0, 0, 1},
        {MAP_ISFINITE, NAN, 0, 0, 0},
        {MAP_EQ, NAN, NAN, 0, 0},
        {MAP_NE, NAN, NAN, 0, 1},
        {MAP_APPROX, INFINITY, INFINITY, 0, 1},
        {MAP_APPROX, 5, INFINITY, 0, 0},
        {MAP_APPROX, 1, 1.000001, 0, 1},
        {MAP_WHERE, NAN, 1, 2, 1},
        {MAP_WHERE, 1, 3, NAN, 3},
        {MAP_ELU, -INFINITY, 2, 0, -2},
        {MAP_ELU, NAN, 1, 0, NAN},
        {MAP_ATAN2, 0, -1, 0, 3.14159265358979323846},
    };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        check_edge(edges[i].op, DTYPE_FLOAT64, edges[i].x, edges[i].y, edges[i].z,
                   edges[i].expected);
        check_edge(edges[i].op, DTYPE_FLOAT32, edges[i].x, edges[i].y, edges[i].z,
                   (double)(float)edges[i].expected);
    }
    check_edge(MAP_EXP, DTYPE_FLOAT32, -100, 0, 0, exp(-100)); // a subnormal float32
    check_edge(MAP_SIGMOID, DTYPE_FLOAT32, -100, 0, 0, exp(-100));
    check_edge(MAP_LOG, DTYPE_FLOAT32, 1e-40, 0, 0, log((double)1e-40f));
}

static const DType plain_dtypes[] = {DTYPE_BOOL,    DTYPE_UINT8,  DTYPE_INT8,    DTYPE_INT16,
                                     DTYPE_INT32,   DTYPE_INT64,  DTYPE_FLOAT16, DTYPE_BFLOAT16,
                                     DTYPE_FLOAT32, DTYPE_FLOAT64};
enum { PLAIN_DTYPES = sizeof plain_dtypes / sizeof *plain_dtypes };

static void check_sum(DType in_dtype, DType out_dtype, Layout layout, int rank,
                      const int64_t *dims) {
    DType compute = !dtype_is_float(in_dtype)   ? DTYPE_INT64
                    : in_dtype == DTYPE_FLOAT64 ? DTYPE_FLOAT64
                                                : DTYPE_FLOAT32;
    Array in[2], out;
    array_make(&in[0], in_dtype, layout, rank, dims);
    array_make(&in[1], in_dtype, (Layout)((layout + 1) % LAYOUT_COUNT), rank, dims);
    array_make(&out, out_dtype, (Layout)((layout + 2) % LAYOUT_COUNT), rank, dims);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < array_count(&in[k].view); i++)
            array_set(&in[k], i, (double)(array_random() % (in_dtype == DTYPE_BOOL ? 2 : 50)));
    run_map(MAP_ADD, compute, &out, in, 2);
    for (int64_t i = 0; i < array_count(&out.view); i++) {
        double expected = array_get(&in[0], i) + array_get(&in[1], i);
        if (out_dtype == DTYPE_BOOL) expected = expected != 0;
        assert_true(array_get(&out, i) == expected);
    }
    for (int k = 0; k < 2; k++) array_free(&in[k]);
    array_free(&out);
}

static void test_dtypes_and_layouts(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {{1, 1, 1, 1}, {2, 3, 5, 7},    {1, 1, 33, 65},
                                        {0, 3, 4, 2}, {1, 1, 1, 2300}, {3, 1, 2, 16}};
    for (int from = 0; from < PLAIN_DTYPES; from++)
        for (int to = 0; to < PLAIN_DTYPES; to++)
            for (int layout = 0; layout < LAYOUT_COUNT; layout++)
                for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                    check_sum(plain_dtypes[from], plain_dtypes[to], (Layout)layout, 4, shapes[s]);
    for (int from = 0; from < PLAIN_DTYPES; from++)
        check_sum(plain_dtypes[from], plain_dtypes[from], LAYOUT_PLAIN, 0, NULL);
}

typedef struct IntegerFormula {
    MapOp op;
    int arity;
} IntegerFormula;
static const IntegerFormula integer_formulas[] = {
#define MAP1(code, ...) {MAP_##code, 1},
#define MAP2(code, ...) {MAP_##code, 2},
#define MAP3(code, ...) {MAP_##code, 3},
#define MAP1F(...)
#define MAP2F(...)
#define MAP1I MAP1
#define MAP2I MAP2
#include "catalog/maps.def"
#undef MAP1
#undef MAP2
#undef MAP3
#undef MAP1F
#undef MAP2F
#undef MAP1I
#undef MAP2I
};

static const int64_t integer_edges[] = {
    0,         1,         -1,        2,         -2,         7,          -7,           31,
    32,        33,        63,        64,        100,        INT8_MIN,   INT8_MAX,     UINT8_MAX,
    INT16_MIN, INT16_MAX, INT32_MIN, INT32_MAX, 1000000007, -987654321, INT32_MIN + 1};
enum { INTEGER_EDGES = sizeof integer_edges / sizeof *integer_edges };

// `formula` of the first operands as they are stored, or the last of them as the number `scalar`.
static void run_integers(const IntegerFormula *formula, Array *out, Array *in,
                         const int64_t *scalar) {
    KernelCall call = map_call(formula->op, DTYPE_INT64, array_view(out));
    call.n_inputs = formula->arity;
    for (int k = 0; k < formula->arity; k++) call.inputs[k].view = array_view(&in[k]);
    if (scalar) {
        call.inputs[formula->arity - 1].view = NULL;
        call.inputs[formula->arity - 1].scalar = (Scalar){.dtype = DTYPE_INT64, .as.i = *scalar};
    }
    assert_int_equal(run_kernel(KERNEL_MAP, &call), STATUS_OK);
}

// What is stored as a bool: 1 or 0.
static bool is_test(MapOp op) {
    static const MapOp tests[] = {MAP_EQ, MAP_NE,          MAP_LT,         MAP_LE,         MAP_GT,
                                  MAP_GE, MAP_LOGICAL_AND, MAP_LOGICAL_OR, MAP_LOGICAL_NOT};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (tests[i] == op) return true;
    return false;
}

// Integers of 32 bits or less give what the same numbers give as int64s before they wrap.
static void check_narrow(const IntegerFormula *formula, DType from, DType to) {
    const int64_t dims[1] = {INTEGER_EDGES * INTEGER_EDGES};
    Array narrow[3], wide[3], got, expected;
    for (int k = 0; k < 3; k++) {
        array_make(&narrow[k], from, LAYOUT_PLAIN, 1, dims);
        array_make(&wide[k], DTYPE_INT64, LAYOUT_PLAIN, 1, dims);
        for (int64_t i = 0; i < dims[0]; i++) {
            int64_t at = k == 0   ? i / INTEGER_EDGES
                         : k == 1 ? i % INTEGER_EDGES
                                  : i * 5 % INTEGER_EDGES;
            int64_t bits = 8 * (int64_t)dtype_size(from);
            bool positive = from == DTYPE_BOOL || from == DTYPE_UINT8;
            int64_t high = from == DTYPE_BOOL ? 1 : (INT64_C(1) << (bits - !positive)) - 1;
            int64_t low = positive ? 0 : -high - 1, value = integer_edges[at];
            value = value < low ? low : value > high ? high : value;
            array_set(&narrow[k], i, (double)value);
            array_set(&wide[k], i, (double)value);
        }
    }
    array_make(&got, to, LAYOUT_PLAIN, 1, dims);
    array_make(&expected, to, LAYOUT_PLAIN, 1, dims);
    static const int64_t scalars[] = {0, -1, 3, 40, INT64_C(3000000000), INT64_C(-5000000001)};
    for (int s = -1; s < (formula->arity == 1 ? 0 : 6); s++) {
        const int64_t *scalar = s < 0 ? NULL : &scalars[s];
        run_integers(formula, &got, narrow, scalar);
        run_integers(formula, &expected, wide, scalar);
        for (int64_t i = 0; i < dims[0]; i++)
            if (array_get(&got, i) != array_get(&expected, i))
                fail_msg("formula %d of %s to %s, scalar %d: element %d is %g, not %g", formula->op,
                         dtype_name(from), dtype_name(to), s, (int)i, array_get(&got, i),
                         array_get(&expected, i));
    }
    for (int k = 0; k < 3; k++) {
        array_free(&narrow[k]);
        array_free(&wide[k]);
    }
    array_free(&got);
    array_free(&expected);
}

static void test_narrow_integers(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_BOOL, DTYPE_UINT8, DTYPE_INT8, DTYPE_INT16, DTYPE_INT32};
    for (size_t f = 0; f < sizeof integer_formulas / sizeof *integer_formulas; f++) {
        const IntegerFormula *formula = &integer_formulas[f];
        // Two formulas in one, of which the first wraps before the second.
        if (formula->op == MAP_ADD_RELU || formula->op == MAP_MUL_RELU) continue;
        for (int from = 0; from < 5; from++)
            for (int to = 0; to < 5; to++)
                if (dtypes[to] == DTYPE_BOOL ? is_test(formula->op)
                                             : from == to || dtypes[to] == DTYPE_INT32)
                    check_narrow(formula, dtypes[from], dtypes[to]);
    }
}

static void test_broadcast_and_scalars(void **state) {
    (void)state;
    const int64_t dims[2] = {37, 41};
    Array in[3], out;
    for (int k = 0; k < 3; k++) {
        array_make(&in[k], k == 2 ? DTYPE_FLOAT16 : DTYPE_FLOAT32, LAYOUT_PLAIN, 2, dims);
        array_fill_random(&in[k]);
    }
    array_make(&out, DTYPE_FLOAT32, LAYOUT_PLAIN, 2, dims);
    // x [37, 41] * row [1, 41] + column [37, 1], and every operand in turn a number.
    in[1].view.strides[0] = 0;
    in[2].view.strides[1] = 0;
    for (int numbers = 0; numbers < 8; numbers++) {
        KernelCall call = map_call(MAP_AFFINE, DTYPE_FLOAT32, array_view(&out));
        call.n_inputs = 3;
        for (int k = 0; k < 3; k++) {
            call.inputs[k].view = numbers >> k & 1 ? NULL : array_view(&in[k]);
            call.inputs[k].scalar = k == 1 ? (Scalar){.dtype = DTYPE_INT64, .as.i = 3}
                                           : (Scalar){.dtype = DTYPE_FLOAT64, .as.f = 0.25 + k};
        }
        assert_int_equal(run_kernel(KERNEL_MAP, &call), STATUS_OK);
        for (int64_t i = 0; i < 37 * 41; i++) {
            double x[3];
            for (int k = 0; k < 3; k++)
                x[k] = numbers >> k & 1 ? (k == 1 ? 3 : 0.25 + k) : array_get(&in[k], i);
            assert_true(fabs(array_get(&out, i) - (x[0] * x[1] + x[2])) <= 1e-6);
        }
    }
    for (int k = 0; k < 3; k++) array_free(&in[k]);
    array_free(&out);
}

// out = relu((x - y) * 2) + x, written over x; every pairing of storage types, several pieces long.
static void test_programs_in_place(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_FLOAT16, DTYPE_INT32};
    const int64_t dims[1] = {40000};
    for (int d = 0; d < 4; d++) {
        Array in[2];
        DType dtype = dtypes[d];
        for (int k = 0; k < 2; k++) {
            array_make(&in[k], dtype, LAYOUT_PLAIN, 1, dims);
            for (int64_t i = 0; i < dims[0]; i++)
                array_set(&in[k], i, (double)(array_random() % 100) - 50);
        }
        double *before = malloc((size_t)dims[0] * sizeof *before);
        for (int64_t i = 0; i < dims[0]; i++) before[i] = array_get(&in[0], i);
        DType compute = dtype == DTYPE_INT32     ? DTYPE_INT64
                        : dtype == DTYPE_FLOAT64 ? DTYPE_FLOAT64
                                                 : DTYPE_FLOAT32;
        KernelCall call = map_call(MAP_SUB, compute, array_view(&in[0]));
        call.n_inputs = 3;
        call.inputs[0].view = array_view(&in[0]);
        call.inputs[1].view = array_view(&in[1]);
        call.inputs[2].scalar = (Scalar){.dtype = DTYPE_INT64, .as.i = 2};
        call.options.n_steps = 4;
        call.options.steps[1] = (MapStep){MAP_MUL, 3, 2, 0};
        call.options.steps[2] = (MapStep){MAP_RELU, 4, 0, 0};
        call.options.steps[3] = (MapStep){MAP_ADD, 5, 0, 0};
        assert_int_equal(run_kernel(KERNEL_MAP, &call), STATUS_OK);
        for (int64_t i = 0; i < dims[0]; i++) {
            double difference = (before[i] - array_get(&in[1], i)) * 2;
            assert_true(array_get(&in[0], i) == (difference > 0 ? difference : 0) + before[i]);
        }
        free(before);
        for (int k = 0; k < 2; k++) array_free(&in[k]);
    }
}

// A function of one element has one value, wherever the element stands.
static void test_position_does_not_matter(void **state) {
    (void)state;
    const int64_t dims[1] = {COUNT};
    static const MapOp ops[] = {MAP_EXP, MAP_TANH, MAP_LOG, MAP_SIGMOID, MAP_GELU, MAP_SIN};
    Array in, all, part;
    array_make(&in, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, dims);
    array_fill_random(&in);
    array_make(&all, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, dims);
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        run_map(ops[o], DTYPE_FLOAT32, &all, &in, 1);
        for (int64_t first = 0; first < 40; first++) {
            const int64_t few[1] = {1 + first * 2};
            Array piece = in;
            piece.view.offset += (size_t)first * 4;
            piece.view.dims[0] = few[0];
            array_make(&part, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, few);
            run_map(ops[o], DTYPE_FLOAT32, &part, &piece, 1);
            for (int64_t i = 0; i < few[0]; i++) {
                float whole = (float)array_get(&all, first + i), alone = (float)array_get(&part, i);
                assert_memory_equal(&whole, &alone, sizeof whole);
            }
            array_free(&part);
        }
    }
    array_free(&in);
    array_free(&all);
}

// Large enough to be split among threads and, in float32, to be written past the caches.
static void test_large(void **state) {
    (void)state;
    const int64_t dims[1] = {(17 << 20) + 5};
    Array in, out;
    array_make(&in, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, dims);
    array_make(&out, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, dims);
    float *x = in.buffer.handle;
    for (int64_t i = 0; i < dims[0]; i++) x[i] = (float)(i % 1000);
    // The buffer's memory is the device's, aligned: here an aligned part of ours.
    size_t before = (64 - (uintptr_t)out.buffer.handle % 64) % 64;
    out.view.offset = before;
    out.view.dims[0] = in.view.dims[0] = dims[0] - 16;
    run_map(MAP_SQUARE, DTYPE_FLOAT32, &out, &in, 1);
    const float *got = (const float *)(const void *)((char *)out.buffer.handle + before);
    for (int64_t i = 0; i < dims[0] - 16; i++)
        if (got[i] != x[i] * x[i]) fail_msg("element %lld is %g", (long long)i, (double)got[i]);
    array_free(&in);
    array_free(&out);
}

static void test_refusals(void **state) {
    (void)state;
    const int64_t dims[1] = {4};
    Array in[2], out;
    for (int k = 0; k < 2; k++) {
        array_make(&in[k], DTYPE_INT32, LAYOUT_PLAIN, 1, dims);
        array_fill_random(&in[k]);
    }
    array_make(&out, DTYPE_INT32, LAYOUT_PLAIN, 1, dims);
    KernelCall call = map_call(MAP_EXP, DTYPE_INT64, array_view(&out));
    call.n_inputs = 1;
    call.inputs[0].view = array_view(&in[0]);
    assert_int_equal(run_kernel(KERNEL_MAP, &call), STATUS_DTYPE);
    assert_string_equal(error_current()->message, "test: EXP works on float types, not on int64");
    call.options.compute = DTYPE_FLOAT32;
    call.options.steps[0].op = MAP_BIT_NOT;
    assert_int_equal(run_kernel(KERNEL_MAP, &call), STATUS_DTYPE);
    assert_string_equal(error_current()->message,
                        "test: BIT_NOT works on integers, not on float32");
    for (int k = 0; k < 2; k++) array_free(&in[k]);
    array_free(&out);
}

static int run_suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_formula_in_float32),
        cmocka_unit_test(test_every_formula_in_float64),
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_dtypes_and_layouts),
        cmocka_unit_test(test_narrow_integers),
        cmocka_unit_test(test_broadcast_and_scalars),
        cmocka_unit_test(test_programs_in_place),
        cmocka_unit_test(test_position_does_not_matter),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(run_suite);
}
