// float16 and bfloat16 conversions in plain C; kernels use the machine's own where it has them.
#include "base/half.h"

#include <string.h>

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1Fu;
    uint32_t mantissa = half & 0x3FFu;
    if (exponent == 0x1F) return float_of(sign | 0x7F800000u | mantissa << 13);
    if (exponent != 0) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    float magnitude = (float)mantissa * 0x1p-24f; // subnormal or zero: exact
    return float_of(sign | bits_of(magnitude));
}

uint16_t half_from_float(float value) {
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return (uint16_t)(sign | 0x7E00u | (magnitude >> 13 & 0x3FFu));
    if (magnitude >= 0x477FF000u) return (uint16_t)(sign | 0x7C00u); // rounds beyond 65504
    if (magnitude < 0x38800000u) { // subnormal: adding 0.5 puts the last bit at 2^-24, rounded
        uint32_t rounded = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
        return (uint16_t)(sign | rounded);
    }
    uint32_t odd = magnitude >> 13 & 1u;
    return (uint16_t)(sign | (magnitude - 0x38000000u + 0xFFFu + odd) >> 13);
}

float bfloat_to_float(uint16_t bfloat) {
    return float_of((uint32_t)bfloat << 16);
}

uint16_t bfloat_from_float(float value) {
    uint32_t bits = bits_of(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}
