// The rest of GGUF's quantised blocks: with minima, with high bits apart, by table, and ternary;
// 32 weights at a time as in blocks.h. Exactly the float32 numbers that define the formats.
#ifndef DEVICE_CPU_SIMD_BLOCKS_MORE_H
#define DEVICE_CPU_SIMD_BLOCKS_MORE_H

#include <stdbool.h>

#include "device/cpu/simd/blocks.h"

// A product that is rounded before it is added to: the formats do not fuse the two.
SIMD_INLINE Floats floats_rounded(Floats product) {
#if defined(TL_ISA_avx512)
    __asm__("" : "+v"(product));
#elif defined(TL_ISA_avx2)
    __asm__("" : "+x"(product));
#endif
    return product;
}

SIMD_INLINE Floats floats_of_ints(Ints numbers) {
    return __builtin_convertvector(numbers, Floats);
}

SIMD_INLINE const uint8_t *superblock_at(const char *row, int64_t first, int bytes) {
    return (const uint8_t *)row + first / SUPERBLOCK * bytes;
}

// Nibbles of 16 bytes: vector i of 32 numbers, the low ones first.
SIMD_INLINE Ints nibbles_of(const uint8_t *bytes, int i) {
    bool above = i >= GROUP_VECTORS / 2;
    return ints_of_bytes(bytes + i % (GROUP_VECTORS / 2) * LANES) >> (above ? 4 : 0) & 15;
}

// Bit i * LANES + lane of a word, in each lane.
SIMD_INLINE Ints bits_of(const uint8_t *source, int i) {
    static const uint32_t counts[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    uint32_t bits;
    Words lanes;
    memcpy(&bits, source, sizeof bits);
    memcpy(&lanes, counts, sizeof lanes);
    return (Ints)(((Words){0} + (bits >> i * LANES)) >> lanes & 1u);
}

SIMD_INLINE void group_of_Q4_1(const char *row, int64_t first, Floats *weights) {
    // float16 d, float16 minimum, 16 bytes of nibbles.
    const uint8_t *block = (const uint8_t *)row + first / GROUP * Q4_1_BYTES;
    float d = float_of_half_at(block), minimum = float_of_half_at(block + 2);
    for (int i = 0; i < GROUP_VECTORS; i++)
        weights[i] = floats_rounded(floats_of_ints(nibbles_of(block + 4, i)) * d) + minimum;
}

SIMD_INLINE void group_of_Q5_0(const char *row, int64_t first, Floats *weights) {
    // float16 d, 32 fifth bits, 16 bytes of nibbles.
    const uint8_t *block = (const uint8_t *)row + first / GROUP * Q5_0_BYTES;
    float d = float_of_half_at(block);
    for (int i = 0; i < GROUP_VECTORS; i++) {
        Ints numbers = nibbles_of(block + 6, i) | bits_of(block + 2, i) << 4;
        weights[i] = floats_of_ints(numbers - 16) * d;
    }
}

SIMD_INLINE void group_of_Q5_1(const char *row, int64_t first, Floats *weights) {
    // float16 d, float16 minimum, 32 fifth bits, 16 bytes of nibbles.
    const uint8_t *block = (const uint8_t *)row + first / GROUP * Q5_1_BYTES;
    float d = float_of_half_at(block), minimum = float_of_half_at(block + 2);
    for (int i = 0; i < GROUP_VECTORS; i++) {
        Ints numbers = nibbles_of(block + 8, i) | bits_of(block + 4, i) << 4;
        weights[i] = floats_rounded(floats_of_ints(numbers) * d) + minimum;
    }
}

// The bits of group `group` among 64 bytes of pairs: each half of 128 weights has 32 bytes, and its
// four groups take the pairs from the lowest up.
SIMD_INLINE Ints pairs_of(const uint8_t *bytes, int group, int i) {
    return ints_of_bytes(bytes + group / 4 * 32 + i * LANES) >> group % 4 * 2 & 3;
}

SIMD_INLINE void group_of_Q2_K(const char *row, int64_t first, Floats *weights) {
    // 16 bytes, each a scale below and a minimum above for 16 weights; 64 bytes of pairs; float16 d
    // and float16 factor of the minima.
    const uint8_t *block = superblock_at(row, first, Q2_K_BYTES);
    int group = (int)(first / GROUP % SUPERBLOCK_GROUPS);
    float d = float_of_half_at(block + 80), least = float_of_half_at(block + 82);
    for (int i = 0; i < GROUP_VECTORS; i++) {
        int scale = block[group * 2 + i * LANES / 16];
        Floats numbers = floats_of_ints(pairs_of(block + 16, group, i));
        weights[i] =
            floats_rounded(numbers * (d * (float)(scale & 15))) - least * (float)(scale >> 4);
    }
}

SIMD_INLINE void group_of_Q3_K(const char *row, int64_t first, Floats *weights) {
    // 32 bytes of high bits, bit g of each for group g; 64 bytes of pairs; 16 scales of 6 bits: 8
    // bytes of low nibbles, then 4 bytes of high pairs; float16 d.
    const uint8_t *block = superblock_at(row, first, Q3_K_BYTES), *scales = block + 96;
    int group = (int)(first / GROUP % SUPERBLOCK_GROUPS);
    float d = float_of_half_at(block + 108);
    for (int i = 0; i < GROUP_VECTORS; i++) {
        int which = group * 2 + i * LANES / 16;
        int low = scales[which % 8] >> which / 8 * 4 & 15;
        int scale = low | (scales[8 + which % 4] >> which / 4 * 2 & 3) << 4;
        Ints high = ints_of_bytes(block + i * LANES) >> group & 1;
        Ints numbers = pairs_of(block + 32, group, i) + high * 4 - 4;
        weights[i] = floats_of_ints(numbers) * (d * (float)(scale - 32));
    }
}

// Scale and minimum of a group of Q4_K and Q5_K: 6 bits each, packed in 12 bytes.
SIMD_INLINE void scale_and_minimum(const uint8_t *packed, int group, int *scale, int *minimum) {
    if (group < 4) {
        *scale = packed[group] & 63;
        *minimum = packed[group + 4] & 63;
    } else {
        *scale = (packed[group + 4] & 15) | packed[group - 4] >> 6 << 4;
        *minimum = packed[group + 4] >> 4 | packed[group] >> 6 << 4;
    }
}

SIMD_INLINE void group_of_Q4_K(const char *row, int64_t first, Floats *weights) {
    // float16 d, float16 factor of the minima, 12 bytes of scales and minima, 128 bytes of nibbles:
    // 32 bytes serve two groups.
    const uint8_t *block = superblock_at(row, first, Q4_K_BYTES);
    int group = (int)(first / GROUP % SUPERBLOCK_GROUPS), scale, minimum;
    scale_and_minimum(block + 4, group, &scale, &minimum);
    float d = float_of_half_at(block) * (float)scale;
    float least = float_of_half_at(block + 2) * (float)minimum;
    const uint8_t *bytes = block + 16 + group / 2 * 32;
    for (int i = 0; i < GROUP_VECTORS; i++) {
        Ints numbers = ints_of_bytes(bytes + i * LANES) >> group % 2 * 4 & 15;
        weights[i] = floats_rounded(floats_of_ints(numbers) * d) - least;
    }
}

SIMD_INLINE void group_of_Q5_K(const char *row, int64_t first, Floats *weights) {
    // As Q4_K, with 32 bytes of fifth bits before the nibbles: bit g of each for group g.
    const uint8_t *block = superblock_at(row, first, Q5_K_BYTES);
    int group = (int)(first / GROUP % SUPERBLOCK_GROUPS), scale, minimum;
    scale_and_minimum(block + 4, group, &scale, &minimum);
    float d = float_of_half_at(block) * (float)scale;
    float least = float_of_half_at(block + 2) * (float)minimum;
    const uint8_t *bytes = block + 48 + group / 2 * 32;
    for (int i = 0; i < GROUP_VECTORS; i++) {
        Ints high = ints_of_bytes(block + 16 + i * LANES) >> group & 1;
        Ints numbers = (ints_of_bytes(bytes + i * LANES) >> group % 2 * 4 & 15) | high << 4;
        weights[i] = floats_rounded(floats_of_ints(numbers) * d) - least;
    }
}

// 16 bytes of nibbles that number the sixteen values of the IQ4 types.
SIMD_INLINE void group_of_table(const uint8_t *bytes, float factor, Floats *weights) {
    static const float table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                    1,    13,   25,  38,  53,  69,  89,  113};
    float values[GROUP];
    for (int j = 0; j < GROUP / 2; j++) {
        values[j] = table[bytes[j] & 15];
        values[j + GROUP / 2] = table[bytes[j] >> 4];
    }
    for (int i = 0; i < GROUP_VECTORS; i++)
        weights[i] = float_vector_at(values + i * LANES) * factor;
}

SIMD_INLINE void group_of_IQ4_NL(const char *row, int64_t first, Floats *weights) {
    // float16 d, 16 bytes of nibbles.
    const uint8_t *block = (const uint8_t *)row + first / GROUP * IQ4_NL_BYTES;
    group_of_table(block + 2, float_of_half_at(block), weights);
}

SIMD_INLINE void group_of_IQ4_XS(const char *row, int64_t first, Floats *weights) {
    // float16 d, 8 high pairs and 8 low nibbles of the groups' scales, 16 bytes of nibbles a group.
    const uint8_t *block = superblock_at(row, first, IQ4_XS_BYTES);
    int group = (int)(first / GROUP % SUPERBLOCK_GROUPS);
    int low = block[4 + group / 2] >> group % 2 * 4 & 15;
    int scale = low | (block[2 + group / 4] >> group % 4 * 2 & 3) << 4;
    group_of_table(block + 8 + group * 16, float_of_half_at(block) * (float)(scale - 32), weights);
}

// Digit `digit` (from the front) of a byte that holds a fraction of 256 in base 3.
SIMD_INLINE int ternary_digit(int byte, int digit) {
    static const int powers[5] = {1, 3, 9, 27, 81};
    return (byte * powers[digit] & 255) * 3 >> 8;
}

SIMD_INLINE void group_of_TQ1_0(const char *row, int64_t first, Floats *weights) {
    // 48 bytes of five digits: 32 bytes hold weights 0..159, 16 bytes 160..239, digit by digit; 4
    // bytes of four digits hold the rest; float16 d.
    const uint8_t *block = superblock_at(row, first, TQ1_0_BYTES);
    int group = (int)(first / GROUP % SUPERBLOCK_GROUPS);
    float d = float_of_half_at(block + 52), values[GROUP];
    for (int j = 0; j < GROUP; j++) {
        int weight = group * GROUP + j, digit;
        if (weight < 160)
            digit = ternary_digit(block[j], group);
        else if (weight < 240)
            digit = ternary_digit(block[32 + j % 16], (weight - 160) / 16);
        else
            digit = ternary_digit(block[48 + j % 4], (weight - 240) / 4);
        values[j] = (float)(digit - 1);
    }
    for (int i = 0; i < GROUP_VECTORS; i++) weights[i] = float_vector_at(values + i * LANES) * d;
}

SIMD_INLINE void group_of_TQ2_0(const char *row, int64_t first, Floats *weights) {
    // 64 bytes of pairs, float16 d.
    const uint8_t *block = superblock_at(row, first, TQ2_0_BYTES);
    int group = (int)(first / GROUP % SUPERBLOCK_GROUPS);
    float d = float_of_half_at(block + 64);
    for (int i = 0; i < GROUP_VECTORS; i++)
        weights[i] = floats_of_ints(pairs_of(block, group, i) - 1) * d;
}

#endif
