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

#define SIMD_INLINE static inline __attribute__((always_inline, unused))

typedef float Floats __attribute__((vector_size(LANES * 4)));
typedef int32_t Ints __attribute__((vector_size(LANES * 4)));
typedef uint32_t Words __attribute__((vector_size(LANES * 4)));
typedef uint16_t Halves __attribute__((vector_size(LANES * 2)));
typedef uint8_t Bytes __attribute__((vector_size(LANES)));
typedef int8_t SignedBytes __attribute__((vector_size(LANES)));
typedef double Doubles __attribute__((vector_size(DOUBLE_LANES * 8)));

SIMD_INLINE Floats floats_of_float32(const char *source) {
    Floats values;
    memcpy(&values, source, sizeof values);
    return values;
}

SIMD_INLINE Doubles doubles_of_float64(const char *source) {
    Doubles values;
    memcpy(&values, source, sizeof values);
    return values;
}

SIMD_INLINE Floats floats_of_bfloat16(const char *source) {
    Halves bits;
    memcpy(&bits, source, sizeof bits);
    return (Floats)(__builtin_convertvector(bits, Words) << 16);
}

SIMD_INLINE Floats floats_of_float16(const char *source) {
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

// Sums halve the vector: lane i and the lane half a vector above it, until one is left.
SIMD_INLINE float floats_sum(Floats values) {
#if defined(TL_ISA_avx512)
    return _mm512_reduce_add_ps((__m512)values);
#elif defined(TL_ISA_avx2)
    __m128 four = _mm_add_ps(_mm256_castps256_ps128((__m256)values),
                             _mm256_extractf128_ps((__m256)values, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return four[0] + four[1];
#else
    return (values[0] + values[2]) + (values[1] + values[3]);
#endif
}

SIMD_INLINE double doubles_sum(Doubles values) {
#if defined(TL_ISA_avx512)
    return _mm512_reduce_add_pd((__m512d)values);
#elif defined(TL_ISA_avx2)
    return (values[0] + values[2]) + (values[1] + values[3]);
#else
    return values[0] + values[1];
#endif
}

#endif
