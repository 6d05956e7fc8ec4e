// Products of attention for a few rows of queries or more, once per instruction set. What a key or
// a value costs to convert is paid once for all rows, in panels that stay in the first-level cache;
// keys are transposed there, so that a lane owns a key and nothing is summed across lanes.
#include "device/cpu/attention_scores.h"
#include "device/cpu/matrix.h"
#include "device/cpu/simd/lanes.h"

// Rows of queries next to keys and next to values, and vectors of values, that leave all sums in
// registers.
#if defined(TL_ISA_avx512)
enum { ROWS_OF_KEYS = 4, VALUE_ROWS = 4, VALUE_VECTORS = 4 };
#else
enum { ROWS_OF_KEYS = 2, VALUE_ROWS = 4, VALUE_VECTORS = 2 };
#endif
enum {
    FOUR = 4, // lanes that share a key
    KEYS_APART = LANES / FOUR,
    PANEL_KEYS = LANES,
    KEYS_AHEAD = 64,   // of those that are read, which are fetched into the second cache
    PANEL_DEPTH = 128, // a multiple of LANES
    VALUE_KEYS = 32,   // of a panel of values
    CACHE_LINE = 64,
    SECOND_CACHE = 2,
};
_Static_assert(SCORE_PADDING % PANEL_KEYS == 0, "whole vectors of scores are stored");

typedef Floats (*LoadFloats)(const void *source);

// The vectors of a panel that belong to four numbers of the keys: vector v has key v in its first
// four lanes, key v + 4 in the next, and so on.
typedef Floats PanelStep[FOUR];

// Lanes x0 to x3 of two vectors' four lanes, for each four of them: 0 to 3 are of a, 4 to 7 of b.
#if defined(TL_ISA_avx512)
#define EACH_FOUR(a, b, x0, x1, x2, x3)                                                            \
    LANES_OF(a, b, x0, x1, (x2) + 12, (x3) + 12, (x0) + 4, (x1) + 4, (x2) + 16, (x3) + 16,         \
             (x0) + 8, (x1) + 8, (x2) + 20, (x3) + 20, (x0) + 12, (x1) + 12, (x2) + 24, (x3) + 24)
#elif defined(TL_ISA_avx2)
#define EACH_FOUR(a, b, x0, x1, x2, x3)                                                            \
    LANES_OF(a, b, x0, x1, (x2) + 4, (x3) + 4, (x0) + 4, (x1) + 4, (x2) + 8, (x3) + 8)
#else
#define EACH_FOUR(a, b, x0, x1, x2, x3) LANES_OF(a, b, x0, x1, x2, x3)
#endif

// Lines of LANES numbers of as many keys as a vector has four lanes become that many steps'
// vectors.
SIMD_INLINE void fours_transpose(Floats *lines) {
#if defined(TL_ISA_avx512)
    Floats a = lines[0], b = lines[1], c = lines[2], d = lines[3];
    Floats ab = LANES_OF(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    Floats cd = LANES_OF(c, d, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    Floats ef = LANES_OF(a, b, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    Floats gh = LANES_OF(c, d, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    lines[0] = LANES_OF(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    lines[1] = LANES_OF(ab, cd, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    lines[2] = LANES_OF(ef, gh, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    lines[3] = LANES_OF(ef, gh, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
#elif defined(TL_ISA_avx2)
    Floats a = lines[0], b = lines[1];
    lines[0] = LANES_OF(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    lines[1] = LANES_OF(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
#else
    (void)lines; // each is a step's vector
#endif
}

// Four numbers in each four lanes.
SIMD_INLINE Floats floats_of_four(const float *source) {
#if defined(TL_ISA_avx512)
    return (Floats)_mm512_broadcast_f32x4(_mm_loadu_ps(source));
#elif defined(TL_ISA_avx2)
    return (Floats)_mm256_broadcast_ps((const __m128 *)(const void *)source);
#else
    return float_vector_at(source);
#endif
}

// Adds up each four lanes of four vectors: the sums of a step's keys in their order.
SIMD_INLINE Floats sums_of_fours(const Floats *sums) {
    Floats a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    Floats ab = EACH_FOUR(a, b, 0, 1, 4, 5) + EACH_FOUR(a, b, 2, 3, 6, 7);
    Floats cd = EACH_FOUR(c, d, 0, 1, 4, 5) + EACH_FOUR(c, d, 2, 3, 6, 7);
    return EACH_FOUR(ab, cd, 0, 2, 4, 6) + EACH_FOUR(ab, cd, 1, 3, 5, 7);
}

// Makes KEYS_APART steps of a panel, and fetches what lies so many bytes ahead.
SIMD_INLINE void steps_load(const char *keys, int64_t stride, LoadFloats load, int64_t ahead,
                            PanelStep *steps) {
    UNROLLED_FOR (int v = 0; v < FOUR; v++) {
        Floats lines[KEYS_APART];
        const char *key = keys + v * stride;
        UNROLLED_FOR (int i = 0; i < KEYS_APART; i++, key += FOUR * stride) {
            __builtin_prefetch(key + ahead, 0, SECOND_CACHE);
            lines[i] = load(key);
        }
        fours_transpose(lines);
        UNROLLED_FOR (int i = 0; i < KEYS_APART; i++) steps[i][v] = lines[i];
    }
}

// The same of fewer keys or numbers, square->n and square->k: zeros stand for what is missing.
static __attribute__((noinline)) void steps_load_some(const ThinProduct *square, LoadFloats load,
                                                      int64_t item_bytes, PanelStep *steps) {
    char filled[PANEL_KEYS][LANES * sizeof(float)] = {{0}};
    for (int64_t i = 0; i < square->n; i++)
        memcpy(filled[i], square->b + i * square->b_stride_bytes, (size_t)(square->k * item_bytes));
    steps_load(filled[0], sizeof filled[0], load, 0, steps);
}

// Makes the panel of the first keys of a part.
SIMD_INLINE void panel_load(const ThinProduct *part, LoadFloats load, int64_t item_bytes,
                            PanelStep *panel) {
    int64_t stride = part->b_stride_bytes;
    ThinProduct square = *part;
    if (square.n > PANEL_KEYS) square.n = PANEL_KEYS;
    for (int64_t first = 0; first < part->k; first += LANES) {
        square.b = part->b + first * item_bytes;
        square.k = part->k - first < LANES ? part->k - first : LANES;
        if (square.n == PANEL_KEYS && square.k == LANES)
            steps_load(square.b, stride, load, KEYS_AHEAD * stride, panel + first / FOUR);
        else
            steps_load_some(&square, load, item_bytes, panel + first / FOUR);
    }
}

// The scores of `rows` rows, a constant where this is inlined, so that the sums stay in registers.
// Each is made of the same four chains of additions, whatever the number of rows and keys.
SIMD_INLINE void rows_by_panel(const ThinProduct *part, int64_t row, const int rows, bool more,
                               const PanelStep *panel) {
    const float *a = (const float *)part->a + row * part->a_stride;
    float *out = (float *)part->out + row * part->out_row_stride;
    Floats sums[ROWS_OF_KEYS][FOUR];
    UNROLLED_FOR (int i = 0; i < rows; i++)
        UNROLLED_FOR (int v = 0; v < FOUR; v++) sums[i][v] = (Floats){0};
    for (int64_t step = 0; step < part->k / FOUR; step++)
        UNROLLED_FOR (int i = 0; i < rows; i++) {
            Floats numbers = floats_of_four(a + i * part->a_stride + step * FOUR);
            UNROLLED_FOR (int v = 0; v < FOUR; v++) sums[i][v] += panel[step][v] * numbers;
        }
    int64_t rest = part->k % FOUR;
    UNROLLED_FOR (int i = 0; rest > 0 && i < rows; i++) {
        float filled[FOUR] = {0};
        for (int64_t d = 0; d < rest; d++) filled[d] = a[i * part->a_stride + part->k - rest + d];
        Floats numbers = floats_of_four(filled);
        for (int v = 0; v < FOUR; v++) sums[i][v] += panel[part->k / FOUR][v] * numbers;
    }
    UNROLLED_FOR (int i = 0; i < rows; i++) {
        Floats scores = sums_of_fours(sums[i]);
        float *target = out + i * part->out_row_stride;
        float_vector_to(target, more ? scores + float_vector_at(target) : scores);
    }
}

SIMD_INLINE void scores(const ThinProduct *product, LoadFloats load, int64_t item_bytes) {
    for (int64_t key = 0; key < product->n; key += PANEL_KEYS)
        for (int64_t depth = 0; depth < product->k; depth += PANEL_DEPTH) {
            PanelStep panel[PANEL_DEPTH / FOUR];
            ThinProduct part = *product;
            part.a = (const float *)part.a + depth;
            part.b += key * part.b_stride_bytes + depth * item_bytes;
            part.n -= key;
            part.k = part.k - depth < PANEL_DEPTH ? part.k - depth : PANEL_DEPTH;
            part.out = (float *)part.out + key;
            panel_load(&part, load, item_bytes, panel);
            int64_t row = 0;
            for (; row + ROWS_OF_KEYS <= part.rows; row += ROWS_OF_KEYS)
                rows_by_panel(&part, row, ROWS_OF_KEYS, depth > 0, panel);
            for (; row < part.rows; row++) rows_by_panel(&part, row, 1, depth > 0, panel);
        }
}

// Makes panel[k, columns rounded up to VALUE_VECTORS vectors].
SIMD_INLINE void values_load(const ThinProduct *part, LoadFloats load, int64_t item_bytes,
                             Floats (*panel)[VALUE_VECTORS]) {
    const char *values = part->b;
    if (part->n == VALUE_VECTORS * LANES) {
        for (int64_t key = 0; key < part->k; key++, values += part->b_stride_bytes)
            UNROLLED_FOR (int v = 0; v < VALUE_VECTORS; v++)
                panel[key][v] = load(values + v * LANES * item_bytes);
        return;
    }
    for (int64_t key = 0; key < part->k; key++, values += part->b_stride_bytes) {
        char filled[VALUE_VECTORS * LANES * sizeof(float)] = {0};
        memcpy(filled, values, (size_t)(part->n * item_bytes));
        for (int v = 0; v < VALUE_VECTORS; v++)
            panel[key][v] = load(filled + v * LANES * item_bytes);
    }
}

// What `rows` rows weigh of a panel, of whole vectors; the number of rows is a constant where this
// is inlined, so that the sums stay in registers. Each is one chain of additions through all
// panels. The first rows fetch the values behind those of the panel.
SIMD_INLINE void rows_by_values(const ThinProduct *part, ThinRows of_a, bool more,
                                const Floats (*panel)[VALUE_VECTORS], int64_t item_bytes) {
    const int64_t row = of_a.first;
    const int rows = of_a.count;
    const float *a = (const float *)part->a + row * part->a_stride;
    float *out = (float *)part->out + row * part->out_row_stride;
    const char *next = row == 0 ? part->b + KEYS_AHEAD * part->b_stride_bytes : part->b;
    int64_t next_step = row == 0 ? part->b_stride_bytes : 0;
    Floats sums[VALUE_ROWS][VALUE_VECTORS];
    UNROLLED_FOR (int i = 0; i < rows; i++)
        UNROLLED_FOR (int v = 0; v < VALUE_VECTORS; v++)
            sums[i][v] =
                more ? float_vector_at(out + i * part->out_row_stride + v * LANES) : (Floats){0};
    for (int64_t key = 0; key < part->k; key++, next += next_step) {
        for (int64_t byte = 0; byte < VALUE_VECTORS * LANES * item_bytes; byte += CACHE_LINE)
            __builtin_prefetch(next + byte, 0, SECOND_CACHE);
        UNROLLED_FOR (int i = 0; i < rows; i++)
            UNROLLED_FOR (int v = 0; v < VALUE_VECTORS; v++)
                sums[i][v] += panel[key][v] * a[i * part->a_stride + key];
    }
    UNROLLED_FOR (int i = 0; i < rows; i++)
        UNROLLED_FOR (int v = 0; v < VALUE_VECTORS; v++)
            float_vector_to(out + i * part->out_row_stride + v * LANES, sums[i][v]);
}

// The same for one row of fewer columns.
static __attribute__((noinline)) void row_by_some_values(const ThinProduct *part, int64_t row,
                                                         bool more,
                                                         const Floats (*panel)[VALUE_VECTORS],
                                                         int64_t item_bytes) {
    float filled[VALUE_VECTORS * LANES] = {0};
    float *out = (float *)part->out + row * part->out_row_stride;
    ThinProduct alone = *part;
    alone.a = (const float *)part->a + row * part->a_stride;
    alone.out = filled;
    if (more) memcpy(filled, out, (size_t)part->n * sizeof *out);
    rows_by_values(&alone, (ThinRows){0, 1}, more, panel, item_bytes);
    memcpy(out, filled, (size_t)part->n * sizeof *out);
}

SIMD_INLINE void weigh_values(const ThinProduct *product, LoadFloats load, int64_t item_bytes) {
    const int64_t width = VALUE_VECTORS * LANES;
    for (int64_t key = 0; key < product->k; key += VALUE_KEYS)
        for (int64_t column = 0; column < product->n; column += width) {
            Floats panel[VALUE_KEYS][VALUE_VECTORS];
            ThinProduct part = *product;
            part.a = (const float *)part.a + key;
            part.b += key * part.b_stride_bytes + column * item_bytes;
            part.k = part.k - key < VALUE_KEYS ? part.k - key : VALUE_KEYS;
            part.n = part.n - column < width ? part.n - column : width;
            part.out = (float *)part.out + column;
            values_load(&part, load, item_bytes, panel);
            int64_t row = 0;
            for (; part.n == width && row + VALUE_ROWS <= part.rows; row += VALUE_ROWS)
                rows_by_values(&part, (ThinRows){row, VALUE_ROWS}, key > 0, panel, item_bytes);
            for (; part.n == width && row < part.rows; row++)
                rows_by_values(&part, (ThinRows){row, 1}, key > 0, panel, item_bytes);
            for (; row < part.rows; row++)
                row_by_some_values(&part, row, key > 0, panel, item_bytes);
        }
}

#define PANELS(code, load, item_bytes)                                                             \
    static void scores_##code(const ThinProduct *product) {                                        \
        scores(product, load, item_bytes);                                                         \
    }                                                                                              \
    static void weigh_values_##code(const ThinProduct *product) {                                  \
        weigh_values(product, load, item_bytes);                                                   \
    }
PANELS(FLOAT16, floats_of_float16, 2)
PANELS(BFLOAT16, floats_of_bfloat16, 2)
PANELS(FLOAT32, float_vector_at, 4)

const AttentionPanels ISA(attention_panels) = {
    .scores = {[DTYPE_FLOAT16] = scores_FLOAT16,
               [DTYPE_BFLOAT16] = scores_BFLOAT16,
               [DTYPE_FLOAT32] = scores_FLOAT32},
    .weigh_values = {[DTYPE_FLOAT16] = weigh_values_FLOAT16,
                     [DTYPE_BFLOAT16] = weigh_values_BFLOAT16,
                     [DTYPE_FLOAT32] = weigh_values_FLOAT32},
};
