// GGUF's blocks of numbers from a lattice, IQ1 to IQ3, and MXFP4; 32 weights at a time as in
// blocks.h. Exactly the float32 numbers that define the formats.
#ifndef DEVICE_CPU_SIMD_BLOCKS_GRID_H
#define DEVICE_CPU_SIMD_BLOCKS_GRID_H

#include "device/cpu/grids.h"
#include "device/cpu/simd/blocks_more.h"

SIMD_INLINE uint32_t word_at(const uint8_t *bytes, int count) {
    uint32_t word = 0;
    memcpy(&word, bytes, (size_t)count);
    return word;
}

SIMD_INLINE void group_times(const float *values, const float *factors, Floats *weights) {
    for (int i = 0; i < GROUP_VECTORS; i++) // a factor for each 16 weights
        weights[i] = float_vector_at(values + i * LANES) * factors[i * LANES / (GROUP / 2)];
}

// Seven signs and an eighth that makes their number even.
SIMD_INLINE unsigned signs_of(unsigned seven) {
    return seven | ((unsigned)__builtin_popcount(seven) & 1u) << 7;
}

SIMD_INLINE float signed_by(unsigned signs, int bit, int number) {
    return (float)(signs >> bit & 1u ? -number : number);
}

// Eight numbers of 8, 25 and 43.
SIMD_INLINE void eight_of_iq2(unsigned entry, unsigned signs, float *values) {
    static const int numbers[4] = {8, 25, 43, 0};
    for (int j = 0; j < 8; j++) values[j] = signed_by(signs, j, numbers[entry >> j * 2 & 3u]);
}

// Four numbers of IQ3_XXS (4, 12 ... 52, 62) or IQ3_S (1, 3 ... 15), signed by bits from `bit` on.
SIMD_INLINE void four_of_iq3(unsigned entry, bool wide, unsigned signs, int bit, float *values) {
    for (int j = 0; j < 4; j++) {
        int level = (int)(entry >> j * 3 & 7u);
        int number = wide ? level * 8 + 4 + (level == 7 ? 2 : 0) : level * 2 + 1;
        values[j] = signed_by(signs, bit + j, number);
    }
}

// Eight numbers of -1, 0 and 1, shifted.
SIMD_INLINE void eight_of_iq1(unsigned entry, bool down, float *values) {
    for (int j = 0; j < 8; j++)
        values[j] = (float)((int)(entry >> j * 2 & 3u) - 1) + (down ? -0.125f : 0.125f);
}

SIMD_INLINE void group_of_MXFP4(const char *row, int64_t first, Floats *weights) {
    // A power of two, biased by 128 because values are doubled; 16 bytes of nibbles.
    static const float table[16] = {0, 1, 2, 3, 4, 6, 8, 12, -0.0f, -1, -2, -3, -4, -6, -8, -12};
    const uint8_t *block = (const uint8_t *)row + first / GROUP * MXFP4_BYTES;
    uint32_t bits = block[0] < 2 ? 0x200000u << block[0] : (uint32_t)(block[0] - 1) << 23;
    float values[GROUP], factor;
    memcpy(&factor, &bits, sizeof factor);
    for (int j = 0; j < GROUP / 2; j++) {
        values[j] = table[block[1 + j] & 15];
        values[j + GROUP / 2] = table[block[1 + j] >> 4];
    }
    group_times(values, (float[]){factor, factor}, weights);
}

SIMD_INLINE void group_of_IQ2_XXS(const char *row, int64_t first, Floats *weights) {
    // float16 d; a group has 4 bytes of entries, four times 7 signs and a scale of 4 bits.
    const uint8_t *block = superblock_at(row, first, IQ2_XXS_BYTES);
    const uint8_t *group = block + 2 + first / GROUP % SUPERBLOCK_GROUPS * 8;
    uint32_t signs = word_at(group + 4, 4);
    float values[GROUP], factor = float_of_half_at(block) * (0.5f + (float)(signs >> 28)) * 0.25f;
    for (int l = 0; l < 4; l++)
        eight_of_iq2(grid_iq2_xxs[group[l]], signs_of(signs >> l * 7 & 127u), values + l * 8);
    group_times(values, (float[]){factor, factor}, weights);
}

// The two scales of 4 bits of a group of IQ2_XS and IQ2_S.
SIMD_INLINE void factors_of_iq2(float d, uint8_t scales, float *factors) {
    factors[0] = d * (0.5f + (float)(scales & 15)) * 0.25f;
    factors[1] = d * (0.5f + (float)(scales >> 4)) * 0.25f;
}

SIMD_INLINE void group_of_IQ2_XS(const char *row, int64_t first, Floats *weights) {
    // float16 d; 9 bits of an entry and 7 signs for each 8 weights; a byte of two scales a group.
    const uint8_t *block = superblock_at(row, first, IQ2_XS_BYTES);
    int group = (int)(first / GROUP % SUPERBLOCK_GROUPS);
    float values[GROUP], factors[2];
    factors_of_iq2(float_of_half_at(block), block[66 + group], factors);
    for (int l = 0; l < 4; l++) {
        uint32_t word = word_at(block + 2 + group * 8 + l * 2, 2);
        eight_of_iq2(grid_iq2_xs[word & 511u], signs_of(word >> 9), values + l * 8);
    }
    group_times(values, factors, weights);
}

SIMD_INLINE void group_of_IQ2_S(const char *row, int64_t first, Floats *weights) {
    // float16 d; 32 bytes of entries' low bits, 32 of signs, a byte of 4 high pairs a group, a byte
    // of two scales a group.
    const uint8_t *block = superblock_at(row, first, IQ2_S_BYTES);
    int group = (int)(first / GROUP % SUPERBLOCK_GROUPS);
    float values[GROUP], factors[2];
    factors_of_iq2(float_of_half_at(block), block[74 + group], factors);
    for (int l = 0; l < 4; l++) {
        const uint8_t *low = block + 2 + group * 4 + l;
        unsigned high = block[66 + group] >> l * 2 & 3u;
        eight_of_iq2(grid_iq2_s[*low | high << 8], low[32], values + l * 8);
    }
    group_times(values, factors, weights);
}

SIMD_INLINE void group_of_IQ3_XXS(const char *row, int64_t first, Floats *weights) {
    // float16 d; 64 bytes of entries; a word of four times 7 signs and a scale of 4 bits a group.
    const uint8_t *block = superblock_at(row, first, IQ3_XXS_BYTES);
    int group = (int)(first / GROUP % SUPERBLOCK_GROUPS);
    uint32_t word = word_at(block + 66 + group * 4, 4);
    float values[GROUP], factor = float_of_half_at(block) * (0.5f + (float)(word >> 28)) * 0.5f;
    for (int l = 0; l < 8; l++)
        four_of_iq3(grid_iq3_xxs[block[2 + group * 8 + l]], true,
                    signs_of(word >> l / 2 * 7 & 127u), l % 2 * 4, values + l * 4);
    group_times(values, (float[]){factor, factor}, weights);
}

SIMD_INLINE void group_of_IQ3_S(const char *row, int64_t first, Floats *weights) {
    // float16 d; 64 bytes of entries' low bits, 8 bytes of their ninth, 32 of signs, 4 of scales.
    const uint8_t *block = superblock_at(row, first, IQ3_S_BYTES);
    int group = (int)(first / GROUP % SUPERBLOCK_GROUPS);
    int scale = block[106 + group / 2] >> group % 2 * 4 & 15;
    float values[GROUP], factor = float_of_half_at(block) * (float)(1 + 2 * scale);
    for (int l = 0; l < 8; l++) {
        unsigned ninth = block[66 + group] >> l & 1u;
        four_of_iq3(grid_iq3_s[block[2 + group * 8 + l] | ninth << 8], false,
                    block[74 + group * 4 + l / 2], l % 2 * 4, values + l * 4);
    }
    group_times(values, (float[]){factor, factor}, weights);
}

SIMD_INLINE void group_of_IQ1_S(const char *row, int64_t first, Floats *weights) {
    // float16 d; 32 bytes of entries' low bits; a pair of bytes a group: four times their high 3
    // bits, a scale of 3 bits, the shift.
    const uint8_t *block = superblock_at(row, first, IQ1_S_BYTES);
    int group = (int)(first / GROUP % SUPERBLOCK_GROUPS);
    uint32_t high = word_at(block + 34 + group * 2, 2);
    float values[GROUP], factor = float_of_half_at(block) * (float)(2 * (high >> 12 & 7u) + 1);
    for (int l = 0; l < 4; l++)
        eight_of_iq1(grid_iq1[block[2 + group * 4 + l] | (high >> l * 3 & 7u) << 8], high >> 15,
                     values + l * 8);
    group_times(values, (float[]){factor, factor}, weights);
}

SIMD_INLINE void group_of_IQ1_M(const char *row, int64_t first, Floats *weights) {
    // 32 bytes of entries' low bits, 16 of nibbles with their high 3 bits and shift, 4 words of
    // four scales of 3 bits, whose top nibbles are a float16.
    const uint8_t *block = superblock_at(row, first, IQ1_M_BYTES);
    int group = (int)(first / GROUP % SUPERBLOCK_GROUPS);
    uint16_t d = 0;
    for (int i = 0; i < 4; i++) d |= (uint16_t)(block[49 + i * 2] >> 4 << i * 4);
    uint32_t scales = word_at(block + 48 + group / 2 * 2, 2) >> group % 2 * 6;
    float factor = float_of_half_at((const uint8_t *)&d), values[GROUP];
    float factors[2] = {factor * (float)(2 * (scales & 7u) + 1),
                        factor * (float)(2 * (scales >> 3 & 7u) + 1)};
    for (int l = 0; l < 4; l++) {
        unsigned nibble = (unsigned)block[32 + group * 2 + l / 2] >> l % 2 * 4 & 15u;
        eight_of_iq1(grid_iq1[block[group * 4 + l] | (nibble & 7u) << 8], nibble >> 3,
                     values + l * 8);
    }
    group_times(values, factors, weights);
}

#endif
