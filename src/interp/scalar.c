// The quick forms of arithmetic: operands that are variables or constants are read without a call,
// and `x = x + i` on ints is one step. Whatever does not fit falls back to operators.c.
#include "interp/code.h"

// An operand that needs no evaluation: `fixed` points to a global or a constant; else a slot.
typedef struct Operand {
    const Value *fixed;
    int slot;
    Value constant;
} Operand;

typedef struct ScalarCode {
    Code head;
    Operator op;
    Operand left, right;
    const Code *left_code, *right_code;
    Operand target; // of stores
} ScalarCode;

static bool operand_of(const Code *code, Operand *out) {
    if (code_is_local(code, &out->slot)) return true;
    out->fixed = code_global(code);
    if (out->fixed) return true;
    if (!code_constant(code, &out->constant)) return false;
    out->fixed = &out->constant;
    return out->constant.kind == VALUE_INT || out->constant.kind == VALUE_FLOAT;
}

static inline const Value *operand_place(const Frame *frame, const Operand *operand) {
    return operand->fixed ? operand->fixed : &frame->slots[operand->slot];
}

// The general way: evaluates both operands as ordinary code.
static __attribute__((noinline)) Value scalar_slow(Frame *frame, const ScalarCode *code) {
    Operands operands = {.left = EVAL(frame, code->left_code)};
    if (failed(operands.left)) return operands.left;
    operands.right = EVAL(frame, code->right_code);
    if (failed(operands.right)) {
        value_release(operands.left);
        return operands.right;
    }
    operands.left_code = code->left_code;
    operands.right_code = code->right_code;
    operands.span = code->head.span;
    return operator_apply(frame, code->op, &operands);
}

// For one operator: eval_ gives the result, store_ puts it into a variable.
#define ARITHMETIC(name, int_overflows, float_operator)                                            \
    static Value eval_##name(Frame *frame, const Code *code) {                                     \
        const ScalarCode *scalar = (const ScalarCode *)code;                                       \
        const Value *left = operand_place(frame, &scalar->left);                                   \
        const Value *right = operand_place(frame, &scalar->right);                                 \
        int64_t result;                                                                            \
        if (LIKELY(left->kind == VALUE_INT && right->kind == VALUE_INT) &&                         \
            LIKELY(!int_overflows(left->as.integer, right->as.integer, &result)))                  \
            return value_int(result);                                                              \
        if (left->kind == VALUE_FLOAT && right->kind == VALUE_FLOAT)                               \
            return value_float(left->as.number float_operator right->as.number);                   \
        return scalar_slow(frame, scalar);                                                         \
    }                                                                                              \
    static Value store_##name(Frame *frame, const Code *code) {                                    \
        const ScalarCode *scalar = (const ScalarCode *)code;                                       \
        const Value *left = operand_place(frame, &scalar->left);                                   \
        const Value *right = operand_place(frame, &scalar->right);                                 \
        Value *target = (Value *)operand_place(frame, &scalar->target);                            \
        int64_t result;                                                                            \
        if (LIKELY(left->kind == VALUE_INT && right->kind == VALUE_INT &&                          \
                   target->kind == VALUE_INT) &&                                                   \
            LIKELY(!int_overflows(left->as.integer, right->as.integer, &result))) {                \
            target->as.integer = result;                                                           \
            return value_none();                                                                   \
        }                                                                                          \
        Value value = eval_##name(frame, code);                                                    \
        if (failed(value)) return value;                                                           \
        Value old = *target;                                                                       \
        *target = value;                                                                           \
        value_release(old);                                                                        \
        return value_none();                                                                       \
    }

#define COMPARE(name, operator)                                                                    \
    static Value eval_##name(Frame *frame, const Code *code) {                                     \
        const ScalarCode *scalar = (const ScalarCode *)code;                                       \
        const Value *left = operand_place(frame, &scalar->left);                                   \
        const Value *right = operand_place(frame, &scalar->right);                                 \
        if (LIKELY(left->kind == VALUE_INT && right->kind == VALUE_INT))                           \
            return value_bool(left->as.integer operator right->as.integer);                        \
        if (left->kind == VALUE_FLOAT && right->kind == VALUE_FLOAT)                               \
            return value_bool(left->as.number operator right->as.number);                          \
        return scalar_slow(frame, scalar);                                                         \
    }

ARITHMETIC(add, __builtin_add_overflow, +)
ARITHMETIC(sub, __builtin_sub_overflow, -)
ARITHMETIC(mul, __builtin_mul_overflow, *)
COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)

static const struct ScalarForms {
    Eval eval, store;
} forms[OPERATOR_NONE] = {
    [OPERATOR_ADD] = {eval_add, store_add}, [OPERATOR_SUB] = {eval_sub, store_sub},
    [OPERATOR_MUL] = {eval_mul, store_mul}, [OPERATOR_EQ] = {eval_eq, NULL},
    [OPERATOR_NE] = {eval_ne, NULL},        [OPERATOR_LT] = {eval_lt, NULL},
    [OPERATOR_LE] = {eval_le, NULL},        [OPERATOR_GT] = {eval_gt, NULL},
    [OPERATOR_GE] = {eval_ge, NULL},
};

// Two operands that are evaluated: ints without a detour.
static Value eval_general(Frame *frame, const Code *code) {
    const ScalarCode *scalar = (const ScalarCode *)code;
    Operands operands = {.left = EVAL(frame, scalar->left_code)};
    if (failed(operands.left)) return operands.left;
    operands.right = EVAL(frame, scalar->right_code);
    if (failed(operands.right)) {
        value_release(operands.left);
        return operands.right;
    }
    if (operands.left.kind == VALUE_INT && operands.right.kind == VALUE_INT) {
        Value result =
            operator_int(scalar->op, operands.left.as.integer, operands.right.as.integer);
        if (LIKELY(result.kind < VALUE_ABSENT)) return result;
        if (failed(result)) return fail_at(code->span);
    }
    operands.left_code = scalar->left_code;
    operands.right_code = scalar->right_code;
    operands.span = code->span;
    return operator_apply(frame, scalar->op, &operands);
}

const Code *lower_scalar_binary(Lowering *lowering, Operator op, const Code *left,
                                const Code *right, Span span) {
    ScalarCode *code = LOWER_NEW(lowering, ScalarCode, eval_general, span);
    code->op = op;
    code->left_code = left;
    code->right_code = right;
    if (forms[op].eval && operand_of(left, &code->left) && operand_of(right, &code->right))
        code->head.eval = forms[op].eval;
    return &code->head;
}

const Code *lower_scalar_store(Lowering *lowering, int slot, Value *global, const Code *value) {
    for (int op = 0; op < OPERATOR_NONE; op++) {
        if (!forms[op].store || value->eval != forms[op].eval) continue;
        const ScalarCode *source = (const ScalarCode *)value;
        ScalarCode *code = LOWER_NEW(lowering, ScalarCode, forms[op].store, value->span);
        code->op = source->op;
        code->left_code = source->left_code;
        code->right_code = source->right_code;
        code->target = (Operand){.fixed = global, .slot = slot};
        ASSERT(operand_of(code->left_code, &code->left));
        ASSERT(operand_of(code->right_code, &code->right));
        return &code->head;
    }
    return NULL;
}
