// Helpers of maps.def for the float types: the includer defines real and the functions of <math.h>
// for it.

INLINE real greatest(real a, real b) {
    return a > b ? a : (b >= a ? b : a + b); // the sum is NaN
}

INLINE real least(real a, real b) {
    return a < b ? a : (b <= a ? b : a + b);
}

INLINE real logistic(real a) {
    real power = exp(-abs(a));
    return (a < C(0) ? power : C(1)) / (C(1) + power);
}

INLINE real quotient(real a, real b) {
    return a / b;
}

INLINE real remainder_of(real a, real b) {
    return fmod(a, b);
}

// The zero of an exact division has the sign of the divisor.
INLINE real floor_modulo(real a, real b) {
    real rest = fmod(a, b);
    if (rest == C(0)) return copysign(C(0), b);
    return (rest < C(0)) != (b < C(0)) ? rest + b : rest;
}

INLINE real floor_quotient(real a, real b) {
    if (b == C(0)) return a / b;
    real rest = fmod(a, b);
    bool below = rest != C(0) && (rest < C(0)) != (b < C(0));
    real whole = (a - rest) / b - (below ? C(1) : C(0)); // an integer but for rounding
    return whole == C(0) ? copysign(C(0), a / b) : rint(whole);
}

// The vector pow is slow below 0: the power of the magnitude, with the sign of an odd exponent.
INLINE real power_of(real a, real b) {
    real power = pow(abs(a), b), half = b * C(0.5);
    bool integer = floor(b) == b, odd = integer && floor(half) != half;
    real sign = odd ? copysign(C(1), a) : C(1);
    return a < C(0) && abs(a) < C(INFINITY) && !integer ? C(NAN) : power * sign;
}
