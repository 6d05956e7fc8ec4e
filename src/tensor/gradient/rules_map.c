// Gradient rules of elementwise operations. `up` is the gradient of the result; each rule is the
// derivative of the formula in catalog/maps.def.
#include "tensor/gradient/rules.h"

#define RULE(name) Status rule_##name(Gradient *g)

static Term number(Gradient *g, double value) {
    return term_number(g, value);
}
static Term x_of(Gradient *g) {
    return gradient_input(g, 0);
}
static Term y_of(Gradient *g) {
    return gradient_input(g, 1);
}
static Term negative(Gradient *g, Term x) {
    return unary(g, OP_neg, x);
}
static Term square(Gradient *g, Term x) {
    return unary(g, OP_square, x);
}
static Term affine(Gradient *g, Term x, double scale, double bias) {
    return term_map(g, OP_fused_affine, x, number(g, scale), number(g, bias));
}
static Term is_greater(Gradient *g, Term x, Term y) {
    return binary(g, OP_gt, x, y);
}
static Term is_positive(Gradient *g, Term x) {
    return is_greater(g, x, number(g, 0));
}
static Status give(Gradient *g, Term term) {
    gradient_give(g, 0, term);
    return g->status;
}
// up * slope to the only input.
static Status slope(Gradient *g, Term term) {
    return give(g, mul(g, gradient_up(g), term));
}

RULE(add) {
    Term up = gradient_up(g);
    gradient_give(g, 0, up);
    gradient_give(g, 1, up);
    return g->status;
}

RULE(sub) {
    Term up = gradient_up(g);
    gradient_give(g, 0, up);
    if (gradient_wants(g, 1)) gradient_give(g, 1, negative(g, up));
    return g->status;
}

RULE(mul) {
    Term up = gradient_up(g);
    if (gradient_wants(g, 0)) gradient_give(g, 0, mul(g, up, y_of(g)));
    if (gradient_wants(g, 1)) gradient_give(g, 1, mul(g, up, x_of(g)));
    return g->status;
}

RULE(div) {
    Term share = quotient(g, gradient_up(g), y_of(g));
    gradient_give(g, 0, share);
    if (gradient_wants(g, 1)) gradient_give(g, 1, negative(g, mul(g, share, gradient_result(g))));
    return g->status;
}

// x - round(x / y) * y with a rounding whose slope is 0.
static Status remainder_rule(Gradient *g, OpId rounding) {
    Term up = gradient_up(g);
    gradient_give(g, 0, up);
    if (gradient_wants(g, 1)) {
        Term whole = unary(g, rounding, quotient(g, x_of(g), y_of(g)));
        gradient_give(g, 1, negative(g, mul(g, up, whole)));
    }
    return g->status;
}
RULE(rem) {
    return remainder_rule(g, OP_trunc);
}
RULE(mod) {
    return remainder_rule(g, OP_floor);
}

// y x^(y-1), and x^y log(x) where x is not 0: 0^0 has slope 0 in both.
RULE(pow) {
    Term up = gradient_up(g), x = x_of(g), y = y_of(g), zero = number(g, 0);
    if (gradient_wants(g, 0)) {
        Term power = mul(g, y, binary(g, OP_pow, x, sub(g, y, number(g, 1))));
        Term safe = where(g, binary(g, OP_eq, y, zero), zero, power);
        gradient_give(g, 0, mul(g, up, safe));
    }
    if (gradient_wants(g, 1)) {
        Term is_zero = binary(g, OP_eq, x, zero);
        Term base = where(g, is_zero, number(g, 1), x);
        gradient_give(g, 1, mul(g, up, mul(g, gradient_result(g), unary(g, OP_log, base))));
    }
    return g->status;
}

RULE(neg) {
    return give(g, negative(g, gradient_up(g)));
}
RULE(abs) {
    return slope(g, unary(g, OP_sign, x_of(g)));
}
RULE(square) {
    return slope(g, scaled(g, x_of(g), 2));
}
RULE(exp) {
    return slope(g, gradient_result(g));
}
RULE(expm1) {
    return slope(g, add(g, gradient_result(g), number(g, 1)));
}
RULE(log) {
    return give(g, quotient(g, gradient_up(g), x_of(g)));
}
RULE(log1p) {
    return give(g, quotient(g, gradient_up(g), add(g, x_of(g), number(g, 1))));
}
RULE(log2) {
    return give(g, quotient(g, gradient_up(g), scaled(g, x_of(g), 0.69314718055994530942)));
}
RULE(sqrt) {
    return give(g, quotient(g, gradient_up(g), scaled(g, gradient_result(g), 2)));
}
RULE(rsqrt) {
    Term y = gradient_result(g);
    return slope(g, scaled(g, mul(g, square(g, y), y), -0.5));
}
RULE(sin) {
    return slope(g, unary(g, OP_cos, x_of(g)));
}
RULE(cos) {
    return slope(g, negative(g, unary(g, OP_sin, x_of(g))));
}
RULE(tan) {
    return slope(g, affine(g, square(g, gradient_result(g)), 1, 1));
}
RULE(asin) {
    return slope(g, unary(g, OP_rsqrt, affine(g, square(g, x_of(g)), -1, 1)));
}
RULE(acos) {
    return slope(g, negative(g, unary(g, OP_rsqrt, affine(g, square(g, x_of(g)), -1, 1))));
}
RULE(atan) {
    return give(g, quotient(g, gradient_up(g), affine(g, square(g, x_of(g)), 1, 1)));
}

// Of atan2(y, x): x / (x^2 + y^2) and -y / (x^2 + y^2).
RULE(atan2) {
    Term y = gradient_input(g, 0), x = gradient_input(g, 1);
    Term share = quotient(g, gradient_up(g), add(g, square(g, x), square(g, y)));
    if (gradient_wants(g, 0)) gradient_give(g, 0, mul(g, share, x));
    if (gradient_wants(g, 1)) gradient_give(g, 1, negative(g, mul(g, share, y)));
    return g->status;
}

RULE(sinh) {
    return slope(g, unary(g, OP_cosh, x_of(g)));
}
RULE(cosh) {
    return slope(g, unary(g, OP_sinh, x_of(g)));
}
RULE(tanh) {
    return slope(g, affine(g, square(g, gradient_result(g)), -1, 1));
}
RULE(erf) { // 2 / sqrt(pi) exp(-x^2)
    return slope(
        g, scaled(g, unary(g, OP_exp, negative(g, square(g, x_of(g)))), 1.12837916709551257390));
}

// The one that is chosen takes all, equal ones half each.
static Status choice_rule(Gradient *g, OpId first_is_chosen) {
    Term up = gradient_up(g), x = x_of(g), y = y_of(g), zero = number(g, 0);
    Term half = where(g, binary(g, OP_eq, x, y), scaled(g, up, 0.5), zero);
    if (gradient_wants(g, 0))
        gradient_give(g, 0, where(g, binary(g, first_is_chosen, x, y), up, half));
    if (gradient_wants(g, 1))
        gradient_give(g, 1, where(g, binary(g, first_is_chosen, y, x), up, half));
    return g->status;
}
RULE(minimum) {
    return choice_rule(g, OP_lt);
}
RULE(maximum) {
    return choice_rule(g, OP_gt);
}

// The limits themselves belong to x; an upper limit below the lower one wins.
RULE(clamp) {
    Term up = gradient_up(g), x = x_of(g), low = y_of(g), high = gradient_input(g, 2);
    Term zero = number(g, 0);
    Term above = is_greater(g, binary(g, OP_maximum, x, low), high), below = is_greater(g, low, x);
    if (gradient_wants(g, 0))
        gradient_give(g, 0, where(g, binary(g, OP_logical_or, above, below), zero, up));
    if (gradient_wants(g, 1)) gradient_give(g, 1, where(g, above, zero, where(g, below, up, zero)));
    if (gradient_wants(g, 2)) gradient_give(g, 2, where(g, above, up, zero));
    return g->status;
}

RULE(where) {
    Term up = gradient_up(g), condition = x_of(g), zero = number(g, 0);
    if (gradient_wants(g, 1)) gradient_give(g, 1, where(g, condition, up, zero));
    if (gradient_wants(g, 2)) gradient_give(g, 2, where(g, condition, zero, up));
    return g->status;
}

static Term where_positive(Gradient *g, Term x) {
    return where(g, is_positive(g, x), gradient_up(g), number(g, 0));
}
RULE(relu) {
    return give(g, where_positive(g, gradient_result(g)));
}

RULE(leaky_relu) {
    Term up = gradient_up(g), x = x_of(g), positive = is_positive(g, x);
    if (gradient_wants(g, 0)) gradient_give(g, 0, where(g, positive, up, mul(g, up, y_of(g))));
    if (gradient_wants(g, 1)) gradient_give(g, 1, where(g, positive, number(g, 0), mul(g, up, x)));
    return g->status;
}

// alpha exp(x) = alpha (exp(x) - 1) + alpha.
RULE(elu) {
    Term up = gradient_up(g), x = x_of(g), positive = is_positive(g, x);
    if (gradient_wants(g, 0)) {
        Term inner = mul(g, up, add(g, gradient_result(g), y_of(g)));
        gradient_give(g, 0, where(g, positive, up, inner));
    }
    if (gradient_wants(g, 1))
        gradient_give(g, 1, where(g, positive, number(g, 0), mul(g, up, unary(g, OP_expm1, x))));
    return g->status;
}

// x s(u) with u = k x + c x^3 and s the sigmoid: s + x s (1 - s) (k + 3 c x^2).
RULE(gelu) {
    const double k = 1.5957691216057308, c = k * 0.044715;
    Term x = x_of(g), squares = square(g, x);
    Term s = unary(g, OP_sigmoid, mul(g, x, affine(g, squares, c, k)));
    Term inner = mul(g, x, affine(g, squares, 3 * c, k));
    return slope(g, add(g, s, mul(g, inner, sub(g, s, square(g, s)))));
}

// (1 + erf(x / sqrt 2)) / 2 + x exp(-x^2 / 2) / sqrt(2 pi)
RULE(gelu_choice) {
    if (!g->attributes->exact) return rule_gelu(g);
    Term x = x_of(g);
    Term area = affine(g, unary(g, OP_erf, scaled(g, x, 0.70710678118654752)), 0.5, 0.5);
    Term bell = unary(g, OP_exp, scaled(g, square(g, x), -0.5));
    return slope(g, add(g, area, scaled(g, mul(g, x, bell), 0.39894228040143268)));
}

RULE(sigmoid) {
    Term y = gradient_result(g);
    return slope(g, sub(g, y, square(g, y)));
}
RULE(log_sigmoid) {
    return slope(g, unary(g, OP_sigmoid, negative(g, x_of(g))));
}
RULE(softplus) {
    return slope(g, unary(g, OP_sigmoid, x_of(g)));
}

// s (1 + x (1 - s))
static Term silu_slope(Gradient *g, Term x) {
    Term s = unary(g, OP_sigmoid, x);
    return add(g, s, mul(g, x, sub(g, s, square(g, s))));
}
RULE(silu) {
    return slope(g, silu_slope(g, x_of(g)));
}
RULE(swiglu) {
    Term up = gradient_up(g), gate = x_of(g);
    if (gradient_wants(g, 0)) gradient_give(g, 0, mul(g, mul(g, up, y_of(g)), silu_slope(g, gate)));
    if (gradient_wants(g, 1)) gradient_give(g, 1, mul(g, up, unary(g, OP_silu, gate)));
    return g->status;
}

// t + x sigmoid(x) (1 - t^2) with t = tanh(softplus(x))
RULE(mish) {
    Term x = x_of(g), t = unary(g, OP_tanh, unary(g, OP_softplus, x));
    Term curve = mul(g, unary(g, OP_silu, x), affine(g, square(g, t), -1, 1));
    return slope(g, add(g, t, curve));
}

RULE(hardswish) {
    Term up = gradient_up(g), x = x_of(g);
    Term inner = mul(g, up, affine(g, x, 1.0 / 3, 0.5));
    Term upper = where(g, is_greater(g, x, number(g, 3)), up, inner);
    return give(g, where(g, is_greater(g, x, number(g, -3)), upper, number(g, 0)));
}

RULE(fused_add_relu) {
    Term active = where_positive(g, gradient_result(g));
    gradient_give(g, 0, active);
    gradient_give(g, 1, active);
    return g->status;
}
RULE(fused_mul_relu) {
    Term active = where_positive(g, gradient_result(g));
    if (gradient_wants(g, 0)) gradient_give(g, 0, mul(g, active, y_of(g)));
    if (gradient_wants(g, 1)) gradient_give(g, 1, mul(g, active, x_of(g)));
    return g->status;
}
RULE(fused_affine) {
    Term up = gradient_up(g);
    if (gradient_wants(g, 0)) gradient_give(g, 0, mul(g, up, y_of(g)));
    if (gradient_wants(g, 1)) gradient_give(g, 1, mul(g, up, x_of(g)));
    gradient_give(g, 2, up);
    return g->status;
}
