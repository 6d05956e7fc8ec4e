// What attention makes of rows of scores, forward and in its gradient, once per instruction set.
#include "device/cpu/attention_scores.h"

#include "device/cpu/simd/lanes.h"
#include "device/cpu/simd/vector_math.h"

_Static_assert(SCORE_PADDING % LANES == 0, "whole vectors of scores are read and stored");

// The larger of each two; b where a is NaN.
SIMD_INLINE Floats floats_larger(Floats a, Floats b) {
#if defined(TL_ISA_avx512)
    return (Floats)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(TL_ISA_avx2)
    return (Floats)_mm256_max_ps((__m256)a, (__m256)b);
#else
    Ints above = a > b;
    return (Floats)(((Ints)a & above) | ((Ints)b & ~above));
#endif
}

// A vector of scores times `scale`, of which `count` are left: -inf stands for what is missing.
SIMD_INLINE Floats scores_at(const float *scores, int64_t count, float scale) {
    Floats values = float_vector_at(scores) * scale;
    if (count >= LANES) return values;
    Ints lanes = {0};
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = lane;
    Ints inside = lanes < (int32_t)count;
    const Floats least = (Floats){0} - INFINITY;
    return (Floats)(((Ints)values & inside) | ((Ints)least & ~inside));
}

// The largest of the scores times `scale`, without those that are NaN; -inf of none.
SIMD_INLINE float highest_of(const float *scores, int64_t count, float scale) {
    Floats one = (Floats){0} - INFINITY, other = one; // two chains of comparisons
    int64_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        one = floats_larger(float_vector_at(scores + i) * scale, one);
        other = floats_larger(float_vector_at(scores + i + LANES) * scale, other);
    }
    for (; i < count; i += LANES) one = floats_larger(scores_at(scores + i, count - i, scale), one);
    return floats_maximum(floats_larger(one, other));
}

// exp(x) for x <= 0 within 2 ulp: x = n ln 2 + r, a polynomial for exp(r), the exponent set to n.
// Results below the smallest normal number are 0; NaN stays.
SIMD_INLINE Floats floats_exp(Floats x) {
    const float shift = 0x1.8p23f; // adding it rounds to an integer
    Ints underflow = x < -87.33654f;
    x = (Floats)((Ints)x & ~underflow);
    Floats rounded = (x * 1.44269504f + shift) - shift;
    Floats r = x - rounded * 0.693359375f;
    r = r + rounded * 2.12194440e-4f;
    Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    Ints whole = __builtin_convertvector(rounded, Ints);
    Floats power = (Floats)(((Words)whole + 127) << 23);
    return (Floats)((Ints)(p * power) & ~underflow);
}

// What is behind `count` in the last vector becomes 0.
SIMD_INLINE float exponentials(float *scores, int64_t count, float scale, float maximum) {
    float base = maximum == -INFINITY ? 0.0f : maximum;
    Floats sums = {0};
    for (int64_t i = 0; i < count; i += LANES) {
        Floats values = floats_exp(scores_at(scores + i, count - i, scale) - base);
        float_vector_to(scores + i, values);
        sums += values;
    }
    return floats_sum(sums);
}

SIMD_INLINE void clear_unseen(float *scores, int64_t seen, int64_t count) {
    for (int64_t i = (seen + LANES - 1) / LANES * LANES; i < count; i += LANES)
        float_vector_to(scores + i, (Floats){0});
}

static float weigh(float *scores, int64_t seen, int64_t count, float *maximum) {
    float highest = highest_of(scores, seen, 1);
    if (highest > *maximum) *maximum = highest;
    float sum = exponentials(scores, seen, 1, *maximum);
    clear_unseen(scores, seen, count);
    return sum;
}

// By a polynomial near 0, and elsewhere by exponentials.
SIMD_INLINE Floats floats_tanh(Floats x) {
    Floats square = x * x, size = (Floats)((Ints)x & INT32_MAX);
    Floats small =
        x +
        x * square *
            (-1.0f / 3 + square * (2.0f / 15 + square * (-17.0f / 315 + square * (62.0f / 2835))));
    Floats part = floats_exp(-2.0f * size), large = (1.0f - part) / (1.0f + part);
    Ints near = (Ints)(size < 0.25f), signs = (Ints)x & INT32_MIN;
    return (Floats)(((Ints)small & near) | (((Ints)large | signs) & ~near));
}

// Within -cap and cap; the same bits wherever a number stands.
static void cap(float *scores, int64_t count, float most) {
    for (int64_t i = 0; i < count; i += LANES) {
        Floats some = most * floats_tanh(float_vector_at(scores + i) / most);
        float_vector_to(scores + i, some);
    }
}

static void add(float *sums, float ours, const float *more, float theirs, int64_t count) {
    for (int64_t i = 0; i < count; i++) sums[i] = sums[i] * ours + more[i] * theirs;
}

const ScoreSimd ISA(score_simd) = {.weigh = weigh, .cap = cap, .add = add};

// --- the gradient

static int64_t seen_by(const ScoreRows *rows, int64_t row) {
    int64_t seen = rows->seen + row * rows->more;
    return seen < 0 ? 0 : seen < rows->count ? seen : rows->count;
}

static void make_shares_float(float *scores, int64_t seen, int64_t count, float scale) {
    float maximum = highest_of(scores, seen, scale);
    float share = 1.0f / exponentials(scores, seen, scale, maximum);
    for (int64_t i = 0; i < seen; i += LANES)
        float_vector_to(scores + i, float_vector_at(scores + i) * share);
    clear_unseen(scores, seen, count);
}

static void make_shares_double(double *scores, int64_t seen, int64_t count, double scale) {
    double maximum = -(double)INFINITY, sum = 0;
    for (int64_t i = 0; i < seen; i++) {
        scores[i] *= scale;
        maximum = scores[i] > maximum ? scores[i] : maximum;
    }
    _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < seen; i++) {
        scores[i] = exp(scores[i] - maximum);
        sum += scores[i];
    }
    for (int64_t i = 0; i < seen; i++) scores[i] *= 1 / sum;
    for (int64_t i = seen; i < count; i++) scores[i] = 0;
}

static void make_slopes_float(const float *shares, float *slopes, int64_t seen, int64_t count,
                              float scale) {
    Floats sums = {0};
    int64_t whole = seen / LANES * LANES, rest = seen - whole;
    for (int64_t i = 0; i < whole; i += LANES)
        sums += float_vector_at(shares + i) * float_vector_at(slopes + i);
    Floats last_shares = float_some_at(shares + whole, rest);
    Floats last = float_some_at(slopes + whole, rest);
    float along = floats_sum(sums + last_shares * last);
    for (int64_t i = 0; i < whole; i += LANES)
        float_vector_to(slopes + i, float_vector_at(shares + i) *
                                        (float_vector_at(slopes + i) - along) * scale);
    if (rest > 0) float_vector_to(slopes + whole, last_shares * (last - along) * scale);
    clear_unseen(slopes, seen, count);
}

static void make_slopes_double(const double *restrict shares, double *restrict slopes, int64_t seen,
                               int64_t count, double scale) {
    double along = 0;
    _Pragma("omp simd reduction(+ : along)") for (int64_t i = 0; i < seen; i++) along +=
        shares[i] * slopes[i];
    for (int64_t i = 0; i < seen; i++) slopes[i] = shares[i] * (slopes[i] - along) * scale;
    for (int64_t i = seen; i < count; i++) slopes[i] = 0;
}

#define GRADIENT_ROWS(real)                                                                        \
    static void shares_##real(const ScoreRows *rows, real *scores) {                               \
        for (int64_t row = 0; row < rows->rows; row++)                                             \
            make_shares_##real(scores + row * rows->stride, seen_by(rows, row), rows->count,       \
                               (real)rows->scale);                                                 \
    }                                                                                              \
    static void slopes_##real(const ScoreRows *rows, const real *shares, real *slopes) {           \
        for (int64_t row = 0; row < rows->rows; row++)                                             \
            make_slopes_##real(shares + row * rows->stride, slopes + row * rows->stride,           \
                               seen_by(rows, row), rows->count, (real)rows->scale);                \
    }
GRADIENT_ROWS(float)
GRADIENT_ROWS(double)

void ISA(attention_shares)(CpuCompute compute, const ScoreRows *rows, void *scores) {
    if (compute == COMPUTE_F32)
        shares_float(rows, scores);
    else
        shares_double(rows, scores);
}

void ISA(attention_slopes)(CpuCompute compute, const ScoreRows *rows, const void *shares,
                           void *slopes) {
    if (compute == COMPUTE_F32)
        slopes_float(rows, shares, slopes);
    else
        slopes_double(rows, shares, slopes);
}
