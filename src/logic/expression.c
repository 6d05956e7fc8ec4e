// Arithmetic on constants with the language's rules: integers trap on overflow and division by
// zero, an integer next to a float becomes one, `+` joins strings.
#include "logic/expression.h"

#include <math.h>
#include <stdlib.h>

static const char *const signs[] = {
    [ARITHMETIC_ADD] = "+", [ARITHMETIC_SUB] = "-", [ARITHMETIC_MUL] = "*",
    [ARITHMETIC_DIV] = "/", [ARITHMETIC_MOD] = "%", [ARITHMETIC_NEG] = "-",
};

static Status fail_operands(Store *store, Arithmetic kind, Datum a, Datum b) {
    SCOPED_TEXT(left);
    SCOPED_TEXT(right);
    constant_print(&store->constants, a, &left);
    constant_print(&store->constants, b, &right);
    fail(STATUS_TYPE, "%s %s %s: %s and %s cannot be computed with", text_get(&left), signs[kind],
         text_get(&right), constant_kind_name(constant_kind(&store->constants, a)),
         constant_kind_name(constant_kind(&store->constants, b)));
    return STATUS_TYPE;
}

static Status int_operate(Store *store, Arithmetic kind, int64_t a, int64_t b, Datum *out) {
    int64_t result = 0;
    bool overflow = false;
    if ((kind == ARITHMETIC_DIV || kind == ARITHMETIC_MOD) && b == 0)
        return fail(STATUS_DIVIDE, "%lld %s 0: division by zero", (long long)a, signs[kind]);
    switch (kind) {
    case ARITHMETIC_ADD: overflow = __builtin_add_overflow(a, b, &result); break;
    case ARITHMETIC_SUB: overflow = __builtin_sub_overflow(a, b, &result); break;
    case ARITHMETIC_MUL: overflow = __builtin_mul_overflow(a, b, &result); break;
    case ARITHMETIC_DIV:
        overflow = a == INT64_MIN && b == -1;
        if (!overflow) result = a / b;
        break;
    default: result = b == -1 ? 0 : a % b;
    }
    if (overflow)
        return fail(STATUS_OVERFLOW, "%lld %s %lld does not fit in 64 bits", (long long)a,
                    signs[kind], (long long)b);
    *out = constant_int(&store->constants, result);
    return STATUS_OK;
}

static double float_operate(Arithmetic kind, double a, double b) {
    switch (kind) {
    case ARITHMETIC_ADD: return a + b;
    case ARITHMETIC_SUB: return a - b;
    case ARITHMETIC_MUL: return a * b;
    case ARITHMETIC_DIV: return a / b;
    default: return fmod(a, b);
    }
}

static Datum text_join(Store *store, Datum a, Datum b) {
    SCOPED_TEXT(text);
    constant_print(&store->constants, a, &text);
    constant_print(&store->constants, b, &text);
    return constant_text(&store->constants, text_get(&text), text.length);
}

static Status operate(Store *store, Arithmetic kind, Datum a, Datum b, Datum *out) {
    const ConstantTable *constants = &store->constants;
    ConstantKind left = constant_kind(constants, a), right = constant_kind(constants, b);
    if (left == CONSTANT_INT && right == CONSTANT_INT)
        return int_operate(store, kind, constant_integer(constants, a),
                           constant_integer(constants, b), out);
    double x, y;
    if (constant_number(constants, a, &x) && constant_number(constants, b, &y)) {
        *out = constant_float(&store->constants, float_operate(kind, x, y));
        return STATUS_OK;
    }
    if (kind != ARITHMETIC_ADD || left != CONSTANT_TEXT || right != CONSTANT_TEXT)
        return fail_operands(store, kind, a, b);
    *out = text_join(store, a, b);
    return STATUS_OK;
}

static void arguments_gather(const Expression *expression, const Datum *variables,
                             Datum *arguments) {
    for (uint32_t i = 0; i < expression->variable_count; i++)
        arguments[i] = variables[expression->variables[i]];
}

static Status operator_value(Store *store, const Expression *expression, const Datum *variables,
                             Datum *out) {
    Datum left, right;
    TRY(expression_value(store, expression->left, variables, &left));
    if (expression->kind == ARITHMETIC_NEG) {
        right = left;
        left = constant_kind(&store->constants, right) == CONSTANT_FLOAT
                   ? constant_float(&store->constants, -0.0)
                   : constant_int(&store->constants, 0);
        return operate(store, ARITHMETIC_SUB, left, right, out);
    }
    TRY(expression_value(store, expression->right, variables, &right));
    return operate(store, expression->kind, left, right, out);
}

Status expression_value(Store *store, const Expression *expression, const Datum *variables,
                        Datum *out) {
    Datum arguments[VARIABLES_MAX];
    Status status = STATUS_OK;
    switch (expression->kind) {
    case ARITHMETIC_CONSTANT: *out = expression->value; return STATUS_OK;
    case ARITHMETIC_VARIABLE: *out = variables[expression->value]; return STATUS_OK;
    case ARITHMETIC_HOST:
        arguments_gather(expression, variables, arguments);
        status = store->host.evaluate(store->host.context, expression->host, arguments, out);
        break;
    default: status = operator_value(store, expression, variables, out);
    }
    if (status != STATUS_OK) error_place(expression->span);
    return status;
}

Status expression_test(Store *store, const Expression *expression, const Datum *variables,
                       bool *out) {
    Datum arguments[VARIABLES_MAX];
    arguments_gather(expression, variables, arguments);
    Status status = store->host.test(store->host.context, expression->host, arguments, out);
    if (status != STATUS_OK) error_place(expression->span);
    return status;
}

Status expression_members(Store *store, const Expression *expression, const Datum *variables,
                          DatumList *out) {
    Datum arguments[VARIABLES_MAX];
    arguments_gather(expression, variables, arguments);
    Status status = store->host.members(store->host.context, expression->host, arguments, out);
    if (status != STATUS_OK) error_place(expression->span);
    return status;
}

Status comparison_holds(Store *store, const Goal *goal, const Datum *variables, bool *out) {
    Datum left, right;
    TRY(expression_value(store, goal->left, variables, &left));
    ASSERT(goal->kind == GOAL_COMPARE);
    TRY(expression_value(store, goal->right, variables, &right));
    int order;
    bool ordered = constant_compare(&store->constants, left, right, &order);
    switch (goal->comparison) {
    case COMPARE_EQ: *out = ordered && order == 0; return STATUS_OK;
    case COMPARE_NE: *out = !ordered || order != 0; return STATUS_OK;
    case COMPARE_LT: *out = order < 0; break;
    case COMPARE_LE: *out = order <= 0; break;
    case COMPARE_GT: *out = order > 0; break;
    default: *out = order >= 0;
    }
    if (ordered) return STATUS_OK;
    constants_fail_order(&store->constants, left, right);
    error_place(goal->span);
    return STATUS_TYPE;
}
