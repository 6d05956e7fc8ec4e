// The body of fold_f32.c, fold_f64.c and fold_i64.c: folds of rows and of columns over `real`. The
// includer defines real, wide (what sums are made in), WIDE (its member of Wide), NAME, LOWEST and
// HIGHEST, NOT_A_NUMBER, IS_NAN, IS_FLOAT, and the functions of <math.h> for real.

#if defined(IS_FLOAT) && !defined(DEVICE_CPU_SIMD_VECTOR_MATH_H)
#error "vector_math.h comes first: without it the functions are computed one number at a time"
#endif

#define UNUSED __attribute__((unused))
#define SIMD(clause) SIMD_(omp simd clause)
#define SIMD_(text) _Pragma(#text)

// The words of catalog/reductions.def. Addends are made of x, a number, and p, the parameter.
#define C(v) ((wide)(v))
#define abs(v) ((v) < 0 ? -(v) : (v))
#define distance(v, parameter) ((v) - (parameter))
#define exp_below(v, parameter) ((wide)exp((real)(v) - (real)(parameter)))
static inline wide squared(wide v) {
    return v * v;
}

// A row of columns is taken in by their states by way of `one`; of four rows the states are read
// and written once.
#define TAKE(further, one)                                                                         \
    {                                                                                              \
        wide x = (wide)in[further * stride + i];                                                   \
        one;                                                                                       \
    }
#define COLUMNS_OF(...)                                                                            \
    INDEPENDENT                                                                                    \
    for (int64_t i = 0; i < count; i++) {                                                          \
        wide p UNUSED = parameters[i].WIDE, state = states[i].WIDE;                                \
        __VA_ARGS__                                                                                \
        states[i].WIDE = state;                                                                    \
    }
#define COLUMNS(code, one)                                                                         \
    static void columns_##code(Wide *states, const FoldLines *lines, const Wide *parameters) {     \
        const real *in = lines->numbers;                                                           \
        int64_t left = lines->rows, stride = lines->stride, count = lines->count;                  \
        for (; left >= 4; left -= 4, in += 4 * stride)                                             \
            COLUMNS_OF(TAKE(0, one) TAKE(1, one) TAKE(2, one) TAKE(3, one))                        \
        for (; left > 0; left--, in += stride) COLUMNS_OF(TAKE(0, one))                            \
    }

// A fold that combines addends by an operator.
#define LOOPS(code, operator, neutral, addend)                                                     \
    static void row_##code(Wide *state, const void *numbers, int64_t count, Wide parameter) {      \
        const real *in = numbers;                                                                  \
        wide p UNUSED = parameter.WIDE, all = neutral;                                             \
        SIMD(reduction(operator: all))                                                             \
        for (int64_t i = 0; i < count; i++) {                                                      \
            wide x = (wide)in[i];                                                                  \
            all = all operator(addend);                                                            \
        }                                                                                          \
        state->WIDE = state->WIDE operator all;                                                    \
    }                                                                                              \
    COLUMNS(code, state = state operator(addend))
#define LOOPS_SUM(code, addend) LOOPS(code, +, 0, addend)
#define LOOPS_POSITIVE LOOPS_SUM
#define LOOPS_PRODUCT(code, addend) LOOPS(code, *, 1, addend)

// OpenMP's own max and min may begin at the largest finite number: these begin at infinity.
#pragma omp declare reduction(largest:real                                                         \
                              : omp_out = omp_in > omp_out ? omp_in : omp_out)                     \
    initializer(omp_priv = LOWEST)
#pragma omp declare reduction(smallest:real                                                        \
                              : omp_out = omp_in < omp_out ? omp_in : omp_out)                     \
    initializer(omp_priv = HIGHEST)

// The extreme of the addends that are not NaN, and whether any is: a NaN wins.
#define EXTREME(code, better, word, worst, addend)                                                 \
    static void row_##code(Wide *state, const void *numbers, int64_t count, Wide parameter) {      \
        const real *in = numbers;                                                                  \
        wide p UNUSED = parameter.WIDE;                                                            \
        real extreme = worst;                                                                      \
        int64_t nans = 0;                                                                          \
        SIMD(reduction(word : extreme) reduction(+ : nans))                                        \
        for (int64_t i = 0; i < count; i++) {                                                      \
            wide x = (wide)in[i];                                                                  \
            real value = (real)(addend);                                                           \
            extreme = value better extreme ? value : extreme;                                      \
            nans += IS_NAN(value);                                                                 \
        }                                                                                          \
        if (nans > 0)                                                                              \
            state->WIDE = NOT_A_NUMBER;                                                            \
        else if ((wide)extreme better state->WIDE)                                                 \
            state->WIDE = (wide)extreme;                                                           \
    }                                                                                              \
    COLUMNS(code, state = state better(addend) || IS_NAN(state) ? state : (addend))
#define LOOPS_LARGEST(code, addend) EXTREME(code, >, largest, LOWEST, addend)
#define LOOPS_SMALLEST(code, addend) EXTREME(code, <, smallest, HIGHEST, addend)

#ifndef IS_FLOAT
#define FOLDF(code, kind, addend)
#endif
#define FOLD(code, kind, addend) LOOPS_##kind(code, addend)
#include "catalog/reductions.def"

static int64_t find(const void *numbers, int64_t count, Wide value) {
    enum { FIND_BLOCK = 128 / sizeof(real) }; // looked through without a branch
    const real *in = numbers, wanted = (real)value.WIDE;
    int64_t i = 0;
    for (bool found = false; !found && i + FIND_BLOCK <= count; i += found ? 0 : FIND_BLOCK) {
        int hits = 0;
        SIMD(reduction(| : hits))
        for (int lane = 0; lane < FIND_BLOCK; lane++) hits |= in[i + lane] == wanted;
        found = hits != 0;
    }
    if (IS_NAN(wanted)) i = 0;
    for (; i < count; i++)
        if (in[i] == wanted || (IS_NAN(wanted) && IS_NAN(in[i]))) return i;
    return -1;
}

#ifdef IS_FLOAT
enum { BLOCK = 64 / sizeof(real) };

// Masked scores lie far below where exp is a normal number, and the vector routine would take the
// long way round for each of them. Read at run time: the compiler would see through a constant, and
// compute exp of what was not clamped.
static const volatile real exp_lowest = EXP_LOWEST;

// exp of what is not above 0; 0 near the smallest normal number.
static inline real exp_share(real x, real lowest) {
    real e = exp(x < lowest ? lowest : x);
    return e < EXP_SMALLEST ? 0 : e;
}

static double exp_row(void *to, const void *from, int64_t count, double max) {
    real *out = to;
    const real *in = from;
    const real shift = (real)max, lowest = exp_lowest;
    int64_t rest = count % BLOCK, whole = count - rest;
    double sum = 0;
    SIMD(reduction(+ : sum))
    for (int64_t i = 0; i < whole; i++) {
        real e = exp_share(in[i] - shift, lowest);
        out[i] = e;
        sum += (double)e;
    }
    if (rest == 0) return sum;
    real padded[BLOCK]; // one vector more: as cheap as a single number, and the same value
    for (int64_t i = 0; i < BLOCK; i++) padded[i] = shift;
    for (int64_t i = 0; i < rest; i++) padded[i] = in[whole + i];
    INDEPENDENT
    for (int64_t i = 0; i < BLOCK; i++) padded[i] = exp_share(padded[i] - shift, lowest);
    for (int64_t i = 0; i < rest; i++) {
        out[whole + i] = padded[i];
        sum += (double)padded[i];
    }
    return sum;
}

static void scale_row(void *to, const void *from, int64_t count, double shift, double factor) {
    real *out = to;
    const real *in = from;
    const real less = (real)shift, times = (real)factor;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) out[i] = (in[i] - less) * times;
}

static void affine_row(void *to, const void *from, int64_t count, const double shift_factor[2],
                       const void *const weight_bias[2]) {
    real *out = to;
    const real *in = from, *weight = weight_bias[0], *bias = weight_bias[1];
    const real less = (real)shift_factor[0], times = (real)shift_factor[1];
    if (weight && bias) {
        INDEPENDENT
        for (int64_t i = 0; i < count; i++) out[i] = (in[i] - less) * times * weight[i] + bias[i];
    } else if (weight) {
        INDEPENDENT
        for (int64_t i = 0; i < count; i++) out[i] = (in[i] - less) * times * weight[i];
    } else if (bias) {
        INDEPENDENT
        for (int64_t i = 0; i < count; i++) out[i] = (in[i] - less) * times + bias[i];
    } else {
        scale_row(to, from, count, shift_factor[0], shift_factor[1]);
    }
}
#endif

#define NEUTRAL_SUM 0
#define NEUTRAL_POSITIVE 0
#define NEUTRAL_PRODUCT 1
#define NEUTRAL_LARGEST LOWEST
#define NEUTRAL_SMALLEST HIGHEST
const FoldTable ISA(NAME) = {
#ifndef IS_FLOAT
#define FOLDF(code, kind, addend)
#endif
#define FOLD(code, kind, addend)                                                                   \
    .row[FOLD_##code] = row_##code, .columns[FOLD_##code] = columns_##code,                        \
    .identity[FOLD_##code] = {.WIDE = NEUTRAL_##kind},
#include "catalog/reductions.def"
    .find = find,
#ifdef IS_FLOAT
    .exp_row = exp_row,
    .scale_row = scale_row,
    .affine_row = affine_row,
#endif
};
