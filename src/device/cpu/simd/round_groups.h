// Rounds activations to integers by groups of 32, in the digits that products of interleaved
// weights take. Formats: device/cpu/repacked.h.
#ifndef DEVICE_CPU_SIMD_ROUND_GROUPS_H
#define DEVICE_CPU_SIMD_ROUND_GROUPS_H

#include "device/cpu/repacked.h"
#include "device/cpu/simd/lanes.h"

// Activations 0 and 2 of four as a pair of 16 bits, then 1 and 3.
SIMD_INLINE void pairs_store(const int16_t *integers, int8_t *digits) {
    uint64_t quads[QUADS];
    memcpy(quads, integers, sizeof quads);
    for (int q = 0; q < QUADS; q++)
        quads[q] = (quads[q] & 0xFFFF00000000FFFFu) | (quads[q] & 0xFFFF0000u) << 16 |
                   (quads[q] >> 16 & 0xFFFF0000u);
    memcpy(digits, quads, sizeof quads);
}

#if defined(TL_ISA_avx512vnni) || defined(TL_ISA_avxvnni)
// a = 256 * high + low, both signed bytes: the high ones, then the low ones.
SIMD_INLINE void digits_store(const int16_t *integers, int8_t *digits) {
    for (int i = 0; i < GROUP_WEIGHTS; i++) {
        digits[i] = (int8_t)((integers[i] + 128) >> 8);
        digits[GROUP_WEIGHTS + i] = (int8_t)integers[i];
    }
}

#else
#define digits_store pairs_store
#endif

// The largest magnitude as bits, which order like the numbers; infinities and NaN lie above.
static uint32_t largest_bits(const float *numbers) {
    uint32_t largest = 0;
    for (int i = 0; i < GROUP_WEIGHTS; i++) {
        uint32_t magnitude;
        memcpy(&magnitude, numbers + i, sizeof magnitude);
        magnitude &= 0x7FFFFFFFu;
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

static float float_of_bits(uint32_t bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

// The largest power of two that is not above a positive normal number.
static float power_of_two(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return float_of_bits(bits & 0x7F800000u);
}

// Integers as floats, whose sums are exact.
SIMD_INLINE void round_numbers(const float *numbers, float factor, float *integers) {
    for (int i = 0; i < GROUP_WEIGHTS; i++) integers[i] = __builtin_rintf(numbers[i] * factor);
}

SIMD_INLINE int32_t half_sum(const float *integers) {
    Floats sum = {0};
    for (int i = 0; i < GROUP_WEIGHTS / 2; i += LANES) sum += float_vector_at(integers + i);
    return (int32_t)floats_sum(sum);
}

SIMD_INLINE void group_store(const float *integers, float scale, ActivationForm form,
                             ActivationGroup *out) {
    int16_t shorts[GROUP_WEIGHTS];
    for (int i = 0; i < GROUP_WEIGHTS; i++) shorts[i] = (int16_t)(int32_t)integers[i];
    out->scale = scale;
    out->half = half_sum(integers);
    out->sum = out->half + half_sum(integers + GROUP_WEIGHTS / 2);
    out->scaled_sum = scale * (float)out->sum;
    if (form & ACTIVATIONS_PAIRS)
        pairs_store(shorts, out->digits);
    else
        digits_store(shorts, out->digits);
}

// The scale with which the integers are nearest to the numbers, by the method of least squares.
SIMD_INLINE float fitted_scale(const float *numbers, const float *integers) {
    Floats products = {0}, squares = {0};
    for (int i = 0; i < GROUP_WEIGHTS; i += LANES) {
        Floats lanes = float_vector_at(integers + i);
        products += float_vector_at(numbers + i) * lanes;
        squares += lanes * lanes;
    }
    float product = 0, square = 0;
    for (int lane = 0; lane < LANES; lane++) {
        product += products[lane];
        square += squares[lane];
    }
    return square > 0 ? product / square : 0;
}

SIMD_INLINE bool round_groups(const float *numbers, int64_t groups, ActivationForm form,
                              ActivationRow out) {
    for (int64_t g = 0; g < groups; g++, numbers += GROUP_WEIGHTS) {
        float largest = float_of_bits(largest_bits(numbers));
        if (!(largest <= ACTIVATION_MOST)) return false;
        const bool zero = largest < ACTIVATION_LEAST;
        ActivationGroup *group = out.first + g * out.step;
        float integers[GROUP_WEIGHTS];
        if (form & ACTIVATIONS_8) {
            round_numbers(numbers, zero ? 0 : FAST_UNITS / largest, integers);
            group_store(integers, fitted_scale(numbers, integers), form, group);
        } else {
            // A power of two: numbers of few digits stay exact. 16256 to 32639 integers cover the
            // largest.
            float power = zero ? 0 : power_of_two(largest * ACTIVATION_MARGIN);
            round_numbers(numbers, zero ? 0 : ACTIVATION_UNITS / power, integers);
            group_store(integers, power / ACTIVATION_UNITS, form, group);
        }
    }
    return true;
}

#define ROUND(name, form)                                                                          \
    static bool name(const float *numbers, int64_t groups, ActivationRow out) {                    \
        return round_groups(numbers, groups, form, out);                                           \
    }
ROUND(round_16, ACTIVATIONS_16)
ROUND(round_8, ACTIVATIONS_8)
ROUND(round_16_pairs, ACTIVATIONS_16 | ACTIVATIONS_PAIRS)
ROUND(round_8_pairs, ACTIVATIONS_8 | ACTIVATIONS_PAIRS)

#endif
