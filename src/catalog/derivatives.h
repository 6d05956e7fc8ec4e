// The words that the derivatives of maps.def are written in, all made of `of(op, operands...)`, an
// elementwise operation, and `number(v)`, a constant. Who includes this defines both, and the names
// of the leaves: up (the upstream gradient), x, y, z (the operands), result, none (no gradient
// flows).
#define add(a, b) of(add, a, b)
#define sub(a, b) of(sub, a, b)
#define mul(a, b) of(mul, a, b)
#define quotient(a, b) of(div, a, b)
#define negative(a) of(neg, a)
#define square(a) of(square, a)
#define affine(a, factor, term) of(fused_affine, a, number(factor), number(term))
#define is_equal(a, b) of(eq, a, b)
#define is_greater(a, b) of(gt, a, b)
#define where(condition, a, b) of(where, condition, a, b)
#define is_positive(a) is_greater(a, number(0))
// Of x * s with s = sigmoid(u), where v is x times the derivative of u.
#define gated(s, v) add(s, mul(v, sub(s, square(s))))
// All to the operand that is chosen, half to each of two equal ones.
#define chosen(is_chosen)                                                                          \
    where(is_chosen, up, where(is_equal(x, y), mul(up, number(0.5)), number(0)))
