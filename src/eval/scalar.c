// The quick forms of arithmetic: operands that are variables or constants are read without a call,
// numbers are combined where they are, and `x = x + i` is one step. Whatever does not fit falls
// back to operators.c.
#include "eval/scalar.h"

#include "eval/formula.h"
#include "value/items.h"

// An operand that needs no evaluation: `fixed` points to a global or a constant; else a slot.
typedef struct Operand {
    const Value *fixed;
    size_t offset; // of the slot
    Value constant;
} Operand;

typedef struct ScalarCode {
    Code head;
    Operator op;
    Operand left, right;
    const Code *left_code, *right_code;
    Operand target;   // of stores
    bool extends;     // x + e that is stored in x, which lies ready
    const Code *next; // what a store goes on to, or NULL
} ScalarCode;

static bool operand_of(const Code *code, Operand *out) {
    int slot;
    if (code_is_local(code, &slot)) {
        out->offset = slot_offset(slot);
        return true;
    }
    out->fixed = code_global(code);
    if (out->fixed) return true;
    if (!code_constant(code, &out->constant)) return false;
    out->fixed = &out->constant;
    return out->constant.kind == VALUE_INT || out->constant.kind == VALUE_FLOAT ||
           out->constant.kind == VALUE_STRING;
}

// Where an operand lies: in any place, in a slot, in the node itself.
static inline Value *operand_any(const Frame *frame, const Operand *operand) {
    return operand->fixed ? (Value *)(uintptr_t)operand->fixed : slot_at(frame, operand->offset);
}

static inline Value *operand_slot(const Frame *frame, const Operand *operand) {
    return slot_at(frame, operand->offset);
}

static inline const Value *operand_constant(const Frame *frame, const Operand *operand) {
    (void)frame;
    return &operand->constant;
}

// --- numbers

#define ARITHMETIC_NUMBERS(name, ints, floats)                                                     \
    static inline bool name##_numbers(const Value *left, const Value *right, Value *out) {         \
        int64_t result;                                                                            \
        if (LIKELY(are_ints(left, right)))                                                         \
            return LIKELY(!ints(left->as.integer, right->as.integer, &result)) &&                  \
                   put_int(out, result);                                                           \
        if (are_floats(left, right))                                                               \
            return put_float(out, floats(left->as.number, right->as.number));                      \
        return is_int_or_float(left) && is_int_or_float(right) &&                                  \
               put_float(out, floats(read_float(left), read_float(right)));                        \
    }

#define COMPARE_NUMBERS(name, operator)                                                            \
    static inline bool name##_numbers(const Value *left, const Value *right, Value *out) {         \
        if (LIKELY(are_ints(left, right)))                                                         \
            return put_bool(out, left->as.integer operator right->as.integer);                     \
        return are_comparable(left, right) &&                                                      \
               put_bool(out, read_float(left) operator read_float(right));                         \
    }

#define EQUAL_NUMBERS(name, operator)                                                              \
    static inline bool name##_numbers(const Value *left, const Value *right, Value *out) {         \
        if (LIKELY(are_ints(left, right)))                                                         \
            return put_bool(out, left->as.integer operator right->as.integer);                     \
        if (left->kind == VALUE_STRING && right->kind == VALUE_STRING)                             \
            return put_bool(out, string_equals(left->as.string, right->as.string) operator true);  \
        return are_comparable(left, right) &&                                                      \
               put_bool(out, read_float(left) operator read_float(right));                         \
    }

// --- forms: where the operands of an operator are

// x = x + e of lists: extends x's where nobody but the variable and the operand holds it. False:
// the general way has to say. Takes nothing.
static __attribute__((noinline)) bool extend_own_list(const Frame *frame, const ScalarCode *code,
                                                      Value left, Value right) {
    const Value *held = operand_any(frame, &code->left);
    bool held_here = held->kind == VALUE_LIST && held->as.list == left.as.list;
    return held_here && list_extend_own(left.as.list, right);
}

// The general way. Takes the operands, of which the right one may have failed.
static __attribute__((noinline)) Value scalar_apply(Frame *frame, const ScalarCode *code,
                                                    Value left, Value right) {
    if (failed(right)) {
        value_release(left);
        return right;
    }
    bool list = code->extends && left.kind == VALUE_LIST;
    if (UNLIKELY(list) && extend_own_list(frame, code, left, right)) {
        value_release(right);
        return left;
    }
    Operands operands = {.left = left,
                         .right = right,
                         .left_code = code->left_code,
                         .right_code = code->right_code,
                         .span = code->head.span};
    return operator_apply(frame, code->op, &operands);
}

// The same with the left one alone, which may have failed, and with none.
static __attribute__((noinline)) Value scalar_right(Frame *frame, const ScalarCode *code,
                                                    Value left) {
    if (failed(left)) return left;
    return scalar_apply(frame, code, left, EVAL(frame, code->right_code));
}

static __attribute__((noinline)) Value scalar_slow(Frame *frame, const ScalarCode *code) {
    return scalar_right(frame, code, EVAL(frame, code->left_code));
}

static __attribute__((noinline)) Value store_value(Frame *frame, const ScalarCode *code,
                                                   Value *target, Value value) {
    if (failed(value)) return value;
    Value old = *target;
    *target = value;
    value_release(old);
    return code_go_on(frame, code->next);
}

static __attribute__((noinline)) Value store_slow(Frame *frame, const ScalarCode *code,
                                                  Value *target) {
    return store_value(frame, code, target, scalar_slow(frame, code));
}

// What the form of an operator gives: the result or, where there is a target, none, with the result
// in it.
#define GIVE_OR(name, left, right, slow, slow_store)                                               \
    Value out;                                                                                     \
    if (!stores) return LIKELY(name##_numbers(left, right, &out)) ? out : (slow);                  \
    if (LIKELY(!value_is_counted(*target)) && LIKELY(name##_numbers(left, right, target)))         \
        return code_go_on(frame, code->next);                                                      \
    return slow_store
#define GIVE(name, left, right, slow)                                                              \
    GIVE_OR(name, left, right, slow, store_value(frame, code, target, slow))
// name_form, and it as code: eval_ gives the value, store_ puts it into a variable.
#define FORM(name, form)                                                                           \
    static inline __attribute__((always_inline))                                                   \
    Value name##_##form(Frame *frame, const ScalarCode *code, bool stores, Value *target)
#define EVAL_FORM(name, form)                                                                      \
    static Value eval_##name##_##form(Frame *frame, const Code *code) {                            \
        return name##_##form(frame, (const ScalarCode *)code, false, NULL);                        \
    }
#define STORE_FORM(name, form, place)                                                              \
    static Value store_##name##_##form(Frame *frame, const Code *code) {                           \
        const ScalarCode *scalar = (const ScalarCode *)code;                                       \
        return name##_##form(frame, scalar, true, place(frame, &scalar->target));                  \
    }

// Both lie ready.
#define READY_FORM(name, form, left_place, right_place)                                            \
    FORM(name, form) {                                                                             \
        const Value *left = left_place(frame, &code->left);                                        \
        GIVE_OR(name, left, right_place(frame, &code->right), scalar_slow(frame, code),            \
                store_slow(frame, code, target));                                                  \
    }                                                                                              \
    EVAL_FORM(name, form)
// The left one is evaluated.
#define LEFT_FORM(name, form, right_place)                                                         \
    FORM(name, form) {                                                                             \
        Value left = EVAL(frame, code->left_code);                                                 \
        GIVE(name, &left, right_place(frame, &code->right), scalar_right(frame, code, left));      \
    }                                                                                              \
    EVAL_FORM(name, form)
// The right one is: the left one is read before, as it is written before.
#define RIGHT_FORM(name)                                                                           \
    FORM(name, right) {                                                                            \
        Value left = *operand_any(frame, &code->left);                                             \
        if (UNLIKELY(!is_int_or_float(&left)))                                                     \
            return stores ? store_slow(frame, code, target) : scalar_slow(frame, code);            \
        Value right = EVAL(frame, code->right_code);                                               \
        GIVE(name, &left, &right, scalar_apply(frame, code, left, right));                         \
    }                                                                                              \
    EVAL_FORM(name, right)
#define BOTH_FORM(name)                                                                            \
    FORM(name, both) {                                                                             \
        Value left = EVAL(frame, code->left_code);                                                 \
        if (failed(left)) return left;                                                             \
        Value right = EVAL(frame, code->right_code);                                               \
        GIVE(name, &left, &right, scalar_apply(frame, code, left, right));                         \
    }                                                                                              \
    EVAL_FORM(name, both)
#define EVAL_FORMS(name)                                                                           \
    READY_FORM(name, slots, operand_slot, operand_slot)                                            \
    READY_FORM(name, constant, operand_slot, operand_constant)                                     \
    READY_FORM(name, ready, operand_any, operand_any)                                              \
    LEFT_FORM(name, left_slot, operand_slot)                                                       \
    LEFT_FORM(name, left_constant, operand_constant)                                               \
    RIGHT_FORM(name)                                                                               \
    BOTH_FORM(name)
// Into a slot; what lies ready also into a global.
#define STORE_FORMS(name)                                                                          \
    STORE_FORM(name, slots, operand_slot)                                                          \
    STORE_FORM(name, constant, operand_slot)                                                       \
    STORE_FORM(name, ready, operand_any)                                                           \
    STORE_FORM(name, left_slot, operand_slot)                                                      \
    STORE_FORM(name, left_constant, operand_slot)                                                  \
    STORE_FORM(name, right, operand_slot)                                                          \
    STORE_FORM(name, both, operand_slot)

#define ARITHMETIC(name, ints, floats)                                                             \
    ARITHMETIC_NUMBERS(name, ints, floats)                                                         \
    EVAL_FORMS(name)                                                                               \
    STORE_FORMS(name)
#define COMPARE(name, operator)                                                                    \
    COMPARE_NUMBERS(name, operator)                                                                \
    EVAL_FORMS(name)
#define EQUAL(name, operator)                                                                      \
    EQUAL_NUMBERS(name, operator)                                                                  \
    EVAL_FORMS(name)

ARITHMETIC(add, __builtin_add_overflow, PLUS)
ARITHMETIC(sub, __builtin_sub_overflow, MINUS)
ARITHMETIC(mul, __builtin_mul_overflow, TIMES)
ARITHMETIC(div, divide_ints, OVER)
ARITHMETIC(mod, remain_ints, fmod)
EQUAL(eq, ==)
EQUAL(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)

// A key in a dictionary that lies ready, so that nothing has to be let go.
static inline bool in_numbers(const Value *left, const Value *right, Value *out) {
    if (right->kind != VALUE_DICT || (left->kind != VALUE_STRING && left->kind != VALUE_INT))
        return false;
    return put_bool(out, dict_get(right->as.dict, *left).kind != VALUE_ABSENT);
}
READY_FORM(in, slots, operand_slot, operand_slot)
READY_FORM(in, ready, operand_any, operand_any)
LEFT_FORM(in, left_slot, operand_slot)

typedef enum Form {
    FORM_SLOTS,
    FORM_CONSTANT,
    FORM_READY,
    FORM_LEFT_SLOT,
    FORM_LEFT_CONSTANT,
    FORM_RIGHT,
    FORM_BOTH,
    FORM_COUNT
} Form;

typedef struct OperatorForms {
    Eval eval[FORM_COUNT], store[FORM_COUNT];
    bool (*combine)(const Value *left, const Value *right, Value *out);
} OperatorForms;

#define FORMS_OF(prefix, name)                                                                     \
    {                                                                                              \
        prefix##_##name##_slots, prefix##_##name##_constant, prefix##_##name##_ready,              \
            prefix##_##name##_left_slot, prefix##_##name##_left_constant, prefix##_##name##_right, \
            prefix##_##name##_both                                                                 \
    }
#define EVALS(name) .eval = FORMS_OF(eval, name), .combine = name##_numbers
#define STORES(name) .store = FORMS_OF(store, name)

static const OperatorForms forms[OPERATOR_NONE] = {
    [OPERATOR_ADD] = {EVALS(add), STORES(add)},
    [OPERATOR_SUB] = {EVALS(sub), STORES(sub)},
    [OPERATOR_MUL] = {EVALS(mul), STORES(mul)},
    [OPERATOR_DIV] = {EVALS(div), STORES(div)},
    [OPERATOR_MOD] = {EVALS(mod), STORES(mod)},
    [OPERATOR_EQ] = {EVALS(eq)},
    [OPERATOR_NE] = {EVALS(ne)},
    [OPERATOR_LT] = {EVALS(lt)},
    [OPERATOR_LE] = {EVALS(le)},
    [OPERATOR_GT] = {EVALS(gt)},
    [OPERATOR_GE] = {EVALS(ge)},
    [OPERATOR_IN] = {.eval = {[FORM_SLOTS] = eval_in_slots,
                              [FORM_READY] = eval_in_ready,
                              [FORM_LEFT_SLOT] = eval_in_left_slot}},
};

bool scalar_combine(Operator op, const Value *left, const Value *right, Value *out) {
    return forms[op].combine && forms[op].combine(left, right, out);
}

static bool is_own_constant(const Operand *operand) {
    return operand->fixed == &operand->constant;
}

static Form form_of(const ScalarCode *code, bool left_ready, bool right_ready) {
    bool right_slot = right_ready && !code->right.fixed;
    bool right_constant = right_ready && is_own_constant(&code->right);
    if (left_ready && right_ready) {
        if (code->left.fixed) return FORM_READY;
        return right_slot ? FORM_SLOTS : right_constant ? FORM_CONSTANT : FORM_READY;
    }
    if (left_ready) return FORM_RIGHT;
    return right_slot ? FORM_LEFT_SLOT : right_constant ? FORM_LEFT_CONSTANT : FORM_BOTH;
}

// Operators without forms of their own.
static Value eval_general(Frame *frame, const Code *code) {
    return scalar_slow(frame, (const ScalarCode *)code);
}

const Code *lower_scalar_binary(Lowering *lowering, Operator op, const Code *left,
                                const Code *right, Span span) {
    ScalarCode *code = LOWER_NEW(lowering, ScalarCode, eval_general, span);
    code->op = op;
    code->left_code = left;
    code->right_code = right;
    bool left_ready = operand_of(left, &code->left), right_ready = operand_of(right, &code->right);
    Eval quick = forms[op].eval[form_of(code, left_ready, right_ready)];
    if (quick) code->head.eval = quick;
    return lower_formula(lowering, &code->head);
}

// The form of a code that lower_scalar_binary made, or -1.
static int find_form(const Code *code) {
    for (int op = 0; op < OPERATOR_NONE; op++)
        for (int form = 0; form < FORM_COUNT; form++)
            if (forms[op].combine && code->eval == forms[op].eval[form]) return form;
    return -1;
}

bool scalar_parts(const Code *code, ScalarParts *out) {
    if (find_form(code) < 0) return false;
    const ScalarCode *scalar = (const ScalarCode *)code;
    *out = (ScalarParts){scalar->op, scalar->left_code, scalar->right_code};
    return true;
}

bool scalar_store_follow(const Code *store, const Code *next) {
    for (int op = 0; op < OPERATOR_NONE; op++)
        for (int form = 0; form < FORM_COUNT; form++)
            if (forms[op].store[form] && store->eval == forms[op].store[form]) {
                ((ScalarCode *)(uintptr_t)store)->next = next;
                return true;
            }
    return false;
}

bool code_is_arithmetic(const Code *code) {
    Operand operand = {0};
    code = formula_general(code);
    if (find_form(code) < 0) return operand_of(code, &operand);
    const ScalarCode *scalar = (const ScalarCode *)code;
    return code_is_arithmetic(scalar->left_code) && code_is_arithmetic(scalar->right_code);
}

// Before the value's code is copied or run.
static void note_extension(const Code *value, int slot, const Value *global) {
    ScalarCode *code = (ScalarCode *)(uintptr_t)value;
    Operand left = {0};
    if (code->op != OPERATOR_ADD || !operand_of(code->left_code, &left)) return;
    code->extends = global ? left.fixed == global : !left.fixed && left.offset == slot_offset(slot);
}

const Code *lower_scalar_store(Lowering *lowering, int slot, Value *global, const Code *value) {
    value = formula_general(value);
    int form = find_form(value);
    if (form >= 0) note_extension(value, slot, global);
    if (form < 0 || !forms[((const ScalarCode *)value)->op].store[form]) return NULL;
    if (global && form > FORM_READY) return NULL;
    if (global) form = FORM_READY;
    ScalarCode *code = LOWER_NEW(lowering, ScalarCode, NULL, value->span);
    *code = *(const ScalarCode *)value;
    // An operand that lies in its node lies in this one now.
    (void)operand_of(code->left_code, &code->left);
    (void)operand_of(code->right_code, &code->right);
    code->target = (Operand){.fixed = global, .offset = slot_offset(slot)};
    code->head.eval = forms[code->op].store[form];
    return &code->head;
}
