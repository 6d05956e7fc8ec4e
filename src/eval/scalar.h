// Numbers combined where they are. Each gives false when the operands are others, or the result is
// an error: then the general way has to say. Operands are read where they lie, and the result is
// written where it is to lie (it may be an operand): floats then never pass through the registers
// of integers.
#ifndef EVAL_SCALAR_H
#define EVAL_SCALAR_H

#include <math.h>

#include "eval/code.h"

static inline bool are_ints(const Value *left, const Value *right) {
    return LIKELY(left->kind == VALUE_INT) && LIKELY(right->kind == VALUE_INT);
}

static inline bool is_int_or_float(const Value *value) {
    return value->kind == VALUE_INT || value->kind == VALUE_FLOAT;
}

static inline bool are_floats(const Value *left, const Value *right) {
    return left->kind == VALUE_FLOAT && right->kind == VALUE_FLOAT;
}

static inline double read_float(const Value *value) {
    return value->kind == VALUE_FLOAT ? value->as.number : (double)value->as.integer;
}

// Whether an int is the same number as a float, so that floats compare as the two do.
static inline bool is_exact(int64_t integer) {
    const int64_t most = (int64_t)1 << 53;
    return integer >= -most && integer <= most;
}

// As floats, where not both are ints.
static inline bool are_comparable(const Value *left, const Value *right) {
    return (left->kind == VALUE_FLOAT || (left->kind == VALUE_INT && is_exact(left->as.integer))) &&
           (right->kind == VALUE_FLOAT ||
            (right->kind == VALUE_INT && is_exact(right->as.integer)));
}

static inline bool put_int(Value *out, int64_t integer) {
    out->kind = VALUE_INT;
    out->as.integer = integer;
    return true;
}

static inline bool put_float(Value *out, double number) {
    out->kind = VALUE_FLOAT;
    out->as.number = number;
    return true;
}

static inline bool put_bool(Value *out, bool holds) {
    out->kind = VALUE_BOOL;
    out->as.integer = holds;
    return true;
}

// Operators by two macros each: `ints` gives true when there is no result, as the builtins do.
static inline bool divide_ints(int64_t left, int64_t right, int64_t *out) {
    if (UNLIKELY(right == 0 || right == -1)) return true;
    *out = left / right;
    return false;
}

static inline bool remain_ints(int64_t left, int64_t right, int64_t *out) {
    if (UNLIKELY(right == 0 || right == -1)) return true;
    *out = left % right;
    return false;
}

#define PLUS(x, y) ((x) + (y))
#define MINUS(x, y) ((x) - (y))
#define TIMES(x, y) ((x) * (y))
#define OVER(x, y) ((x) / (y))

// An operator and its operands, of what lower_scalar_binary made.
typedef struct ScalarParts {
    Operator op;
    const Code *left, *right;
} ScalarParts;
bool scalar_parts(const Code *code, ScalarParts *out);

#endif
