// The formulas of maps.def on integers, for calls whose operands are all plain ints. Evaluated
// in 128 bits, where + - * of three int64s are exact: the caller sees what does not fit.
#include "tensor/scalar.h"

#define real WideInteger
#define C(v) ((WideInteger)(v))
#define abs(a) ((a) < 0 ? -(a) : (a))
#define floor(a) (a)
#define ceil(a) (a)
#define round(a) (a)
#define trunc(a) (a)
#define isnan(a) 0
#define isinf(a) 0
#define isfinite(a) 1

static inline WideInteger greatest(WideInteger a, WideInteger b) {
    return a > b ? a : b;
}

static inline WideInteger least(WideInteger a, WideInteger b) {
    return a < b ? a : b;
}

// The caller has refused division by zero; both sides of a ?: must be safe all the same.
static inline WideInteger quotient(WideInteger a, WideInteger b) {
    return b == 0 ? 0 : a / b;
}

static inline WideInteger remainder_of(WideInteger a, WideInteger b) {
    return b == 0 ? 0 : a % b;
}

static inline WideInteger floor_modulo(WideInteger a, WideInteger b) {
    WideInteger rest = remainder_of(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline WideInteger floor_quotient(WideInteger a, WideInteger b) {
    return quotient(a - floor_modulo(a, b), b);
}

// Stops as soon as the power has left 64 bits; what it returns then does not fit either.
static inline WideInteger power_of(WideInteger a, WideInteger b) {
    WideInteger power = 1;
    if (a == 0 || a == 1) return b == 0 ? 1 : a;
    if (a == -1) return b % 2 == 0 ? 1 : -1;
    for (; b > 0 && power <= INT64_MAX && power >= INT64_MIN; b--) power *= a;
    return power;
}

static inline WideInteger shifted_left(WideInteger a, WideInteger b) {
    return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b);
}

static inline WideInteger shifted_right(WideInteger a, WideInteger b) {
    return a >> (b < 0 || b > 63 ? 63 : (int)b);
}

static inline WideInteger greatest_divisor(WideInteger a, WideInteger b) {
    WideInteger x = abs(a), y = abs(b);
    while (y != 0) {
        WideInteger rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

#define TABLE const IntegerFormula scalar_integer_formulas[MAP_COUNT]
#define MAP1I MAP1
#define MAP2I MAP2
#define MAP1F(code, formula, ...)
#define MAP2F(code, formula, ...)
#include "tensor/scalar_formulas.h"
