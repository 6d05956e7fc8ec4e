// The body of fold_f32.c, fold_f64.c and fold_i64.c: folds of rows and of columns over `real`. The
// includer defines real, wide (what sums are made in), WIDE (its member of Wide), NAME, LOWEST and
// HIGHEST, NOT_A_NUMBER, IS_NAN, IS_FLOAT, and the functions of <math.h> for real.

#define UNUSED __attribute__((unused))
#define SIMD(clause) SIMD_(omp simd clause)
#define SIMD_(text) _Pragma(#text)

// `value` is made of x, a number, and p, the parameter.
#define SUM(code, value)                                                                           \
    static void row_##code(Wide *state, const void *numbers, int64_t count, Wide parameter) {      \
        const real *in = numbers;                                                                  \
        wide p UNUSED = parameter.WIDE, sum = 0;                                                   \
        SIMD(reduction(+ : sum))                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                      \
            real x = in[i];                                                                        \
            sum += value;                                                                          \
        }                                                                                          \
        state->WIDE += sum;                                                                        \
    }                                                                                              \
    static void columns_##code(Wide *states, const void *numbers, int64_t count,                   \
                               const Wide *parameters) {                                           \
        const real *in = numbers;                                                                  \
        INDEPENDENT                                                                                \
        for (int64_t i = 0; i < count; i++) {                                                      \
            real x = in[i];                                                                        \
            wide p UNUSED = parameters[i].WIDE;                                                    \
            states[i].WIDE += value;                                                               \
        }                                                                                          \
    }
SUM(SUM, (wide)x)
SUM(SUM_ABS, (wide)(x < 0 ? -x : x))
SUM(SUM_SQUARE, (wide)x *(wide)x)
SUM(COUNT_NONZERO, (wide)(x != 0))
#ifdef IS_FLOAT
SUM(SUM_EXP, (wide)exp(x - (real)p))
SUM(SUM_DEVIATION, ((wide)x - p) * ((wide)x - p))
#endif

static void row_PROD(Wide *state, const void *numbers, int64_t count, Wide parameter UNUSED) {
    const real *in = numbers;
    wide product = 1;
    SIMD(reduction(* : product))
    for (int64_t i = 0; i < count; i++) product *= (wide)in[i];
    state->WIDE *= product;
}

static void columns_PROD(Wide *states, const void *numbers, int64_t count,
                         const Wide *parameters UNUSED) {
    const real *in = numbers;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) states[i].WIDE *= (wide)in[i];
}

// OpenMP's own max and min may begin at the largest finite number: these begin at infinity.
#pragma omp declare reduction(largest:real                                                         \
                              : omp_out = omp_in > omp_out ? omp_in : omp_out)                     \
    initializer(omp_priv = LOWEST)
#pragma omp declare reduction(smallest:real                                                        \
                              : omp_out = omp_in < omp_out ? omp_in : omp_out)                     \
    initializer(omp_priv = HIGHEST)

// The extreme of the numbers that are not NaN, and whether any is: a NaN wins.
#define EXTREME(code, better, word, worst)                                                         \
    static void row_##code(Wide *state, const void *numbers, int64_t count,                        \
                           Wide parameter UNUSED) {                                                \
        const real *in = numbers;                                                                  \
        real extreme = worst;                                                                      \
        int64_t nans = 0;                                                                          \
        SIMD(reduction(word : extreme) reduction(+ : nans))                                        \
        for (int64_t i = 0; i < count; i++) {                                                      \
            extreme = in[i] better extreme ? in[i] : extreme;                                      \
            nans += IS_NAN(in[i]);                                                                 \
        }                                                                                          \
        if (nans > 0)                                                                              \
            state->WIDE = NOT_A_NUMBER;                                                            \
        else if ((wide)extreme better state->WIDE)                                                 \
            state->WIDE = (wide)extreme;                                                           \
    }                                                                                              \
    static void columns_##code(Wide *states, const void *numbers, int64_t count,                   \
                               const Wide *parameters UNUSED) {                                    \
        const real *in = numbers;                                                                  \
        INDEPENDENT                                                                                \
        for (int64_t i = 0; i < count; i++) {                                                      \
            wide x = (wide)in[i], old = states[i].WIDE;                                            \
            states[i].WIDE = old better x || IS_NAN(old) ? old : x;                                \
        }                                                                                          \
    }
EXTREME(MAX, >, largest, LOWEST)
EXTREME(MIN, <, smallest, HIGHEST)

static int64_t find(const void *numbers, int64_t count, Wide value) {
    const real *in = numbers, wanted = (real)value.WIDE;
    bool nan = IS_NAN(wanted);
    for (int64_t i = 0; i < count; i++)
        if (in[i] == wanted || (nan && IS_NAN(in[i]))) return i;
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

#define FOLDS(prefix)                                                                              \
    [FOLD_SUM] = prefix##_SUM, [FOLD_SUM_ABS] = prefix##_SUM_ABS,                                  \
    [FOLD_SUM_SQUARE] = prefix##_SUM_SQUARE, [FOLD_COUNT_NONZERO] = prefix##_COUNT_NONZERO,        \
    [FOLD_PROD] = prefix##_PROD, [FOLD_MAX] = prefix##_MAX, [FOLD_MIN] = prefix##_MIN

const FoldTable ISA(NAME) = {
    .identity =
        {[FOLD_PROD] = {.WIDE = 1}, [FOLD_MAX] = {.WIDE = LOWEST}, [FOLD_MIN] = {.WIDE = HIGHEST}},
    .find = find,
#ifdef IS_FLOAT
    .row = {FOLDS(row), [FOLD_SUM_EXP] = row_SUM_EXP, [FOLD_SUM_DEVIATION] = row_SUM_DEVIATION},
    .columns = {FOLDS(columns), [FOLD_SUM_EXP] = columns_SUM_EXP,
                [FOLD_SUM_DEVIATION] = columns_SUM_DEVIATION},
    .exp_row = exp_row,
    .scale_row = scale_row,
    .affine_row = affine_row,
#else
    .row = {FOLDS(row)},
    .columns = {FOLDS(columns)},
#endif
};
