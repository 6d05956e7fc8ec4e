// GGUF's quantised blocks, 32 weights at a time, to vectors of float32: exactly the float32
// products that define the formats. Knows no kernel.
#ifndef DEVICE_CPU_SIMD_BLOCKS_H
#define DEVICE_CPU_SIMD_BLOCKS_H

#include "device/cpu/simd/lanes.h"

enum {
    GROUP = 32, // weights that are read at once
    GROUP_VECTORS = GROUP / LANES,
    SUPERBLOCK = 256, // weights of a block of the K, XS and ternary types
    SUPERBLOCK_GROUPS = SUPERBLOCK / GROUP,
};
// Q4_0_BYTES...: of a block of each type.
enum {
#define DTYPE(code, name, kind, block, bytes, ...) code##_BYTES = (bytes),
#include "catalog/dtypes.def"
#undef DTYPE
};

SIMD_INLINE Ints ints_of_bytes(const uint8_t *source) {
#if defined(TL_ISA_avx512)
    return (Ints)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)source));
#elif defined(TL_ISA_avx2)
    return (Ints)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)source));
#else
    Bytes bytes;
    memcpy(&bytes, source, sizeof bytes);
    return __builtin_convertvector(bytes, Ints);
#endif
}

SIMD_INLINE Ints ints_of_signed_bytes(const uint8_t *source) {
#if defined(TL_ISA_avx512)
    return (Ints)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)source));
#elif defined(TL_ISA_avx2)
    return (Ints)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)source));
#else
    SignedBytes bytes;
    memcpy(&bytes, source, sizeof bytes);
    return __builtin_convertvector(bytes, Ints);
#endif
}

// The bytes of a group at once: what is done to them before they become floats costs a quarter.
// Shifts move pairs of bytes; the mask takes away what came from the neighbour.
typedef uint16_t GroupPairs __attribute__((vector_size(GROUP)));
typedef int8_t GroupBytes __attribute__((vector_size(GROUP)));

SIMD_INLINE void group_bits(const uint8_t *source, int shift, int mask, GroupPairs *out) {
    GroupPairs pairs;
    memcpy(&pairs, source, sizeof pairs);
    *out = pairs >> shift & (uint16_t)(mask << 8 | mask);
}

SIMD_INLINE void floats_of_group(const GroupBytes *bytes, Floats *out) {
#if defined(TL_ISA_avx512)
    out[0] =
        (Floats)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128((__m256i)*bytes)));
    out[1] = (Floats)_mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm256_extracti128_si256((__m256i)*bytes, 1)));
#else
    for (int i = 0; i < GROUP_VECTORS; i++)
        out[i] = __builtin_convertvector(ints_of_signed_bytes((const uint8_t *)bytes + i * LANES),
                                         Floats);
#endif
}

// Nibbles 0..15 in the low four bits (higher bits are noise) to -8..7.
SIMD_INLINE Floats floats_of_nibbles(Ints nibbles) {
#if defined(TL_ISA_avx512)
    const Floats table = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    return (Floats)_mm512_permutexvar_ps((__m512i)nibbles, (__m512)table);
#else
    return __builtin_convertvector((nibbles & 15) - 8, Floats);
#endif
}

// Each reads the weights [first, first + 32) of the row of blocks that begins at `row`.
SIMD_INLINE void group_of_Q4_0(const char *row, int64_t first, Floats *weights) {
    // A block: float16 d, then 16 bytes; byte j holds weight j below and weight j + 16 above.
    const uint8_t *block = (const uint8_t *)row + first / GROUP * Q4_0_BYTES;
    float d = float_of_half_at(block);
    for (int i = 0; i < GROUP_VECTORS / 2; i++) {
        Ints pairs = ints_of_bytes(block + 2 + i * LANES);
        weights[i] = floats_of_nibbles(pairs) * d;
        weights[i + GROUP_VECTORS / 2] = floats_of_nibbles(pairs >> 4) * d;
    }
}

SIMD_INLINE void group_of_Q8_0(const char *row, int64_t first, Floats *weights) {
    // A block: float16 d, then 32 signed bytes.
    const uint8_t *block = (const uint8_t *)row + first / GROUP * Q8_0_BYTES;
    float d = float_of_half_at(block);
    for (int i = 0; i < GROUP_VECTORS; i++)
        weights[i] =
            __builtin_convertvector(ints_of_signed_bytes(block + 2 + i * LANES), Floats) * d;
}

SIMD_INLINE void group_of_Q6_K(const char *row, int64_t first, Floats *weights) {
    // A block of 256: 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales, each
    // for 16 weights, float16 d. Each half of 128 weights has four groups of 32: groups 0 and 1 are
    // the low nibbles of its 64 bytes, 2 and 3 the high ones; group g uses bits 2g, 2g + 1 of the
    // half's 32 bytes of pairs.
    const uint8_t *block = (const uint8_t *)row + first / SUPERBLOCK * Q6_K_BYTES;
    int group = (int)(first % SUPERBLOCK / GROUP), half = group / 4, quarter = group % 4;
    const uint8_t *low = block + half * 64 + (quarter & 1) * 32;
    const uint8_t *high = block + 128 + half * 32;
    const int8_t *scales = (const int8_t *)block + 192 + group * 2;
    float d = float_of_half_at(block + 208);
    GroupPairs nibbles, pairs;
    group_bits(low, (quarter & 2) * 2, 15, &nibbles);
    group_bits(high, 2 * quarter, 3, &pairs);
    GroupBytes numbers = (GroupBytes)(nibbles | pairs << 4) - 32;
    floats_of_group(&numbers, weights);
    for (int i = 0; i < GROUP_VECTORS; i++) weights[i] *= d * (float)scales[i * LANES / 16];
}

#endif
