// The body of map_f32.c, map_f64.c and map_integer.h: a loop per formula of maps.def over `real`,
// and their table. The includer defines real, C, NAME (of the table) and the helpers that formulas
// use, ONES (a vector of them), and IS_FLOAT when real is a float type.

#if defined(IS_FLOAT) && !defined(DEVICE_CPU_SIMD_VECTOR_MATH_H)
#error "vector_math.h comes first: without it the functions are computed one number at a time"
#endif

enum { BLOCK = MAP_BLOCK_BYTES / sizeof(real) };

typedef struct Formula {
    MapLoop loop;
    int arity;
} Formula;

// The elements after the last whole block, in a block filled up with ones.
static __attribute__((noinline)) void run_rest(const Formula *formula, real *out,
                                               const void *const *in, unsigned scalars,
                                               int64_t count) {
    _Alignas(MAP_BLOCK_BYTES) real padded[SLOPE_OPERANDS][BLOCK];
    const void *operands[SLOPE_OPERANDS];
    int64_t rest = count % BLOCK, done = count - rest;
#if defined(__AVX512BW__)
    __mmask64 mask = (1ull << (size_t)rest * sizeof(real)) - 1;
    const __m512i ones = ONES;
#endif
    for (int k = 0; k < formula->arity; k++) {
        operands[k] = in[k];
        if ((scalars >> k & 1u) != 0) continue;
        const real *from = (const real *)in[k] + done;
        operands[k] = padded[k];
#if defined(__AVX512BW__)
        _mm512_store_si512(padded[k], _mm512_mask_loadu_epi8(ones, mask, from));
#else
        for (int64_t i = 0; i < rest; i++) padded[k][i] = from[i];
        for (int64_t i = rest; i < BLOCK; i++) padded[k][i] = C(1);
#endif
    }
    formula->loop(padded[0], operands, scalars, BLOCK);
#if defined(__AVX512BW__)
    _mm512_mask_storeu_epi8(out + done, mask, _mm512_load_si512(padded[0]));
#else
    for (int64_t i = 0; i < rest; i++) out[done + i] = padded[0][i];
#endif
}

#define EACH(value)                                                                                \
    for (int64_t block = 0; block + BLOCK <= count; block += BLOCK) {                              \
        INDEPENDENT                                                                                \
        for (int64_t lane = 0; lane < BLOCK; lane++) out[block + lane] = value;                    \
    }
#define AT(operand) operand[block + lane]
#define REST(code, arity)                                                                          \
    static const Formula formula_##code = {loop_##code, arity};                                    \
    if (count % BLOCK != 0) run_rest(&formula_##code, out, in, scalars, count);
#define UNUSED __attribute__((unused))
#define SIGNATURE(code)                                                                            \
    static void loop_##code(void *to, const void *const *in, unsigned scalars, int64_t count)

#define MAP1(code, formula, ...)                                                                   \
    INLINE real value_##code(real x UNUSED) {                                                      \
        return formula;                                                                            \
    }                                                                                              \
    SIGNATURE(code) {                                                                              \
        real *out = to;                                                                            \
        const real *a = in[0];                                                                     \
        EACH(value_##code(AT(a)))                                                                  \
        REST(code, 1)                                                                              \
    }
#define MAP2(code, formula, ...)                                                                   \
    INLINE real value_##code(real x, real y) {                                                     \
        return formula;                                                                            \
    }                                                                                              \
    SIGNATURE(code) {                                                                              \
        real *out = to;                                                                            \
        const real *a = in[0], *b = in[1];                                                         \
        real x = a[0], y = b[0];                                                                   \
        if (scalars == 0)                                                                          \
            EACH(value_##code(AT(a), AT(b)))                                                       \
        else if (scalars == 1)                                                                     \
            EACH(value_##code(x, AT(b)))                                                           \
        else                                                                                       \
            EACH(value_##code(AT(a), y))                                                           \
        REST(code, 2)                                                                              \
    }
#define MAP3(code, formula, ...)                                                                   \
    INLINE real value_##code(real x, real y, real z) {                                             \
        return formula;                                                                            \
    }                                                                                              \
    SIGNATURE(code) {                                                                              \
        real *out = to;                                                                            \
        const real *a = in[0], *b = in[1], *c = in[2];                                             \
        real x = a[0], y = b[0], z = c[0];                                                         \
        switch (scalars) {                                                                         \
        case 0: EACH(value_##code(AT(a), AT(b), AT(c))) break;                                     \
        case 1: EACH(value_##code(x, AT(b), AT(c))) break;                                         \
        case 2: EACH(value_##code(AT(a), y, AT(c))) break;                                         \
        case 3: EACH(value_##code(x, y, AT(c))) break;                                             \
        case 4: EACH(value_##code(AT(a), AT(b), z)) break;                                         \
        case 5: EACH(value_##code(x, AT(b), z)) break;                                             \
        default: EACH(value_##code(AT(a), y, z)) break;                                            \
        }                                                                                          \
        REST(code, 3)                                                                              \
    }
#define NOTHING(code, formula, ...)
#ifdef IS_FLOAT
#define MAP1F MAP1
#define MAP2F MAP2
#define MAP1I NOTHING
#define MAP2I NOTHING
#else
#define MAP1F NOTHING
#define MAP2F NOTHING
#define MAP1I MAP1
#define MAP2I MAP2
#endif
#include "catalog/maps.def"
#undef MAP1
#undef MAP2
#undef MAP3

#define MAP1(code, formula, ...) [MAP_##code] = loop_##code,
#define MAP2 MAP1
#define MAP3 MAP1
const MapTable ISA(NAME) = {
#include "catalog/maps.def"
};
