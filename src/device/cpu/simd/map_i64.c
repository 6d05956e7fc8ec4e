// Elementwise formulas on int64s, which wrap: this file is compiled with -fwrapv.
#include "device/cpu/map.h"

#include "device/cpu/simd/vector.h"

#define NAME map_i64
#define real int64_t
#define C(v) ((int64_t)(v))
#define ONES _mm512_set1_epi64(1)

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

INLINE int64_t greatest(int64_t a, int64_t b) {
    return a > b ? a : b;
}

INLINE int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// A divisor that cannot trap: 0 and -1 are the callers' to settle.
INLINE int64_t safe_divisor(int64_t b) {
    return b == 0 || b == -1 ? 1 : b;
}

INLINE int64_t quotient(int64_t a, int64_t b) {
    int64_t whole = a / safe_divisor(b);
    return b == 0 ? 0 : (b == -1 ? -whole : whole);
}

INLINE int64_t remainder_of(int64_t a, int64_t b) {
    return a % safe_divisor(b);
}

INLINE int64_t floor_modulo(int64_t a, int64_t b) {
    int64_t rest = a % safe_divisor(b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

INLINE int64_t floor_quotient(int64_t a, int64_t b) {
    int64_t rest = a % safe_divisor(b);
    return quotient(a, b) - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0);
}

INLINE int64_t power_of(int64_t a, int64_t b) {
    if (b < 0) return a == 1 ? 1 : (a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0);
    int64_t power = 1;
    for (; b > 0; b >>= 1, a *= a)
        if ((b & 1) != 0) power *= a;
    return power;
}

INLINE int64_t shifted_left(int64_t a, int64_t b) {
    return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << (b & 63));
}

INLINE int64_t shifted_right(int64_t a, int64_t b) {
    return b < 0 || b > 63 ? a >> 63 : a >> (b & 63);
}

INLINE int64_t greatest_divisor(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = b < 0 ? -(uint64_t)b : (uint64_t)b;
    while (y != 0) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return (int64_t)x;
}

#include "device/cpu/simd/map_blocks.h"
