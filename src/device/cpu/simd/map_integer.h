// The helpers of formulas on integers, which wrap (-fwrapv): the includer defines real,
// unsigned_real and divided(a, b), a quotient toward zero by a divisor that is neither 0 nor -1.
#define C(v) ((real)(v))
#define abs(a) ((a) < 0 ? -(a) : (a))
#define floor(a) (a)
#define ceil(a) (a)
#define round(a) (a)
#define trunc(a) (a)
#undef isnan
#define isnan(a) false
#undef isinf
#define isinf(a) false
#undef isfinite
#define isfinite(a) true

enum { LAST_BIT = 8 * sizeof(real) - 1 };

INLINE real greatest(real a, real b) {
    return a > b ? a : b;
}

INLINE real least(real a, real b) {
    return a < b ? a : b;
}

// Division in arithmetic alone, since compilers make vectors of nothing that branches.

// A divisor that cannot trap: 1 for 0 and -1, which the callers settle.
INLINE real safe_divisor(real b) {
    return b + (real)(b == 0) + 2 * (real)(b == -1);
}

INLINE real quotient(real a, real b) {
    return divided(a, safe_divisor(b)) * ((real)(b != 0) - 2 * (real)(b == -1));
}

INLINE real remainder_of(real a, real b) {
    return a - divided(a, safe_divisor(b)) * safe_divisor(b);
}

// 1 where a quotient toward zero is one more than it is rounded down.
INLINE real is_rounded_up(real rest, real b) {
    return (real)(rest != 0) & (real)((rest ^ b) < 0);
}

INLINE real floor_modulo(real a, real b) {
    real rest = remainder_of(a, b);
    return rest + (b & -is_rounded_up(rest, b));
}

INLINE real floor_quotient(real a, real b) {
    return quotient(a, b) - is_rounded_up(remainder_of(a, b), b);
}

INLINE real power_of(real a, real b) {
    if (b < 0) return a == 1 ? 1 : (a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0);
    real power = 1;
    for (; b > 0; b >>= 1, a *= a)
        if ((b & 1) != 0) power *= a;
    return power;
}

INLINE real shifted_left(real a, real b) {
    return b < 0 || b > LAST_BIT ? 0 : (real)((unsigned_real)a << (b & LAST_BIT));
}

INLINE real shifted_right(real a, real b) {
    return a >> (b < 0 || b > LAST_BIT ? LAST_BIT : b & LAST_BIT);
}

INLINE real greatest_divisor(real a, real b) {
    unsigned_real x = a < 0 ? -(unsigned_real)a : (unsigned_real)a,
                  y = b < 0 ? -(unsigned_real)b : (unsigned_real)b;
    while (y != 0) {
        unsigned_real rest = x % y;
        x = y;
        y = rest;
    }
    return (real)x;
}

#include "device/cpu/simd/map_blocks.h"
