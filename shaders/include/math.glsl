// Mathematical functions for float32 and float64, within a few units of the last place on every
// device: GLSL promises little for float32 and has none for float64. No fused multiplication is
// relied on. Knows no kernel.
#ifndef MATH_GLSL
#define MATH_GLSL

#ifdef REAL_F64
const int MANTISSA_BITS = 52, EXPONENT_BIAS = 1023;
#define bits_t uint64_t
#define MANTISSA_MASK 0xFFFFFFFFFFFFFUL
#define TERMS(narrow, wide) wide
const double LN2_HIGH = R(0.6931471803691238), LN2_LOW = R(1.9082149292705877e-10);
const double EXP_HIGHEST = R(709.782712893384), EXP_LOWEST = R(-745.2), TRIG_LIMIT = R(1e6);
const double HALF_PI_1 = R(1.570796325802803039550781), HALF_PI_2 = R(9.920935791635221434603409e-10),
             HALF_PI_3 = R(5.170182981794105568859398e-19), SPLITTER = R(134217729.0);
#else
const int MANTISSA_BITS = 23, EXPONENT_BIAS = 127;
#define bits_t uint
#define MANTISSA_MASK 0x7FFFFFu
#define TERMS(narrow, wide) narrow
const float LN2_HIGH = R(0.693145751953125), LN2_LOW = R(0.000001428606820309417232121458);
const float EXP_HIGHEST = R(88.7228394), EXP_LOWEST = R(-104.0), TRIG_LIMIT = R(6000.0);
const float HALF_PI_1 = R(1.5703125), HALF_PI_2 = R(0.0004837512969970703125),
            HALF_PI_3 = R(7.549789954891882169163975e-8), SPLITTER = R(4097.0);
#endif
// Terms of a series in turn, from the given one to the second, instead of a loop: the time in which
// glslc unrolls one grows with the module.
#define SERIES_3(TERM) TERM(3) TERM(2)
#define SERIES_5(TERM) TERM(5) TERM(4) SERIES_3(TERM)
#define SERIES_6(TERM) TERM(6) SERIES_5(TERM)
#define SERIES_7(TERM) TERM(7) SERIES_6(TERM)
#define SERIES_10(TERM) TERM(10) TERM(9) TERM(8) SERIES_7(TERM)
#define SERIES_13(TERM) TERM(13) TERM(12) TERM(11) SERIES_10(TERM)
const real PI = R(3.14159265358979323846), HALF_PI = R(1.57079632679489661923);

real power_of_two(int exponent) {
    return real_of_bits(bits_t(exponent + EXPONENT_BIAS) << MANTISSA_BITS);
}

// x * 2^exponent for x near 1, in two steps so that neither factor overflows. What is too small for
// a normal float32 is counted in units of the smallest: devices may take such numbers for 0.
real scaled(real x, int exponent) {
#ifdef REAL_F32
    if (exponent < -125)
        return real_of_bits(uint(roundEven(x * power_of_two(max(exponent, -160) + 149))));
#endif
    int first = exponent / 2;
    return x * power_of_two(first) * power_of_two(exponent - first);
}

real signed_like(real size, real sign) {
    bits_t top = bits_t(1) << (TERMS(31, 63));
    return real_of_bits((real_bits(size) & ~top) | (real_bits(sign) & top));
}

// To the even one of two neighbours. Not roundEven in float64: llvmpipe cuts the fraction off where
// the processor has no AVX-512 (Mesa 22.3).
real round_even(real x) {
#ifdef REAL_F64
    const real WHOLE = R(4503599627370496.0); // from here on all are integers
    precise real rounded = (abs(x) + WHOLE) - WHOLE;
    return abs(x) < WHOLE ? signed_like(rounded, x) : x;
#else
    return roundEven(x);
#endif
}

bool is_negative(real x) {
    return real_bits(x) >> TERMS(31, 63) != bits_t(0);
}

// a * b as the sum of the result and `low`.
real two_product(real a, real b, out real low) {
    precise real product = a * b;
    precise real ta = SPLITTER * a, ah = ta - (ta - a), al = a - ah;
    precise real tb = SPLITTER * b, bh = tb - (tb - b), bl = b - bh;
    precise real rest = ((ah * bh - product) + ah * bl + al * bh) + al * bl;
    low = rest;
    return product;
}

// expm1 of |r| <= ln(2) / 2.
real small_expm1(real r) {
    const real inverse[14] = real[](
        R(0.5), R(0.16666666666666666667), R(0.041666666666666666667), R(0.0083333333333333333333),
        R(0.0013888888888888888889), R(1.9841269841269841270e-4), R(2.4801587301587301587e-5),
        R(2.7557319223985890653e-6), R(2.7557319223985890653e-7), R(2.5052108385441718775e-8),
        R(2.0876756987868098979e-9), R(1.6059043836821614599e-10), R(1.1470745597729724714e-11),
        R(7.6471637318198164759e-13));
    real sum = inverse[TERMS(6, 13)];
#define EXP_TERM(n) sum = inverse[n - 1] + r * sum;
    TERMS(SERIES_6, SERIES_13)(EXP_TERM)
    EXP_TERM(1)
    return r + r * r * sum;
}

// exp(x + low) * 2^extra for a small low.
real exp_of_sum(real x, real low, int extra) {
    if (real_isnan(x)) return x;
    if (x > EXP_HIGHEST + R(1)) return REAL_INFINITY;
    if (x < EXP_LOWEST) return R(0);
    precise real k = round_even(x * R(1.44269504088896340736));
    precise real r = (x - k * LN2_HIGH) - k * LN2_LOW + low;
    return scaled(R(1) + small_expm1(r), int(k) + extra);
}

#ifdef REAL_F32
// exp of x for |x| < 87. Adding SHIFT rounds to an integer, which is then in the last bits.
real ordinary_exp(real x) {
    const real SHIFT = 12582912.0;
    real shifted = fma(x, R(1.44269504088896340736), SHIFT);
    precise real k = shifted - SHIFT, near = x - k * LN2_HIGH;
    real r = fma(-k, LN2_LOW, near);
    real sum = fma(R(0.0013926219), r, R(0.0083632078));
    sum = fma(fma(fma(sum, r, R(0.0416665561)), r, R(0.166665763)), r, R(0.5));
    sum = fma(fma(sum, r, R(1)), r, R(1));
    return sum * real_of_bits((real_bits(shifted) << MANTISSA_BITS) + 0x3F800000u);
}

real real_exp(real x) {
    const bits_t far = 0x42AE0000u; // of 87; NaN is beyond
    return (real_bits(x) & 0x7FFFFFFFu) < far ? ordinary_exp(x) : exp_of_sum(x, R(0), 0);
}

// exp of x <= 0, but 0 where that is not a normal number. Few instructions, for shaders with many:
// the device's own power of a number in [-1/2, 1/2], which is off by at most 4 units of the last
// place.
real falling_exp(real x) {
    const real SHIFT = 12582912.0;
    real shifted = fma(x, R(1.44269504088896340736), SHIFT);
    precise real k = shifted - SHIFT, near = x - k * LN2_HIGH;
    real r = fma(-k, LN2_LOW, near);
    real power = exp2(r * R(1.44269504088896340736));
    power *= real_of_bits((real_bits(shifted) << MANTISSA_BITS) + 0x3F800000u);
    return x < R(-87) ? R(0) : power;
}
#else
real real_exp(real x) {
    return exp_of_sum(x, R(0), 0);
}

real falling_exp(real x) {
    return real_exp(x);
}
#endif

// expm1 of |x| <= 44.
real ordinary_expm1(real x) {
    precise real k = round_even(x * R(1.44269504088896340736));
    precise real r = (x - k * LN2_HIGH) - k * LN2_LOW;
    real power = power_of_two(int(k));
    return power * small_expm1(r) + (power - R(1));
}

real real_expm1(real x) {
    if (real_isnan(x) || x == R(0)) return x;
    if (x > R(40.0)) return real_exp(x);
    return x < R(-40.0) ? R(-1) : ordinary_expm1(x);
}

// x = mantissa * 2^exponent with the mantissa in [sqrt(1/2), sqrt(2)); x positive and finite.
real split_exponent(real x, out int exponent) {
    int shift = 0;
    if (real_bits(x) < bits_t(1) << MANTISSA_BITS) { // an integral number of the smallest
        x = real(real_bits(x));
        shift = EXPONENT_BIAS + MANTISSA_BITS - 1;
    }
    bits_t bits = real_bits(x);
    exponent = int(bits >> MANTISSA_BITS) - EXPONENT_BIAS - shift;
    real mantissa = real_of_bits((bits & MANTISSA_MASK) | bits_t(EXPONENT_BIAS) << MANTISSA_BITS);
    if (mantissa > R(1.41421356237309504880)) {
        mantissa *= R(0.5);
        exponent++;
    }
    return mantissa;
}

// log(1 + f) = f - half + s (half + rest) with s = f / (2 + f), half = f^2 / 2; returns rest.
real log_rest(real s) {
    real z = s * s, sum = R(0);
#define LOG_TERM(n) sum = z * (R(2) / real(2 * n + 1) + sum);
    TERMS(SERIES_6, SERIES_13)(LOG_TERM)
    LOG_TERM(1)
    return sum;
}

bool log_special(real x, out real result) {
    result = x;
    if (real_isnan(x)) return true;
    result = REAL_NAN;
    if (x < R(0)) return true;
    result = -REAL_INFINITY;
    if (x == R(0)) return true;
    result = x;
    return real_isinf(x);
}

real real_log(real x) {
    real special;
    if (log_special(x, special)) return special;
    int exponent;
    precise real f = split_exponent(x, exponent) - R(1), s = f / (R(2) + f), k = real(exponent);
    precise real square = R(0.5) * f * f;
    precise real low = s * (square + log_rest(s)) + k * LN2_LOW;
    return k * LN2_HIGH - ((square - low) - f);
}

real real_log2(real x) {
    real special;
    if (log_special(x, special)) return special;
    int exponent;
    precise real f = split_exponent(x, exponent) - R(1), s = f / (R(2) + f);
    precise real square = R(0.5) * f * f;
    precise real whole = f - (square - s * (square + log_rest(s)));
    return real(exponent) + whole * R(1.44269504088896340736);
}

// The rounding of 1 + x is repaired by a division.
real real_log1p(real x) {
    precise real sum = R(1) + x;
    precise real part = sum - R(1);
    if (part == R(0) || real_isinf(sum) || !(x > R(-1))) return part == R(0) ? x : real_log(sum);
    return real_log(sum) * (x / part);
}

// --- angles

// Two words of zeros, then the bits of 2 / pi.
const uint two_over_pi[39] = uint[](
    0u, 0u, 0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u, 0x3C439041u,
    0xFE5163ABu, 0xDEBBC561u, 0xB7246E3Au, 0x424DD2E0u, 0x06492EEAu, 0x09D1921Cu, 0xFE1DEB1Cu,
    0xB129A73Eu, 0xE88235F5u, 0x2EBB4484u, 0xE99C7026u, 0xB45F7E41u, 0x3991D639u, 0x835339F4u,
    0x9C845F8Bu, 0xBDF9283Bu, 0x1FF897FFu, 0xDE05980Fu, 0xEF2F118Bu, 0x5A0A6D1Fu, 0x6D367ECFu,
    0x27CB09B7u, 0x4F463F66u, 0x9E5FEA2Du, 0x7527BAC7u, 0xEBE5F17Bu, 0x3D0739F7u, 0x8A5292EAu,
    0x6BFB5FB1u, 0x1F8D5D08u, 0x56033046u);

// For large |x|: integers, so that no bit is lost. See reduced_angle.
real reduced_large(real x, out int quadrant) {
    const int WORDS = TERMS(3, 6);
    bits_t bits = real_bits(x);
    uint64_t mantissa = uint64_t(bits & MANTISSA_MASK) | 1UL << MANTISSA_BITS;
    int exponent = (int(bits >> MANTISSA_BITS) & TERMS(0xFF, 0x7FF)) - EXPONENT_BIAS - MANTISSA_BITS;
    // The bits of 2 / pi above this one are multiples of four quadrants.
    int first = exponent + 62, word = first >> 5, shift = first & 31;
    uint product[WORDS];
    uint64_t carry_low = 0UL, carry_high = 0UL;
    uint64_t low = mantissa & 0xFFFFFFFFUL, high = mantissa >> 32;
    uint before = 0u;
    uint64_t carry = 0UL;
    for (int i = WORDS - 1; i >= 0; i--) { // from the last word of the window up
        uint window = two_over_pi[word + i] << shift;
        if (shift != 0) window |= two_over_pi[word + i + 1] >> (32 - shift);
        uint64_t sum = low * uint64_t(window);
        uint64_t sum_high = high * uint64_t(before);
        uint64_t total = (sum & 0xFFFFFFFFUL) + (sum_high & 0xFFFFFFFFUL) + carry;
        product[i] = uint(total);
        carry = (total >> 32) + (sum >> 32) + (sum_high >> 32);
        before = window;
    }
    // In units of four quadrants: product[0] has the two bits of the quadrant on top.
    uint64_t turn = uint64_t(product[0]) << 32 | uint64_t(product[1]);
    uint64_t whole = turn + 0x2000000000000000UL >> 62;
    int64_t rest = int64_t(turn - (whole << 62));
    real fraction = real_of_int64(rest) * power_of_two(-62);
    uint64_t tail = uint64_t(product[2]) << 32;
#ifdef REAL_F64
    tail |= uint64_t(product[3]);
#endif
    fraction += real_of_int64(int64_t(tail >> 1)) * power_of_two(-62) * power_of_two(-63);
    quadrant = int(whole);
    real angle = fraction * HALF_PI;
    if (is_negative(x)) {
        quadrant = -quadrant;
        angle = -angle;
    }
    return angle;
}

// x less a number of quarter turns, in [-pi / 4, pi / 4]; x is finite.
real reduced_angle(real x, out int quadrant) {
    if (abs(x) > TRIG_LIMIT) return reduced_large(x, quadrant);
    precise real k = round_even(x * R(0.63661977236758134308));
    precise real r = ((x - k * HALF_PI_1) - k * HALF_PI_2) - k * HALF_PI_3;
    quadrant = int(k);
    return r;
}

real small_sin(real r) {
    real z = r * r, sum = R(0);
#define SIN_TERM(n) sum = -z / real(2 * n * (2 * n + 1)) * (R(1) + sum);
    TERMS(SERIES_5, SERIES_10)(SIN_TERM)
    SIN_TERM(1)
    return r + r * sum;
}

real small_cos(real r) {
    real z = r * r, sum = R(0);
#define COS_TERM(n) sum = -z / real(2 * n * (2 * n - 1)) * (R(1) + sum);
    TERMS(SERIES_5, SERIES_10)(COS_TERM)
    return R(1) - R(0.5) * z * (R(1) + sum);
}

real real_sin(real x) {
    if (!real_isfinite(x)) return REAL_NAN;
    if (x == R(0)) return x;
    int quadrant;
    real r = reduced_angle(x, quadrant);
    real value = (quadrant & 1) != 0 ? small_cos(r) : small_sin(r);
    return (quadrant & 2) != 0 ? -value : value;
}

real real_cos(real x) {
    if (!real_isfinite(x)) return REAL_NAN;
    int quadrant;
    real r = reduced_angle(x, quadrant);
    real value = (quadrant & 1) != 0 ? small_sin(r) : small_cos(r);
    return (quadrant + 1 & 2) != 0 ? -value : value;
}

real real_tan(real x) {
    if (!real_isfinite(x)) return REAL_NAN;
    if (x == R(0)) return x;
    int quadrant;
    real r = reduced_angle(x, quadrant);
    real s = small_sin(r), c = small_cos(r);
    return (quadrant & 1) != 0 ? -c / s : s / c;
}

// atan of x in [0, 1]: from the nearest eighth by the addition theorem, then the series.
real atan_of_part(real x) {
    const real eighths[9] = real[](
        R(0.0), R(0.12435499454676143503), R(0.24497866312686415417), R(0.3587706702705722204),
        R(0.46364760900080611621), R(0.55859931534356243597), R(0.6435011087932843868),
        R(0.71882999962162450542), R(0.78539816339744830962));
    int nearest = int(x * R(8) + R(0.5));
    real c = real(nearest) * R(0.125), t = (x - c) / (R(1) + x * c), z = t * t, sum = R(0);
#define ATAN_TERM(n) sum = -z * (R(1) / real(2 * n + 1) + sum);
    TERMS(SERIES_3, SERIES_7)(ATAN_TERM)
    ATAN_TERM(1)
    return eighths[nearest] + (t + t * sum);
}

// y, x >= 0, of which one is not 0.
real atan_of_quotient(real y, real x) {
    if (y <= x) return real_isinf(x) ? (real_isinf(y) ? HALF_PI * R(0.5) : R(0)) : atan_of_part(y / x);
    return HALF_PI - (real_isinf(y) ? R(0) : atan_of_part(x / y));
}

real real_atan2(real y, real x) {
    if (real_isnan(x)) return x;
    if (real_isnan(y)) return y;
    real angle = y == R(0) && x == R(0) ? R(0) : atan_of_quotient(abs(y), abs(x));
    return signed_like(is_negative(x) ? PI - angle : angle, y);
}

real real_atan(real x) {
    if (real_isnan(x)) return x;
    real size = abs(x);
    return signed_like(size <= R(1) ? atan_of_part(size) : atan_of_quotient(size, R(1)), x);
}

real real_asin(real x) {
    if (!(abs(x) <= R(1))) return REAL_NAN;
    precise real rest = (R(1) - x) * (R(1) + x);
    return real_atan2(x, sqrt(rest));
}

real real_acos(real x) {
    if (!(abs(x) <= R(1))) return REAL_NAN;
    precise real rest = (R(1) - x) * (R(1) + x);
    return real_atan2(sqrt(rest), x);
}

// --- hyperbolic functions

real real_sinh(real x) {
    if (real_isnan(x)) return x;
    real size = abs(x), value;
    if (size < R(1)) {
        real e = real_expm1(size);
        value = R(0.5) * (e + e / (e + R(1)));
    } else {
        real half_exp = exp_of_sum(size, R(0), -1);
        value = half_exp - R(0.25) / half_exp;
    }
    return signed_like(value, x);
}

real real_cosh(real x) {
    if (real_isnan(x)) return x;
    real half_exp = exp_of_sum(abs(x), R(0), -1);
    return half_exp + R(0.25) / half_exp;
}

real real_tanh(real x) {
    real e = ordinary_expm1(R(2) * min(abs(x), R(22.0)));
    real value = signed_like(e / (e + R(2)), x);
    return real_isnan(x) ? x : value;
}

// --- error function

// exp(z^2) erfc(z) (1 + 2z) for z >= 0, as a sum of Chebyshev polynomials in (z - 3.75) / (z + 3.75).
real erfc_scaled(real z) {
    const real terms[28] = real[](
    R(1.1775789345674017541), R(-0.0045900545806464773309), R(-0.084249133366517915584),
    R(0.059209939998191890498), R(-0.026658668435305752277), R(0.0090749976707052650939),
    R(-0.0024131635404176081909), R(0.00049077583652580863229), R(-0.000069169733025012063671),
    R(4.1390279860730101675e-6), R(7.7403830661984906686e-7), R(-2.1886401049234395661e-7),
    R(1.0764999465670910377e-8), R(4.5219598112182868979e-9), R(-7.7544002088313511065e-10),
    R(-6.3180883408866844944e-11), R(2.8687950109306698981e-11), R(1.945586854577734723e-13),
    R(-9.6546967484334389059e-13), R(3.2525481481487398415e-14), R(3.3478119482868053878e-14),
    R(-1.8645628804193131015e-15), R(-1.2507950530688647085e-15), R(7.418235256624043463e-17),
    R(5.0681489047961113168e-17), R(-2.2370566594359995974e-18), R(-2.187342944303017665e-18),
    R(2.6766327399258761745e-20));
    real t = (z - R(3.75)) / (z + R(3.75)), after = R(0), later = R(0);
    for (int i = TERMS(15, 27); i >= 1; i--) {
        real sum = terms[i] + R(2) * t * after - later;
        later = after;
        after = sum;
    }
    return (terms[0] + t * after - later) / (R(1) + R(2) * z);
}

real small_erf(real x) { // |x| <= 1
    real z = x * x, sum = R(0), power = R(1);
    const int LAST = TERMS(11, 20);
    for (int n = LAST; n >= 1; n--)
        sum = -z / real(n) * (R(1) / real(2 * n + 1) + sum);
    // Nested: sum over n of (-z)^n / (n! (2n + 1)), each factor 1 / n where its power is.
    return R(1.12837916709551257390) * (x + x * sum);
}

real positive_erfc(real z) {
    if (z > R(28.0)) return R(0);
    real low;
    real square = two_product(z, z, low);
    return exp_of_sum(-square, -low, 0) * erfc_scaled(z);
}

real real_erfc(real x) {
    if (real_isnan(x)) return x;
    if (abs(x) < R(0.5)) return R(1) - small_erf(x);
    return x > R(0) ? positive_erfc(x) : R(2) - positive_erfc(-x);
}

real real_erf(real x) {
    if (real_isnan(x)) return x;
    if (abs(x) <= R(1)) return small_erf(x);
    return signed_like(R(1) - positive_erfc(abs(x)), x);
}

// --- remainders and powers

// The remainder of a division toward zero, exact: long division of the mantissas.
real real_fmod(real x, real y) {
    if (real_isnan(x) || real_isnan(y) || real_isinf(x) || y == R(0)) return REAL_NAN;
    real a = abs(x), b = abs(y);
    if (a < b || real_isinf(y)) return x;
    uint64_t bits_a = uint64_t(real_bits(a)), bits_b = uint64_t(real_bits(b));
    int exponent_a = int(bits_a >> MANTISSA_BITS), exponent_b = int(bits_b >> MANTISSA_BITS);
    uint64_t one = 1UL << MANTISSA_BITS;
    uint64_t rest = bits_a & (one - 1UL), divisor = bits_b & (one - 1UL);
    if (exponent_a > 0) rest |= one; else exponent_a = 1;
    if (exponent_b > 0) divisor |= one; else exponent_b = 1;
    int shift = exponent_a - exponent_b;
    rest %= divisor;
    while (shift > 0 && rest != 0UL) {
        int step = min(shift, 63 - MANTISSA_BITS);
        rest = (rest << step) % divisor;
        shift -= step;
    }
    if (rest == 0UL) return signed_like(R(0), x);
    uint high = uint(rest >> 32);
    int top = high != 0u ? 32 + findMSB(high) : findMSB(uint(rest));
    int up = min(MANTISSA_BITS - top, exponent_b - 1);
    rest <<= up;
    uint64_t field = (rest & one) != 0UL ? uint64_t(exponent_b - up) << MANTISSA_BITS : 0UL;
    return signed_like(real_of_bits(bits_t(field | (rest & (one - 1UL)))), x);
}

// log(x) as the sum of the result and `low`; x positive and finite.
real log_with_low(real x, out real low) {
    int exponent;
    precise real f = split_exponent(x, exponent) - R(1), k = real(exponent), sum = R(2) + f;
    precise real s = f / sum;
    real product_low;
    precise real product = two_product(s, sum, product_low);
    precise real sum_low = f - (sum - R(2)); // what adding 2 lost
    precise real s_low = (((f - product) - product_low) - s * sum_low) / sum;
    precise real rest = s * log_rest(s) + R(2) * s_low + k * LN2_LOW;
    precise real high = k * LN2_HIGH, twice = R(2) * s, total = high + twice;
    precise real kept = total - high, lost = (twice - kept) + (high - (total - kept)) + rest;
    low = lost;
    return total;
}

real positive_power(real x, real y) {
    real low, product_low;
    real high = log_with_low(x, low);
    real product = two_product(y, high, product_low);
    if (product > R(2) * EXP_HIGHEST) return REAL_INFINITY;
    if (product < R(2) * EXP_LOWEST) return R(0);
    return exp_of_sum(product, product_low + y * low, 0);
}

// A small whole exponent by multiplication, so that 3^2 is 9.
real multiplied_power(real x, int count) {
    precise real power = x;
    for (int i = 1; i < count; i++) power *= x;
    return power;
}

real real_pow(real x, real y) {
    if (y == R(0) || x == R(1)) return R(1);
    if (real_isnan(x) || real_isnan(y)) return REAL_NAN;
    bool whole = real_isinf(y) || floor(y) == y;
    bool odd = whole && abs(y) < power_of_two(MANTISSA_BITS + 1) && floor(y * R(0.5)) != y * R(0.5);
    real size = abs(x);
    bool negative = odd && is_negative(x);
    real result;
    if (size == R(1)) {
        result = whole ? R(1) : (x < R(0) ? REAL_NAN : R(1));
    } else if (real_isinf(y)) {
        result = (size > R(1)) == (y > R(0)) ? REAL_INFINITY : R(0);
    } else if (size == R(0) || real_isinf(size)) {
        result = (size == R(0)) == (y > R(0)) ? R(0) : REAL_INFINITY;
    } else if (is_negative(x) && !whole) {
        return REAL_NAN;
    } else if (whole && abs(y) <= R(4)) {
        real power = multiplied_power(size, int(abs(y)));
        result = y > R(0) ? power : R(1) / power;
    } else {
        result = positive_power(size, y);
        bool exact = whole && y > R(0) && floor(size) == size;
        if (exact && result < power_of_two(MANTISSA_BITS - 2)) result = round_even(result);
    }
    return negative ? -result : result;
}

#endif
