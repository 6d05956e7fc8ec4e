// Accumulators: for float32 a number is kept as the sum of two, about 48 bits, so that long sums are
// as good as in float64 on devices that have none or a slow one. Integers wrap.
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

// The second number is not a number where the first is infinite, and may be a few units of it.
real real_of_sum(Sum a) {
    precise real total = a.x + a.y;
    return real_isfinite(total) ? total : a.x;
}

// Without the rest.
real start_of_sum(Sum a) {
    return a.x;
}

Sum sum_add(Sum a, Sum b) {
    precise float sum = a.x + b.x, part = sum - a.x;
    precise float low = (a.y + b.y) + ((a.x - (sum - part)) + (b.x - part));
    return vec2(sum, low);
}

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

// Four sums side by side: vectors, because compilers that unroll loops around sums drop `precise`.
struct Sum4 {
    vec4 high, low;
};

Sum4 sum4_of(Sum a) {
    return Sum4(vec4(a.x), vec4(a.y));
}

Sum sum4_at(Sum4 a, uint which) {
    return vec2(a.high[which], a.low[which]);
}

void sum4_set(inout Sum4 a, uint which, Sum value) {
    a.high[which] = value.x;
    a.low[which] = value.y;
}

Sum4 sum4_put(Sum4 a, vec4 x) {
    precise vec4 sum = a.high + x, part = sum - a.high;
    precise vec4 low = a.low + ((a.high - (sum - part)) + (x - part));
    return Sum4(sum, low);
}

// x less what is in `a`.
vec4 sum4_distance(vec4 x, Sum4 a) {
    precise vec4 distance = (x - a.high) - a.low;
    return distance;
}

#else

#define Sum real

Sum sum_of(real x) {
    return x;
}

real real_of_sum(Sum a) {
    return a;
}

real start_of_sum(Sum a) {
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

#define Sum4 real4

Sum4 sum4_of(Sum a) {
    return real4(a);
}

Sum sum4_at(Sum4 a, uint which) {
    return lane_of(a, which);
}

void sum4_set(inout Sum4 a, uint which, Sum value) {
    set_lane(a, which, value);
}

Sum4 sum4_put(Sum4 a, real4 x) {
    return a + x;
}

real4 sum4_distance(real4 x, Sum4 a) {
    return x - a;
}

#endif

// Of the first `width` numbers, 1 or 4: for sums in which four of them may be rounded as one.
real total_of(real4 x, uint width) {
    return width == 1 ? x.x : (x.x + x.y) + (x.z + x.w);
}

#endif
