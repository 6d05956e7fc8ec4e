// Products with few rows, for every dtype that has them: thin_*.c make them of the loops of
// thin_body.h and a function that reads 32 numbers, of which the compiler is given one dtype a
// file.
#ifndef DEVICE_CPU_SIMD_THIN_H
#define DEVICE_CPU_SIMD_THIN_H

#include "device/cpu/matrix.h"
#include "device/cpu/simd/blocks_grid.h"

// Rows of b next to one or two rows of a, next to 3 or 4, and next to 5 to 8: as many sums as there
// are registers for; and next to one row of a where b lies in a cache.
#if defined(TL_ISA_avx512)
enum {
    DOT_COLUMNS_MAX = 4,
    DOT_COLUMNS_MORE = 4,
    DOT_COLUMNS_MOST = 2,
    DOT_COLUMNS_SMALL = 8,
    PANEL_VECTORS = 4
};
#else
enum {
    DOT_COLUMNS_MAX = 4,
    DOT_COLUMNS_MORE = 2,
    DOT_COLUMNS_MOST = 1,
    DOT_COLUMNS_SMALL = 4,
    PANEL_VECTORS = 2
};
#endif
enum {
    DOT_COLUMNS_HALVES = 2, // next to one row of a where they are 16-bit floats
    SHORT = 256,            // a head's width is at most that
    AHEAD = 24,             // rows of b that are fetched before they are read
    LINE = 64,              // bytes of a cache's line
    PIECE_BYTES = 4096,     // of each of four rows of a, which stay in the first cache
};

// What of b is asked for before it is read: nothing where it lies in a cache; the rows that come
// next, from the first byte of the first one to the last, as memory is read fastest; or the same
// place in those of the next tile, where this one is read again and again.
typedef enum ThinFetch { FETCH_NOTHING, FETCH_COLUMNS, FETCH_TILE } ThinFetch;

typedef struct ThinDepth { // a range of k
    int64_t begin, end;
} ThinDepth;

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
#undef REAL
#undef VECTOR
#undef WIDTH
#undef NAME
#undef SUM
#undef SUM_FOUR

#define KIND_BOOL(code)
#define KIND_INT(code)
#define KIND_FLOAT(code)                                                                           \
    void ISA(dot_##code)(const ThinProduct *product);                                              \
    void ISA(strip_##code)(const ThinProduct *product);
#define KIND_QUANT(code)                                                                           \
    void ISA(dot_##code)(const ThinProduct *product);                                              \
    void ISA(dequantize_##code)(const void *blocks, float *out, int64_t count);
#define DTYPE(code, name, kind, ...) KIND_##kind(code)
#include "catalog/dtypes.def"
#undef DTYPE
#undef KIND_BOOL
#undef KIND_INT
#undef KIND_FLOAT
#undef KIND_QUANT

// Element types: a group is a few vectors.
#define THIN_ELEMENTS(code, real, dot, Vector, width, load, bytes)                                 \
    SIMD_INLINE void group_of_##code(const char *row, int64_t first, Vector *out) {                \
        for (int v = 0; v < GROUP / width; v++) out[v] = load(row + (first + v * width) * bytes);  \
    }                                                                                              \
    static __attribute__((noinline)) void dot_small_##code(const ThinProduct *product) {           \
        real##_dot_small(product, (real##_Reader){group_of_##code, load, bytes});                  \
    }                                                                                              \
    void ISA(dot_##code)(const ThinProduct *product) {                                             \
        if (!ONE_ROW && product->rows == 1 && product->cached)                                     \
            dot_small_##code(product);                                                             \
        else                                                                                       \
            dot(product, (real##_Reader){group_of_##code, load, bytes});                           \
    }                                                                                              \
    void ISA(strip_##code)(const ThinProduct *product) {                                           \
        real##_strip(product, load, bytes);                                                        \
    }

// The same for 16-bit floats, which many instructions take apart where vectors are narrowest: there
// their products share one, as those of quantised types do.
#if defined(TL_ISA_base)
void ISA(dot_groups)(const ThinProduct *product, float_Reader reader);

#define THIN_HALVES(code, load)                                                                    \
    static void load_##code(const char *row, int64_t first, Floats *out) {                         \
        for (int v = 0; v < GROUP_VECTORS; v++) out[v] = load(row + (first + v * LANES) * 2);      \
    }                                                                                              \
    void ISA(dot_##code)(const ThinProduct *product) {                                             \
        ISA(dot_groups)(product, (float_Reader){load_##code, load, 2});                            \
    }                                                                                              \
    void ISA(strip_##code)(const ThinProduct *product) {                                           \
        float_strip(product, load, 2);                                                             \
    }
#else
#define THIN_HALVES(code, load) THIN_ELEMENTS(code, float, float_dot, Floats, LANES, load, 2)
#endif

#endif
