// Philox blocks and normal numbers in float32. No multiplication may be fused with an addition
// here: the same seed gives the same numbers on every machine.
#include "device/cpu/random.h"

#include <math.h>
#include <string.h>

static const uint32_t multipliers[2] = {0xD2511F53u, 0xCD9E8D57u};
static const uint32_t key_steps[2] = {0x9E3779B9u, 0xBB67AE85u};

void ISA(random_blocks)(uint64_t key, uint64_t first, RandomBlocks *out) {
    int count = out->count;
    for (int i = 0; i < count; i++) {
        uint64_t counter = first + (uint64_t)i;
        uint32_t a = (uint32_t)counter, b = (uint32_t)(counter >> 32), c = 0, d = 0;
        uint32_t key_a = (uint32_t)key, key_b = (uint32_t)(key >> 32);
        for (int round = 0; round < 10; round++) {
            uint64_t product_a = (uint64_t)multipliers[0] * a;
            uint64_t product_c = (uint64_t)multipliers[1] * c;
            a = (uint32_t)(product_c >> 32) ^ b ^ key_a;
            b = (uint32_t)product_c;
            c = (uint32_t)(product_a >> 32) ^ d ^ key_b;
            d = (uint32_t)product_a;
            key_a += key_steps[0];
            key_b += key_steps[1];
        }
        out->words[0][i] = a;
        out->words[1][i] = b;
        out->words[2][i] = c;
        out->words[3][i] = d;
    }
}

// Both words are exact as doubles, and so is their sum.
static inline double fraction_of(uint32_t high, uint32_t low) {
    double upper = (double)(int32_t)(high ^ 0x80000000u) + 0x1p31; // signed: vectors convert those
    return upper * 0x1p-32 + (double)(int32_t)(low >> 11) * 0x1p-53;
}

void ISA(random_fractions)(const RandomBlocks *blocks, double *out) {
    int count = blocks->count;
    for (int i = 0; i < count; i++) {
        out[2 * i] = fraction_of(blocks->words[0][i], blocks->words[1][i]);
        out[2 * i + 1] = fraction_of(blocks->words[2][i], blocks->words[3][i]);
    }
}

// The natural logarithm of a number in (0, 1]: exponent and mantissa apart, the mantissa in
// [sqrt(1/2), sqrt(2)) by the series of artanh.
static inline float log_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t shifted = bits - 0x3F3504F3u; // sqrt(1/2)
    float exponent = (float)((int32_t)shifted >> 23);
    uint32_t mantissa_bits = (shifted & 0x7FFFFFu) + 0x3F3504F3u;
    float mantissa;
    memcpy(&mantissa, &mantissa_bits, sizeof mantissa);
    float s = (mantissa - 1.0f) / (mantissa + 1.0f), q = s * s;
    float series = 1.0f + q * (1.0f / 3 + q * (1.0f / 5 + q * (1.0f / 7 + q * (1.0f / 9))));
    return exponent * 0.69314718f + 2.0f * s * series;
}

// Sine and cosine of an angle in [-pi/4, pi/4], by their series.
static inline float sine_of(float x) {
    float q = x * x;
    return x * (1.0f - q * (1.0f / 6 - q * (1.0f / 120 - q * (1.0f / 5040 - q * (1.0f / 362880)))));
}

static inline float cosine_of(float x) {
    float q = x * x;
    float tail = 1.0f / 24 - q * (1.0f / 720 - q * (1.0f / 40320 - q * (1.0f / 3628800)));
    return 1.0f - q * (0.5f - q * tail);
}

// Box-Muller: radius from the first word, angle from the third, as a quarter turn and the rest.
void ISA(random_normals)(const RandomBlocks *blocks, float *out) {
    float x[RANDOM_CHUNK], y[RANDOM_CHUNK];
    int count = blocks->count;
    for (int i = 0; i < count; i++) {
        float uniform = ((float)(int32_t)(blocks->words[0][i] >> 8) + 1.0f) * 0x1p-24f;
        float radius = sqrtf(-2.0f * log_of(uniform));
        uint32_t turn = blocks->words[2][i];
        uint32_t quarter = (turn + 0x20000000u) >> 30;
        float angle = (float)(int32_t)(turn - (quarter << 30)) * (6.2831853f * 0x1p-32f);
        float sine = sine_of(angle), cosine = cosine_of(angle);
        float swapped_x = quarter & 1 ? -sine : cosine, swapped_y = quarter & 1 ? cosine : sine;
        x[i] = radius * (quarter & 2 ? -swapped_x : swapped_x);
        y[i] = radius * (quarter & 2 ? -swapped_y : swapped_y);
    }
    for (int i = 0; i < count; i++) {
        out[2 * i] = x[i];
        out[2 * i + 1] = y[i];
    }
}
