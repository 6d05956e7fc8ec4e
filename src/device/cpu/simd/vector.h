// What elementwise files of simd/ share: the promise that iterations are independent, and numbers
// of the 16-bit float types. Included only there: everything is compiled once per instruction set.
#ifndef DEVICE_CPU_SIMD_VECTOR_H
#define DEVICE_CPU_SIMD_VECTOR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/half.h"
#include "device/cpu/cpu.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

// Before a loop whose iterations touch different elements; operands may be the result itself.
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#else
#define INDEPENDENT _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#endif

#define INLINE static inline __attribute__((always_inline, unused))

INLINE uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

INLINE float float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE float widen_bfloat(uint16_t value) {
    return float_from_bits((uint32_t)value << 16);
}

INLINE uint16_t narrow_bfloat(float value) {
    uint32_t bits = float_bits(value);
    uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? (bits >> 16 | 0x40u) : rounded);
}

#if defined(__F16C__)
INLINE float widen_half(uint16_t value) {
    return _cvtsh_ss(value);
}
INLINE uint16_t narrow_half(float value) {
    return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
}
#else
INLINE float widen_half(uint16_t value) {
    return half_to_float(value);
}
INLINE uint16_t narrow_half(float value) {
    return half_from_float(value);
}
#endif

// The float next to `value` toward zero, its last bit set when anything was lost: rounding that to
// fewer bits gives what rounding the double at once would.
INLINE float round_to_odd(double value) {
    float near = (float)value;
    uint32_t bits = float_bits(near);
    uint32_t toward_zero = bits - (fabs((double)near) > fabs(value) ? 1u : 0u);
    return (double)near != value && value == value ? float_from_bits(toward_zero | 1u) : near;
}

// `count` halves to floats and back, contiguous.
INLINE void widen_halves(float *to, const uint16_t *from, int64_t count) {
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
#elif defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
#endif
    for (; i < count; i++) to[i] = widen_half(from[i]);
}

INLINE void narrow_halves(uint16_t *to, const float *from, int64_t count) {
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256((__m256i *)(to + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < count; i++) to[i] = narrow_half(from[i]);
}

#endif
