// RANDOM: Philox4x32-10. A number depends on key and counter alone; two neighbours share a block. A
// thread makes the numbers of two blocks, or of one where two numbers are 16 bytes. The arithmetic is
// that of the CPU's kernel, step by step.
#include "types.glsl"
#include "host/random.h"
#ifndef REAL_I64
#include "math.glsl"
#endif

layout(local_size_x = 256) in;
const uint UNIFORM = 0, NORMAL = 1, INTEGERS = 2, BERNOULLI = 3;

// The words of a block.
uvec4 philox(uint64_t block) {
    uvec4 x = uvec4(uint(block), uint(block >> 32), 0, 0);
    uvec2 k = uvec2(uint(key), uint(key >> 32));
    for (int round = 0; round < 10; round++) {
        uint high_x, low_x, high_z, low_z;
        umulExtended(0xD2511F53u, x.x, high_x, low_x);
        umulExtended(0xCD9E8D57u, x.z, high_z, low_z);
        x = uvec4(high_z ^ x.y ^ k.x, low_z, high_x ^ x.w ^ k.y, low_x);
        k += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return x;
}

uint64_t bits_of(uint high, uint low) {
    return uint64_t(high) << 32 | uint64_t(low);
}

#ifdef REAL_F32
// The logarithm of a number in (0, 1].
float log_of(float value) {
    uint shifted = floatBitsToUint(value) - 0x3F3504F3u;
    float exponent = float(int(shifted) >> 23);
    precise float mantissa = uintBitsToFloat((shifted & 0x7FFFFFu) + 0x3F3504F3u);
    precise float s = (mantissa - 1.0) / (mantissa + 1.0), q = s * s;
    precise float series =
        1.0 + q * (1.0 / 3.0 + q * (1.0 / 5.0 + q * (1.0 / 7.0 + q * (1.0 / 9.0))));
    precise float result = exponent * 0.69314718 + 2.0 * s * series;
    return result;
}

float sine_of(float x) {
    precise float q = x * x;
    precise float result =
        x * (1.0 - q * (1.0 / 6.0 - q * (1.0 / 120.0 - q * (1.0 / 5040.0 - q * (1.0 / 362880.0)))));
    return result;
}

float cosine_of(float x) {
    precise float q = x * x;
    precise float tail = 1.0 / 24.0 - q * (1.0 / 720.0 - q * (1.0 / 40320.0 - q * (1.0 / 3628800.0)));
    precise float result = 1.0 - q * (0.5 - q * tail);
    return result;
}

#define real2 vec2
vec2 normal_numbers(uvec4 words) {
    precise float uniform_number = (float(words.x >> 8) + 1.0) * 5.9604644775390625e-8;
    precise float radius = sqrt(-2.0 * log_of(uniform_number));
    uint turn = words.z, quarter = turn + 0x20000000u >> 30;
    precise float angle = float(int(turn - (quarter << 30))) * (6.2831853 * 2.3283064365386963e-10);
    float sine = sine_of(angle), cosine = cosine_of(angle);
    vec2 point = (quarter & 1u) != 0 ? vec2(-sine, cosine) : vec2(cosine, sine);
    precise vec2 numbers = a + b * (radius * ((quarter & 2u) != 0 ? -point : point));
    return numbers;
}
#elif defined(REAL_F64)
double fraction_of(uint high, uint low) {
    uint64_t bits = bits_of(high, low) >> 11;
    return double(uint(bits >> 32)) * R(4.76837158203125e-07) +
           double(uint(bits)) * R(1.1102230246251565e-16);
}

#define real2 dvec2
dvec2 normal_numbers(uvec4 words) {
    double radius = sqrt(R(-2) * real_log(fraction_of(words.x, words.y) + R(1.1102230246251565e-16)));
    double angle = R(6.283185307179586) * fraction_of(words.z, words.w);
    precise dvec2 numbers = a + b * (radius * dvec2(real_cos(angle), real_sin(angle)));
    return numbers;
}
#else
#define real2 i64vec2
#endif

// The high half of a product of 64 bits each.
uint64_t high_product(uint64_t x, uint64_t y) {
    uint64_t x_low = x & 0xFFFFFFFFUL, x_high = x >> 32, y_low = y & 0xFFFFFFFFUL, y_high = y >> 32;
    uint64_t low = x_low * y_low, middle = x_high * y_low + (low >> 32);
    uint64_t other = x_low * y_high + (middle & 0xFFFFFFFFUL);
    return x_high * y_high + (middle >> 32) + (other >> 32);
}

#if defined(REAL_F32)
float number_of(uint high, uint low) { // of BERNOULLI
    return bits_of(high, low) >> 11 < threshold ? 1.0 : 0.0;
}
#elif defined(REAL_I64)
int64_t number_of(uint high, uint low) {
    return a + int64_t(high_product(bits_of(high, low), uint64_t(b)));
}
#elif defined(REAL_F64)
double number_of(uint high, uint low) {
    if (DISTRIBUTION == BERNOULLI)
        return bits_of(high, low) >> 11 < threshold ? 1.0LF : 0.0LF;
    precise double number = a + fraction_of(high, low) * b;
    return number < highest ? number : highest;
}
#endif

// The numbers of a block.
real2 numbers_of(uint64_t block) {
    uvec4 words = philox(block);
#ifndef REAL_I64
    if (DISTRIBUTION == NORMAL) return normal_numbers(words);
#endif
    return real2(number_of(words.x, words.y), number_of(words.z, words.w));
}

void main() {
    uint64_t item = group_number() * 256UL + uint64_t(gl_LocalInvocationID.x);
    uint64_t odd = counter & 1UL; // then the first block's first number is not wanted
    uint bytes = element_bytes(OUT_DTYPE), width = bytes == 8 ? 2 : 4;
    int64_t i = int64_t(item * uint64_t(width)) - int64_t(odd), end = int64_t(count);
    if (i >= end) return;
    uint64_t block = (counter >> 1) + item * uint64_t(width / 2);
    real2 numbers = numbers_of(block), more = numbers;
    if (width == 4) more = numbers_of(block + 1UL);
    bool whole = i + int64_t(width) <= end && odd == 0UL &&
                 (uint(out_address) & width * bytes - 1) == 0;
    uint64_t address = element_address(out_address, i, OUT_DTYPE);
    if (whole && width == 4) {
        store4(address, OUT_DTYPE, real4(numbers, more));
        return;
    }
    if (whole) {
        store2(address, OUT_DTYPE, numbers.x, numbers.y);
        return;
    }
    if (i >= 0L) store(out_address, i, OUT_DTYPE, numbers.x);
    if (i + 1L < end) store(out_address, i + 1L, OUT_DTYPE, numbers.y);
    if (width == 4 && i + 2L < end) store(out_address, i + 2L, OUT_DTYPE, more.x);
    if (width == 4 && i + 3L < end) store(out_address, i + 3L, OUT_DTYPE, more.y);
}
