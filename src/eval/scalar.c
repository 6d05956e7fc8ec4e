// The quick forms of arithmetic: operands that are variables or constants are read without a call,
// and `x = x + i` on ints is one step. Whatever does not fit falls back to operators.c.
#include "eval/code.h"

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

// Where an operand lies: in any place, in a slot, in the node itself.
static inline const Value *operand_any(const Frame *frame, const Operand *operand) {
    return operand->fixed ? operand->fixed : &frame->slots[operand->slot];
}

static inline const Value *operand_slot(const Frame *frame, const Operand *operand) {
    return &frame->slots[operand->slot];
}

static inline const Value *operand_constant(const Frame *frame, const Operand *operand) {
    (void)frame;
    return &operand->constant;
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

// For one operator: eval_ gives the result, store_ puts it into a variable. The suffix says where
// the operands lie: _slot in two slots, _constant in a slot and the node, _any anywhere.
#define ARITHMETIC_FORM(name, left_place, right_place, overflows, float_operator)                  \
    static Value eval_##name(Frame *frame, const Code *code) {                                     \
        const ScalarCode *scalar = (const ScalarCode *)code;                                       \
        const Value *left = left_place(frame, &scalar->left);                                      \
        const Value *right = right_place(frame, &scalar->right);                                   \
        int64_t result;                                                                            \
        if (LIKELY(left->kind == VALUE_INT && right->kind == VALUE_INT) &&                         \
            LIKELY(!overflows(left->as.integer, right->as.integer, &result)))                      \
            return value_int(result);                                                              \
        if (left->kind == VALUE_FLOAT && right->kind == VALUE_FLOAT)                               \
            return value_float(left->as.number float_operator right->as.number);                   \
        return scalar_slow(frame, scalar);                                                         \
    }                                                                                              \
    static Value store_##name(Frame *frame, const Code *code) {                                    \
        const ScalarCode *scalar = (const ScalarCode *)code;                                       \
        const Value *left = left_place(frame, &scalar->left);                                      \
        const Value *right = right_place(frame, &scalar->right);                                   \
        Value *target = (Value *)(uintptr_t)left_place(frame, &scalar->target);                    \
        int64_t result;                                                                            \
        if (LIKELY(left->kind == VALUE_INT && right->kind == VALUE_INT &&                          \
                   target->kind == VALUE_INT) &&                                                   \
            LIKELY(!overflows(left->as.integer, right->as.integer, &result))) {                    \
            target->as.integer = result;                                                           \
            return value_none();                                                                   \
        }                                                                                          \
        return store_slow(target, eval_##name(frame, code));                                       \
    }

#define COMPARE_FORM(name, left_place, right_place, operator)                                      \
    static Value eval_##name(Frame *frame, const Code *code) {                                     \
        const ScalarCode *scalar = (const ScalarCode *)code;                                       \
        const Value *left = left_place(frame, &scalar->left);                                      \
        const Value *right = right_place(frame, &scalar->right);                                   \
        if (LIKELY(left->kind == VALUE_INT && right->kind == VALUE_INT))                           \
            return value_bool(left->as.integer operator right->as.integer);                        \
        if (left->kind == VALUE_FLOAT && right->kind == VALUE_FLOAT)                               \
            return value_bool(left->as.number operator right->as.number);                          \
        return scalar_slow(frame, scalar);                                                         \
    }

#define ARITHMETIC(name, overflows, float_operator)                                                \
    ARITHMETIC_FORM(name##_slot, operand_slot, operand_slot, overflows, float_operator)            \
    ARITHMETIC_FORM(name##_constant, operand_slot, operand_constant, overflows, float_operator)    \
    ARITHMETIC_FORM(name##_any, operand_any, operand_any, overflows, float_operator)
#define COMPARE(name, operator)                                                                    \
    COMPARE_FORM(name##_slot, operand_slot, operand_slot, operator)                                \
    COMPARE_FORM(name##_constant, operand_slot, operand_constant, operator)                        \
    COMPARE_FORM(name##_any, operand_any, operand_any, operator)

static __attribute__((noinline)) Value store_slow(Value *target, Value value) {
    if (failed(value)) return value;
    Value old = *target;
    *target = value;
    value_release(old);
    return value_none();
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

typedef enum Place { PLACE_SLOT, PLACE_CONSTANT, PLACE_ANY, PLACE_COUNT } Place;

#define EVALS(name)                                                                                \
    { eval_##name##_slot, eval_##name##_constant, eval_##name##_any }
#define STORES(name)                                                                               \
    { store_##name##_slot, store_##name##_constant, store_##name##_any }

static const Eval evals[OPERATOR_NONE][PLACE_COUNT] = {
    [OPERATOR_ADD] = EVALS(add), [OPERATOR_SUB] = EVALS(sub), [OPERATOR_MUL] = EVALS(mul),
    [OPERATOR_EQ] = EVALS(eq),   [OPERATOR_NE] = EVALS(ne),   [OPERATOR_LT] = EVALS(lt),
    [OPERATOR_LE] = EVALS(le),   [OPERATOR_GT] = EVALS(gt),   [OPERATOR_GE] = EVALS(ge),
};
static const Eval stores[OPERATOR_NONE][PLACE_COUNT] = {
    [OPERATOR_ADD] = STORES(add), [OPERATOR_SUB] = STORES(sub), [OPERATOR_MUL] = STORES(mul)};

static Place place_of(const ScalarCode *code) {
    if (code->left.fixed) return PLACE_ANY;
    if (!code->right.fixed) return PLACE_SLOT;
    return code->right.fixed == &code->right.constant ? PLACE_CONSTANT : PLACE_ANY;
}

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
    if (evals[op][PLACE_ANY] && operand_of(left, &code->left) && operand_of(right, &code->right))
        code->head.eval = evals[op][place_of(code)];
    return &code->head;
}

static bool is_storable(const Code *value) {
    for (int op = 0; op < OPERATOR_NONE; op++)
        for (int place = 0; place < PLACE_COUNT; place++)
            if (stores[op][place] && value->eval == evals[op][place]) return true;
    return false;
}

const Code *lower_scalar_store(Lowering *lowering, int slot, Value *global, const Code *value) {
    if (!is_storable(value)) return NULL;
    const ScalarCode *source = (const ScalarCode *)value;
    ScalarCode *code = LOWER_NEW(lowering, ScalarCode, NULL, value->span);
    code->op = source->op;
    code->left_code = source->left_code;
    code->right_code = source->right_code;
    code->target = (Operand){.fixed = global, .slot = slot};
    ASSERT(operand_of(code->left_code, &code->left) && operand_of(code->right_code, &code->right));
    code->head.eval = stores[code->op][global ? PLACE_ANY : place_of(code)];
    return &code->head;
}
