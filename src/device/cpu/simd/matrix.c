// Matrix products of few rows, tiny ones and those of integers, dequantisation, and the
// exponentials of attention, once per instruction set.
#include "device/cpu/matrix.h"

#include <math.h>

#include "device/cpu/simd/blocks_more.h"
#include "device/cpu/simd/lanes.h"

enum { THIN_GROUP = GROUP };

// Rows of b beside 3 or 4 rows of a, and beside 5 to 8: as many sums as there are registers for.
#if defined(TL_ISA_avx512)
enum { DOT_COLUMNS_MORE = 4, DOT_COLUMNS_MOST = 2 };
#else
enum { DOT_COLUMNS_MORE = 2, DOT_COLUMNS_MOST = 1 };
#endif

#define REAL float
#define VECTOR Floats
#define WIDTH LANES
#define NAME(x) float_##x
#define SUM floats_sum
#define SUM_FOUR floats_sum_four
#include "device/cpu/simd/thin_body.h"
#undef REAL
#undef VECTOR
#undef WIDTH
#undef NAME
#undef SUM
#undef SUM_FOUR
#define REAL double
#define VECTOR Doubles
#define WIDTH DOUBLE_LANES
#define NAME(x) double_##x
#define SUM doubles_sum
#define SUM_FOUR doubles_sum_four
#include "device/cpu/simd/thin_body.h"

// Plain element types: a group is a few vectors.
#define PLAIN(type, real, Vector, width, load, bytes)                                              \
    SIMD_INLINE void group_of_##type(const char *row, int64_t first, Vector *out) {                \
        for (int v = 0; v < GROUP / width; v++) out[v] = load(row + (first + v * width) * bytes);  \
    }                                                                                              \
    static void dot_##type(const ThinProduct *product) {                                           \
        real##_dot(product, group_of_##type, bytes);                                               \
    }                                                                                              \
    static void strip_##type(const ThinProduct *product) {                                         \
        real##_strip(product, load, bytes);                                                        \
    }
PLAIN(float16, float, Floats, LANES, floats_of_float16, 2)
PLAIN(bfloat16, float, Floats, LANES, floats_of_bfloat16, 2)
PLAIN(float32, float, Floats, LANES, floats_of_float32, 4)
PLAIN(float64, double, Doubles, DOUBLE_LANES, doubles_of_float64, 8)

#define DEQUANTIZE(type)                                                                           \
    static void dequantize_##type(const void *blocks, float *out, int64_t count) {                 \
        for (int64_t first = 0; first < count; first += GROUP) {                                   \
            Floats weights[GROUP_VECTORS];                                                         \
            group_of_##type(blocks, first, weights);                                               \
            memcpy(out + first, weights, sizeof weights);                                          \
        }                                                                                          \
    }
#define BLOCKS(type)                                                                               \
    static void dot_##type(const ThinProduct *product) {                                           \
        float_dot(product, group_of_##type, 0);                                                    \
    }                                                                                              \
    DEQUANTIZE(type)
BLOCKS(q4_0)
BLOCKS(q8_0)
BLOCKS(q6_k)
BLOCKS(q4_k)

// The rarer formats share one product, which calls for each group of weights: the code of a product
// for each of them would be most of this file's.
static __attribute__((noinline)) void dot_groups(const ThinProduct *product, float_GroupLoad load) {
    __asm__("" : "+r"(load)); // not known here, so not inlined
    float_dot(product, load, 0);
}
#define RARE_BLOCKS(type)                                                                          \
    static void load_##type(const char *row, int64_t first, Floats *out) {                         \
        group_of_##type(row, first, out);                                                          \
    }                                                                                              \
    static void dot_##type(const ThinProduct *product) {                                           \
        dot_groups(product, load_##type);                                                          \
    }                                                                                              \
    DEQUANTIZE(type)
RARE_BLOCKS(q4_1)
RARE_BLOCKS(q5_0)
RARE_BLOCKS(q5_1)
RARE_BLOCKS(q2_k)
RARE_BLOCKS(q3_k)
RARE_BLOCKS(q5_k)
RARE_BLOCKS(iq4_nl)
RARE_BLOCKS(iq4_xs)
RARE_BLOCKS(tq1_0)
RARE_BLOCKS(tq2_0)

// Tiles of up to four rows of a by two vectors of columns, whose sums stay in registers. Unsigned
// numbers wrap as the language's integers do.
#define INTEGER_PRODUCT(name, Element, Vector, width)                                              \
    SIMD_INLINE void name##_tile(const IntegerProduct *product, int64_t row, int rows,             \
                                 int64_t column) {                                                 \
        const Element *a = (const Element *)product->a + row * product->a_stride;                  \
        const Element *b = (const Element *)product->b + column;                                   \
        Element *out = (Element *)product->out + row * product->out_stride + column;               \
        Vector sums[4][2];                                                                         \
        for (int i = 0; i < rows; i++)                                                             \
            memcpy(sums[i], out + i * product->out_stride, sizeof sums[i]);                        \
        for (int64_t k = 0; k < product->k; k++) {                                                 \
            Vector numbers[2];                                                                     \
            memcpy(numbers, b + k * product->b_stride, sizeof numbers);                            \
            for (int i = 0; i < rows; i++) {                                                       \
                sums[i][0] += numbers[0] * a[i * product->a_stride + k];                           \
                sums[i][1] += numbers[1] * a[i * product->a_stride + k];                           \
            }                                                                                      \
        }                                                                                          \
        for (int i = 0; i < rows; i++)                                                             \
            memcpy(out + i * product->out_stride, sums[i], sizeof sums[i]);                        \
    }                                                                                              \
    static void name(const IntegerProduct *product) {                                              \
        for (int64_t column = 0; column < product->n; column += 2 * width) {                       \
            int64_t row = 0;                                                                       \
            for (; row + 4 <= product->m; row += 4) name##_tile(product, row, 4, column);          \
            for (; row < product->m; row++) name##_tile(product, row, 1, column);                  \
        }                                                                                          \
    }
INTEGER_PRODUCT(integer32_product, uint32_t, Words, LANES)
INTEGER_PRODUCT(integer64_product, uint64_t, Longs, DOUBLE_LANES)
_Static_assert(2 * LANES <= INTEGER_PADDING, "a tile fits into the padding");

static float row_maximum(const float *scores, int64_t count) {
    Floats highest = (Floats){0} - INFINITY;
    Ints is_nan = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        Floats values = floats_of_float32((const char *)(scores + i));
        Ints above = values > highest;
        highest = (Floats)(((Ints)values & above) | ((Ints)highest & ~above));
        is_nan |= values != values;
    }
    float maximum = -INFINITY;
    bool has_nan = false;
    for (int lane = 0; lane < LANES; lane++) {
        maximum = highest[lane] > maximum ? highest[lane] : maximum;
        has_nan |= is_nan[lane] != 0;
    }
    for (; i < count; i++) {
        maximum = scores[i] > maximum ? scores[i] : maximum;
        has_nan |= scores[i] != scores[i];
    }
    return has_nan ? NAN : maximum;
}

// exp(x) for x <= 0 within 2 ulp: x = n ln 2 + r, a polynomial for exp(r), the exponent set to n.
// Results below the smallest normal number are 0; NaN stays.
SIMD_INLINE Floats floats_exp(Floats x) {
    const float shift = 0x1.8p23f; // adding it rounds to a whole number
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

static float row_exponentials(float *scores, int64_t count, float maximum) {
    float base = maximum == -INFINITY ? 0.0f : maximum;
    Floats sums = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        Floats values;
        memcpy(&values, scores + i, sizeof values);
        values = floats_exp(values - base);
        memcpy(scores + i, &values, sizeof values);
        sums += values;
    }
    if (i < count) {
        float rest[LANES];
        for (int j = 0; j < LANES; j++) rest[j] = j < count - i ? scores[i + j] : -INFINITY;
        Floats values;
        memcpy(&values, rest, sizeof values);
        values = floats_exp(values - base);
        memcpy(scores + i, &values, (size_t)(count - i) * sizeof(float));
        sums += values;
    }
    return floats_sum(sums);
}

const MatrixSimd ISA(matrix_simd) = {
    .dot = {[DTYPE_FLOAT16] = dot_float16,
            [DTYPE_BFLOAT16] = dot_bfloat16,
            [DTYPE_FLOAT32] = dot_float32,
            [DTYPE_FLOAT64] = dot_float64,
            [DTYPE_Q4_0] = dot_q4_0,
            [DTYPE_Q8_0] = dot_q8_0,
            [DTYPE_Q6_K] = dot_q6_k,
            [DTYPE_Q4_1] = dot_q4_1,
            [DTYPE_Q5_0] = dot_q5_0,
            [DTYPE_Q5_1] = dot_q5_1,
            [DTYPE_Q2_K] = dot_q2_k,
            [DTYPE_Q3_K] = dot_q3_k,
            [DTYPE_Q4_K] = dot_q4_k,
            [DTYPE_Q5_K] = dot_q5_k,
            [DTYPE_IQ4_NL] = dot_iq4_nl,
            [DTYPE_IQ4_XS] = dot_iq4_xs,
            [DTYPE_TQ1_0] = dot_tq1_0,
            [DTYPE_TQ2_0] = dot_tq2_0},
    .strip = {[DTYPE_FLOAT16] = strip_float16,
              [DTYPE_BFLOAT16] = strip_bfloat16,
              [DTYPE_FLOAT32] = strip_float32,
              [DTYPE_FLOAT64] = strip_float64},
    .tiny = {[COMPUTE_F32] = float_tiny, [COMPUTE_F64] = double_tiny},
    .integer32 = integer32_product,
    .integer64 = integer64_product,
    .dequantize = {[DTYPE_Q4_0] = dequantize_q4_0,
                   [DTYPE_Q8_0] = dequantize_q8_0,
                   [DTYPE_Q6_K] = dequantize_q6_k,
                   [DTYPE_Q4_1] = dequantize_q4_1,
                   [DTYPE_Q5_0] = dequantize_q5_0,
                   [DTYPE_Q5_1] = dequantize_q5_1,
                   [DTYPE_Q2_K] = dequantize_q2_k,
                   [DTYPE_Q3_K] = dequantize_q3_k,
                   [DTYPE_Q4_K] = dequantize_q4_k,
                   [DTYPE_Q5_K] = dequantize_q5_k,
                   [DTYPE_IQ4_NL] = dequantize_iq4_nl,
                   [DTYPE_IQ4_XS] = dequantize_iq4_xs,
                   [DTYPE_TQ1_0] = dequantize_tq1_0,
                   [DTYPE_TQ2_0] = dequantize_tq2_0},
    .row_maximum = row_maximum,
    .row_exponentials = row_exponentials,
};
