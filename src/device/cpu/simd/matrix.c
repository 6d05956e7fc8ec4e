// Products of integers, the exponentials of attention, and the table of what each dtype has, once
// per instruction set. Products with few rows are in thin_*.c, those of blocks in product.c.
#include "device/cpu/matrix.h"

#include <math.h>

#include "device/cpu/simd/thin.h"

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

typedef struct Maximum {
    Floats highest[2]; // two chains of comparisons, of numbers that are not NaN
    Ints is_nan;
} Maximum;

SIMD_INLINE void take_maximum(Maximum *maximum, const float *scores) {
    UNROLLED_FOR (int v = 0; v < 2; v++) {
        Floats values = float_vector_at(scores + v * LANES);
        Ints above = values > maximum->highest[v];
        maximum->highest[v] =
            (Floats)(((Ints)values & above) | ((Ints)maximum->highest[v] & ~above));
        maximum->is_nan |= values != values;
    }
}

static float row_maximum(const float *scores, int64_t count) {
    const Floats least = (Floats){0} - INFINITY;
    Maximum maximum = {{least, least}, {0}};
    int64_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) take_maximum(&maximum, scores + i);
    if (i < count) {
        float rest[2 * LANES];
        for (int j = 0; j < 2 * LANES; j++) rest[j] = j < count - i ? scores[i + j] : -INFINITY;
        take_maximum(&maximum, rest);
    }
    int any = 0;
    for (int lane = 0; lane < LANES; lane++) any |= maximum.is_nan[lane];
    float one = floats_maximum(maximum.highest[0]), other = floats_maximum(maximum.highest[1]);
    return any ? NAN : one > other ? one : other;
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

static void row_sum(float *sums, float ours, const float *more, float theirs, int64_t count) {
    for (int64_t i = 0; i < count; i++) sums[i] = sums[i] * ours + more[i] * theirs;
}

// Within -cap and cap; the same bits wherever a number stands.
static void row_caps(float *scores, int64_t count, float cap) {
    for (int64_t i = 0; i < count; i += LANES) {
        Floats some = {0};
        size_t size = (size_t)(count - i < LANES ? count - i : LANES) * sizeof *scores;
        memcpy(&some, scores + i, size);
        some = cap * floats_tanh(some / cap);
        memcpy(scores + i, &some, size);
    }
}

#define KIND_BOOL(code)
#define KIND_INT(code)
#define KIND_FLOAT(code)                                                                           \
    .dot[DTYPE_##code] = ISA(dot_##code), .strip[DTYPE_##code] = ISA(strip_##code),
#define KIND_QUANT(code)                                                                           \
    .dot[DTYPE_##code] = ISA(dot_##code), .dequantize[DTYPE_##code] = ISA(dequantize_##code),
const MatrixSimd ISA(matrix_simd) = {
#define DTYPE(code, name, kind, ...) KIND_##kind(code)
#include "catalog/dtypes.def"
#undef DTYPE
    .integer32 = integer32_product,
    .integer64 = integer64_product,
    .row_maximum = row_maximum,
    .row_exponentials = row_exponentials,
    .row_caps = row_caps,
    .row_sum = row_sum,
};
