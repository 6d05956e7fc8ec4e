// Accumulators: for float32 a number is kept as the sum of two, about 48 bits, so that long sums are
// as good as in float64 on devices that have none or a slow one. Whole numbers wrap.
#ifndef SUMS_GLSL
#define SUMS_GLSL

#include "types.glsl"
#ifndef REAL_I64
#include "math.glsl"
#endif

#ifdef REAL_F32

#define Sum vec2

Sum sum_of(real x) {
    return vec2(x, 0.0);
}

real real_of_sum(Sum a) {
    return a.x;
}

// The sum of an infinity or a NaN has no rest.
Sum with_rest(float sum, float rest) {
    return vec2(sum, real_isfinite(sum) ? rest : 0.0);
}

Sum sum_add(Sum a, Sum b) {
    precise float sum = a.x + b.x, part = sum - a.x;
    precise float rest = (a.x - (sum - part)) + (b.x - part);
    precise float low = rest + (a.y + b.y);
    precise float total = sum + low, left = low - (total - sum);
    return with_rest(real_isfinite(sum) ? total : sum, left);
}

// a + x, when many numbers are added one after the other: the rest of an infinity is no number until
// the next sum_add.
Sum sum_put(Sum a, real x) {
    precise float sum = a.x + x, part = sum - a.x;
    precise float low = a.y + ((a.x - (sum - part)) + (x - part));
    return vec2(sum, low);
}

Sum sum_multiply(Sum a, Sum b) {
    float low;
    precise float product = two_product(a.x, b.x, low);
    precise float rest = low + (a.x * b.y + a.y * b.x);
    precise float total = product + rest, left = rest - (total - product);
    // Splitting overflows before the product does.
    return real_isfinite(product) && real_isfinite(total) ? vec2(total, left)
                                                          : vec2(a.x * b.x, 0.0);
}

int64_t int64_of_sum(Sum a) {
    return int64_t(a.x) + int64_t(a.y);
}

#else

#define Sum real

Sum sum_of(real x) {
    return x;
}

real real_of_sum(Sum a) {
    return a;
}

Sum sum_add(Sum a, Sum b) {
    return a + b;
}

Sum sum_put(Sum a, real x) {
    return a + x;
}

Sum sum_multiply(Sum a, Sum b) {
    return a * b;
}

int64_t int64_of_sum(Sum a) {
    return int64_t(a);
}

#endif
#endif
