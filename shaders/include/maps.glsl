// catalog/maps.def for shaders: its helpers, and `map_value`, which evaluates one formula. `op`
// counts the rows of that file.
#ifndef MAPS_GLSL
#define MAPS_GLSL

#include "types.glsl"
#ifndef REAL_I64
#include "math.glsl"
#endif

#define C(v) R(v)
#undef isnan
#undef isinf
#define isnan(a) real_isnan(a)

#ifdef REAL_I64

#define isinf(a) false
#define isfinite(a) true
#define floor(a) (a)
#define ceil(a) (a)
#define round(a) (a)
#define trunc(a) (a)
#define abs(a) ((a) < 0L ? -(a) : (a))

real greatest(real a, real b) {
    return a > b ? a : b;
}

real least(real a, real b) {
    return a < b ? a : b;
}

// A divisor that cannot trap: 0 and -1 are the callers' to settle.
real safe_divisor(real b) {
    return b == 0L || b == -1L ? 1L : b;
}

// Devices take long to divide 64 bits: most numbers have no more than 32.
int64_t divided(int64_t a, int64_t divisor) {
    int near = int(a), near_divisor = int(divisor);
    if (int64_of_int(near) == a && int64_of_int(near_divisor) == divisor)
        return int64_of_int(near / near_divisor);
    return a / divisor;
}

real quotient(real a, real b) {
    int64_t whole = divided(a, safe_divisor(b));
    return b == 0L ? 0L : (b == -1L ? -whole : whole);
}

// Not `%`, which GLSL leaves undefined for negative operands.
real remainder_of(real a, real b) {
    int64_t divisor = safe_divisor(b);
    return a - divided(a, divisor) * divisor;
}

real floor_modulo(real a, real b) {
    int64_t rest = remainder_of(a, b);
    return rest != 0L && (rest < 0L) != (b < 0L) ? (b == 0L ? rest : rest + b) : rest;
}

real floor_quotient(real a, real b) {
    int64_t whole = quotient(a, b), rest = a - whole * b;
    return whole - (b != 0L && rest != 0L && (rest < 0L) != (b < 0L) ? 1L : 0L);
}

real power_of(real a, real b) {
    if (b < 0L) return a == 1L ? 1L : (a == -1L ? ((b & 1L) != 0L ? -1L : 1L) : 0L);
    int64_t power = 1L;
    for (; b > 0L; b >>= 1) {
        if ((b & 1L) != 0L) power *= a;
        a *= a;
    }
    return power;
}

real shifted_left(real a, real b) {
    return b < 0L || b > 63L ? 0L : a << int(b);
}

real shifted_right(real a, real b) {
    return b < 0L || b > 63L ? a >> 63 : a >> int(b);
}

real greatest_divisor(real a, real b) {
    uint64_t x = a < 0L ? uint64_t(-a) : uint64_t(a), y = b < 0L ? uint64_t(-b) : uint64_t(b);
    while (y != 0UL) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return int64_t(x);
}

#else

#define isinf(a) real_isinf(a)
#define isfinite(a) real_isfinite(a)
#define round(a) round_even(a)
#define exp(a) real_exp(a)
#define expm1(a) real_expm1(a)
#define log(a) real_log(a)
#define log1p(a) real_log1p(a)
#define log10(a) (real_log(a) * R(0.43429448190325182765))
#define log2(a) real_log2(a)
#define sin(a) real_sin(a)
#define cos(a) real_cos(a)
#define tan(a) real_tan(a)
#define asin(a) real_asin(a)
#define acos(a) real_acos(a)
#define atan(a) real_atan(a)
#define atan2(a, b) real_atan2(a, b)
#define sinh(a) real_sinh(a)
#define cosh(a) real_cosh(a)
#define tanh(a) real_tanh(a)
#define erf(a) real_erf(a)
#define erfc(a) real_erfc(a)

real greatest(real a, real b) {
    return isnan(a) || isnan(b) ? a + b : (a > b ? a : b);
}

real least(real a, real b) {
    return isnan(a) || isnan(b) ? a + b : (a < b ? a : b);
}

real logistic(real a) {
    real power = exp(-abs(a));
    return (a < C(0) ? power : C(1)) / (C(1) + power);
}

#ifdef REAL_F32
// a / b, off by at most one unit where the device's division is off by more: what it leaves over is
// divided again. Neither may be near the ends of the exponents.
real repaired_quotient(real a, real b) {
    precise real near = a / b;
    real low;
    precise real product = two_product(near, b, low), rest = (a - product) - low;
    precise real whole = near + rest / b;
    return whole;
}

// |x| = the result * 2^exponent, with the result in [1, 2); x is finite and not 0.
real mantissa_of(real x, out int exponent) {
    uint bits = real_bits(x) & 0x7FFFFFFFu;
    int shift = 0;
    if (bits < 0x00800000u) { // an integral number of the smallest
        bits = real_bits(real(bits));
        shift = EXPONENT_BIAS + MANTISSA_BITS - 1;
    }
    exponent = int(bits >> MANTISSA_BITS) - EXPONENT_BIAS - shift;
    return real_of_bits(bits & MANTISSA_MASK | 0x3F800000u);
}

real quotient(real a, real b) {
    uint of_a = real_bits(a) >> MANTISSA_BITS & 0xFFu, of_b = real_bits(b) >> MANTISSA_BITS & 0xFFu;
    if (of_a - 97u < 61u && of_b - 97u < 61u) return repaired_quotient(a, b);
    bool zero = min(real_bits(a) << 1, real_bits(b) << 1) == 0u;
    if (zero || of_a == 0xFFu || of_b == 0xFFu) return a / b;
    int up, down;
    real whole = repaired_quotient(mantissa_of(a, up), mantissa_of(b, down));
    real size = scaled(whole, min(up - down, 140));
    return real_of_bits(real_bits(size) | (real_bits(a) ^ real_bits(b)) & 0x80000000u);
}
#else
real quotient(real a, real b) {
    return a / b;
}
#endif

real remainder_of(real a, real b) {
    return real_fmod(a, b);
}

// The zero of an exact division has the sign of the divisor.
real floor_modulo(real a, real b) {
    real rest = real_fmod(a, b);
    if (rest == C(0)) return signed_like(C(0), b);
    return (rest < C(0)) != (b < C(0)) ? rest + b : rest;
}

real floor_quotient(real a, real b) {
    if (b == C(0)) return a / b;
    real rest = real_fmod(a, b);
    bool below = rest != C(0) && (rest < C(0)) != (b < C(0));
    precise real whole = (a - rest) / b - (below ? C(1) : C(0)); // whole but for rounding
    return whole == C(0) ? signed_like(C(0), a / b) : round_even(whole);
}

real power_of(real a, real b) {
    return real_pow(a, b);
}

#endif

// Rows are numbered as they come; `row` is a constant to the compiler and `op` one by the time a
// pipeline is made. A module has the rows of so many OPERANDS only, where it says so, and those that
// are ROW_USED: drivers compile it sooner.
#ifndef ROW_USED
#define ROW_USED(row) true
#endif
real map_value(uint op, real x, real y, real z) {
    precise real value = x;
    uint row = 0;
#define FORMULA(code, formula)                                                                     \
    if (ROW_USED(row) && op == row) value = formula;                                               \
    row++;
#define SKIPPED row++;
#if !defined(OPERANDS) || OPERANDS == 1
#define ROW1(code, formula) FORMULA(code, formula)
#else
#define ROW1(code, formula) SKIPPED
#endif
#if !defined(OPERANDS) || OPERANDS == 2
#define ROW2(code, formula) FORMULA(code, formula)
#else
#define ROW2(code, formula) SKIPPED
#endif
#if !defined(OPERANDS) || OPERANDS == 3
#define MAP3(code, formula, dx, dy, dz) FORMULA(code, formula)
#else
#define MAP3(code, formula, dx, dy, dz) SKIPPED
#endif
#define MAP1(code, formula, dx) ROW1(code, formula)
#define MAP2(code, formula, dx, dy) ROW2(code, formula)
#ifdef REAL_I64
#define MAP1F(code, formula, dx) SKIPPED
#define MAP2F(code, formula, dx, dy) SKIPPED
#define MAP1I(code, formula, dx) ROW1(code, formula)
#define MAP2I(code, formula, dx, dy) ROW2(code, formula)
#else
#define MAP1F(code, formula, dx) ROW1(code, formula)
#define MAP2F(code, formula, dx, dy) ROW2(code, formula)
#define MAP1I(code, formula, dx) SKIPPED
#define MAP2I(code, formula, dx, dy) SKIPPED
#endif
#include "catalog/maps.def"
    return value;
}

#endif
