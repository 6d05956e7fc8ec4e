// Vectors of the instruction set that a file is being compiled for: loads of every stored float
// type, in the compilers' own vector types so that one text serves all sets. Knows no kernel.
#ifndef DEVICE_CPU_SIMD_LANES_H
#define DEVICE_CPU_SIMD_LANES_H

#include <stdint.h>
#include <string.h>

#include "base/half.h"

#if defined(TL_ISA_avx512)
enum { LANES = 16 };
#elif defined(TL_ISA_avx2)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
#if defined(TL_ISA_avx512) || defined(TL_ISA_avx2)
#include <immintrin.h>
#endif

enum { DOUBLE_LANES = LANES / 2 };

// Hardly a machine of this kind lacks AVX2: products without it take one row at a time, which is
// right, small and built sooner.
#if defined(TL_ISA_base) && defined(__x86_64__)
#define ONE_ROW 1
#else
#define ONE_ROW 0
#endif

// Checks of what is inlined whole would take a compiler minutes: sanitizers see it called.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SIMD_INLINE static inline __attribute__((unused))
#else
#define SIMD_INLINE static inline __attribute__((always_inline, unused))
#endif

// A loop of at most 16 iterations, whose number is a constant where it is inlined: they follow one
// another without a jump, so that the arrays they index stay in registers.
#ifdef __clang__
#define UNROLLED_FOR(...) _Pragma("clang loop unroll(full)") for (__VA_ARGS__)
#else
#define UNROLLED_FOR(...) _Pragma("GCC unroll 16") for (__VA_ARGS__)
#endif

typedef float Floats __attribute__((vector_size(LANES * 4)));
typedef int32_t Ints __attribute__((vector_size(LANES * 4)));
typedef uint32_t Words __attribute__((vector_size(LANES * 4)));
typedef uint64_t Longs __attribute__((vector_size(LANES * 4)));
typedef uint16_t Halves __attribute__((vector_size(LANES * 2)));
typedef int16_t Shorts __attribute__((vector_size(LANES * 2)));
typedef uint8_t Bytes __attribute__((vector_size(LANES)));
typedef int8_t SignedBytes __attribute__((vector_size(LANES)));
typedef float Four __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(DOUBLE_LANES * 8)));

// a * b + c in the one way of the instruction set, whatever is inlined around it: compilers choose
// for themselves which products of an expression they fuse.
SIMD_INLINE Floats float_multiply_add(Floats a, Floats b, Floats c) {
#if defined(TL_ISA_avx512)
    return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(TL_ISA_avx2)
    return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

SIMD_INLINE Doubles double_multiply_add(Doubles a, Doubles b, Doubles c) {
#if defined(TL_ISA_avx512)
    return (Doubles)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(TL_ISA_avx2)
    return (Doubles)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return a * b + c;
#endif
}

// Less nothing, which compilers leave away; adding nothing would make 0 of -0.
SIMD_INLINE Floats float_broadcast(float number) {
    return number - (Floats){0};
}

SIMD_INLINE Floats float_vector_at(const void *source) {
    Floats values;
    memcpy(&values, source, sizeof values);
    return values;
}
SIMD_INLINE void float_vector_to(void *target, Floats values) {
    memcpy(target, &values, sizeof values);
}
SIMD_INLINE Doubles double_vector_at(const void *source) {
    Doubles values;
    memcpy(&values, source, sizeof values);
    return values;
}
SIMD_INLINE void double_vector_to(void *target, Doubles values) {
    memcpy(target, &values, sizeof values);
}

// The first `count` numbers of a vector, at most all, with zeros behind; and into memory.
#if defined(TL_ISA_avx512)
SIMD_INLINE Floats float_some_at(const float *source, int64_t count) {
    return (Floats)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), source);
}
SIMD_INLINE Doubles double_some_at(const double *source, int64_t count) {
    return (Doubles)_mm512_maskz_loadu_pd((__mmask8)((1u << count) - 1), source);
}
SIMD_INLINE void float_some_to(float *target, Floats values, int64_t count) {
    _mm512_mask_storeu_ps(target, (__mmask16)((1u << count) - 1), (__m512)values);
}
SIMD_INLINE void double_some_to(double *target, Doubles values, int64_t count) {
    _mm512_mask_storeu_pd(target, (__mmask8)((1u << count) - 1), (__m512d)values);
}
#else
#if defined(TL_ISA_avx2)
SIMD_INLINE __m256i float_some(int64_t count) {
    return (__m256i)((Ints){0, 1, 2, 3, 4, 5, 6, 7} < (int32_t)count);
}
SIMD_INLINE __m256i double_some(int64_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_set_epi64x(3, 2, 1, 0));
}
SIMD_INLINE Floats float_some_at(const float *source, int64_t count) {
    return (Floats)_mm256_maskload_ps(source, float_some(count));
}
SIMD_INLINE Doubles double_some_at(const double *source, int64_t count) {
    return (Doubles)_mm256_maskload_pd(source, double_some(count));
}
SIMD_INLINE void float_some_to(float *target, Floats values, int64_t count) {
    _mm256_maskstore_ps(target, float_some(count), (__m256)values);
}
SIMD_INLINE void double_some_to(double *target, Doubles values, int64_t count) {
    _mm256_maskstore_pd(target, double_some(count), (__m256d)values);
}
#else
SIMD_INLINE Floats float_some_at(const float *source, int64_t count) {
    Floats values = {0};
    memcpy(&values, source, (size_t)count * sizeof *source);
    return values;
}
SIMD_INLINE Doubles double_some_at(const double *source, int64_t count) {
    Doubles values = {0};
    memcpy(&values, source, (size_t)count * sizeof *source);
    return values;
}
SIMD_INLINE void float_some_to(float *target, Floats values, int64_t count) {
    memcpy(target, &values, (size_t)count * sizeof *target);
}
SIMD_INLINE void double_some_to(double *target, Doubles values, int64_t count) {
    memcpy(target, &values, (size_t)count * sizeof *target);
}
#endif
#endif

// Compilers make four instructions of a conversion to Words that is one.
SIMD_INLINE Floats floats_of_bfloat16(const void *source) {
#if defined(TL_ISA_avx512)
    Words words = (Words)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)source));
#elif defined(TL_ISA_avx2)
    Words words = (Words)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)source));
#else
    Halves bits;
    memcpy(&bits, source, sizeof bits);
    Words words = __builtin_convertvector(bits, Words);
#endif
    return (Floats)(words << 16);
}

SIMD_INLINE Floats floats_of_float16(const void *source) {
#if defined(TL_ISA_avx512)
    return (Floats)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)source));
#elif defined(TL_ISA_avx2)
    return (Floats)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)source));
#else
    // The exponent is rebased by a multiplication, which is exact and serves subnormals as well.
    Halves bits;
    memcpy(&bits, source, sizeof bits);
    Words words = __builtin_convertvector(bits, Words);
    Words magnitude = (words & 0x7FFFu) << 13;
    Words special = (Words)(magnitude >= 0x0F800000u) & 0x7F800000u; // infinities and NaN
    Floats values = (Floats)magnitude * 0x1p112f;
    return (Floats)((Words)values | special | (words & 0x8000u) << 16);
#endif
}

// The factor of a quantised block.
SIMD_INLINE float float_of_half_at(const uint8_t *source) {
    uint16_t bits;
    memcpy(&bits, source, sizeof bits);
#if defined(TL_ISA_avx512) || defined(TL_ISA_avx2)
    return _cvtsh_ss(bits);
#else
    return half_to_float(bits);
#endif
}

// The halves of a vector added, then the halves of that, down to one lane: in this order with every
// compiler, which _mm512_reduce_add_ps is not.
SIMD_INLINE float floats_sum(Floats values) {
#if defined(TL_ISA_avx512) || defined(TL_ISA_avx2)
#if defined(TL_ISA_avx512)
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256((__m512)values),
                                 _mm512_extractf32x8_ps((__m512)values, 1));
#else
    __m256 eight = (__m256)values;
#endif
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return four[0] + four[1];
#else
    return (values[0] + values[2]) + (values[1] + values[3]);
#endif
}

// The largest lane, of which none is NaN.
SIMD_INLINE float floats_maximum(Floats values) {
#if defined(TL_ISA_avx512)
    return _mm512_reduce_max_ps((__m512)values);
#elif defined(TL_ISA_avx2)
    __m128 four = _mm_max_ps(_mm256_castps256_ps128((__m256)values),
                             _mm256_extractf128_ps((__m256)values, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return four[0] > four[1] ? four[0] : four[1];
#else
    float low = values[0] > values[2] ? values[0] : values[2];
    float high = values[1] > values[3] ? values[1] : values[3];
    return low > high ? low : high;
#endif
}

#define LANES_OF(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)

// The sums of four vectors at once, each with the same additions as floats_sum.
SIMD_INLINE void floats_sum_four(const Floats values[4], float out[4]) {
    const Floats a = values[0], b = values[1], c = values[2], d = values[3];
#if defined(TL_ISA_avx512)
    Floats ab = LANES_OF(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
                LANES_OF(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    Floats cd = LANES_OF(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
                LANES_OF(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    Floats four = LANES_OF(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
                  LANES_OF(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    four += LANES_OF(four, four, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    four += LANES_OF(four, four, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    enum { A = 0, B = 4, C = 8, D = 12 };
#elif defined(TL_ISA_avx2)
    Floats ab =
        LANES_OF(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + LANES_OF(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    Floats cd =
        LANES_OF(c, d, 0, 1, 2, 3, 8, 9, 10, 11) + LANES_OF(c, d, 4, 5, 6, 7, 12, 13, 14, 15);
    Floats four =
        LANES_OF(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) + LANES_OF(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
    four += LANES_OF(four, four, 1, 0, 3, 2, 5, 4, 7, 6);
    enum { A = 0, B = 4, C = 2, D = 6 };
#else
    Floats ab = LANES_OF(a, b, 0, 1, 4, 5) + LANES_OF(a, b, 2, 3, 6, 7);
    Floats cd = LANES_OF(c, d, 0, 1, 4, 5) + LANES_OF(c, d, 2, 3, 6, 7);
    Floats four = LANES_OF(ab, cd, 0, 2, 4, 6) + LANES_OF(ab, cd, 1, 3, 5, 7);
    enum { A = 0, B = 1, C = 2, D = 3 };
#endif
    Four sums = LANES_OF(four, four, A, B, C, D);
    memcpy(out, &sums, sizeof sums);
}

SIMD_INLINE double doubles_sum(Doubles values) {
#if defined(TL_ISA_avx512)
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256((__m512d)values),
                                 _mm512_extractf64x4_pd((__m512d)values, 1));
    return (four[0] + four[2]) + (four[1] + four[3]);
#elif defined(TL_ISA_avx2)
    return (values[0] + values[2]) + (values[1] + values[3]);
#else
    return values[0] + values[1];
#endif
}

SIMD_INLINE void doubles_sum_four(const Doubles values[4], double out[4]) {
    for (int i = 0; i < 4; i++) out[i] = doubles_sum(values[i]);
}

#endif
