// What `is` asks.
#include <string.h>

#include "chat/template_calls.h"
#include "chat/template_operators.h"

static bool is_iterable(Value value) {
    uint64_t kind = value.kind;
    return kind == VALUE_STRING || kind == VALUE_LIST || kind == VALUE_TUPLE ||
           kind == VALUE_DICT || kind == VALUE_RANGE || kind == VALUE_ABSENT;
}

// Tests of one value.
#define TEST(name, condition)                                                                      \
    static Status test_##name(const TemplateArguments *arguments, Value *out) {                    \
        Value value = arguments->items[0];                                                         \
        *out = value_bool(condition);                                                              \
        return STATUS_OK;                                                                          \
    }
TEST(defined, value.kind != VALUE_ABSENT)
TEST(undefined, value.kind == VALUE_ABSENT)
TEST(none, value.kind == VALUE_NONE)
TEST(string, value.kind == VALUE_STRING)
TEST(mapping, value.kind == VALUE_DICT)
TEST(iterable, is_iterable(value))
TEST(number, value_is_plain_number(value))
TEST(integer, value.kind == VALUE_INT)
TEST(float, value.kind == VALUE_FLOAT)
TEST(boolean, value.kind == VALUE_BOOL)
TEST(true, value.kind == VALUE_BOOL && value.as.integer != 0)
TEST(false, value.kind == VALUE_BOOL && value.as.integer == 0)
TEST(odd, value.kind == VALUE_INT && value.as.integer % 2 != 0)
TEST(even, value.kind == VALUE_INT && value.as.integer % 2 == 0)
TEST(callable, value.kind == VALUE_FUNCTION || value.kind == VALUE_BUILTIN)
#undef TEST

// Comparisons, by their words.
#define TEST(name, sign)                                                                           \
    static Status test_##name(const TemplateArguments *arguments, Value *out) {                    \
        return template_operator(sign, arguments->items[0], arguments->items[1], arguments->line,  \
                                 out);                                                             \
    }
TEST(equal, "==")
TEST(unequal, "!=")
TEST(less, "<")
TEST(at_most, "<=")
TEST(greater, ">")
TEST(at_least, ">=")
TEST(in, "in")
#undef TEST

static Status test_same(const TemplateArguments *arguments, Value *out) {
    Value a = arguments->items[0], b = arguments->items[1];
    *out = value_bool(false);
    return a.kind == b.kind ? test_equal(arguments, out) : STATUS_OK;
}

static Status test_divisible(const TemplateArguments *arguments, Value *out) {
    Value rest;
    TRY(template_operator("%", arguments->items[0], arguments->items[1], arguments->line, &rest));
    *out = value_bool(!template_is_true(rest));
    return STATUS_OK;
}

static Status test_case(const TemplateArguments *arguments, const char *method, Value *out) {
    TemplateArguments text = *arguments;
    const String *string = template_text_of(arguments->items[0]);
    text.items[0] = value_string(string->bytes, string->length);
    return template_method(method, &text, out);
}

static Status test_upper(const TemplateArguments *arguments, Value *out) {
    return test_case(arguments, "isupper", out);
}

static Status test_lower(const TemplateArguments *arguments, Value *out) {
    return test_case(arguments, "islower", out);
}

const TemplateRow template_tests[] = {
    {"defined", test_defined, 1},
    {"undefined", test_undefined, 1},
    {"none", test_none, 1},
    {"string", test_string, 1},
    {"mapping", test_mapping, 1},
    {"iterable", test_iterable, 1},
    {"sequence", test_iterable, 1},
    {"number", test_number, 1},
    {"integer", test_integer, 1},
    {"float", test_float, 1},
    {"boolean", test_boolean, 1},
    {"true", test_true, 1},
    {"false", test_false, 1},
    {"odd", test_odd, 1},
    {"even", test_even, 1},
    {"callable", test_callable, 1},
    {"upper", test_upper, 1},
    {"lower", test_lower, 1},
    {"equalto", test_equal, 2},
    {"eq", test_equal, 2},
    {"==", test_equal, 2},
    {"ne", test_unequal, 2},
    {"!=", test_unequal, 2},
    {"lt", test_less, 2},
    {"lessthan", test_less, 2},
    {"<", test_less, 2},
    {"le", test_at_most, 2},
    {"<=", test_at_most, 2},
    {"gt", test_greater, 2},
    {"greaterthan", test_greater, 2},
    {">", test_greater, 2},
    {"ge", test_at_least, 2},
    {">=", test_at_least, 2},
    {"in", test_in, 2},
    {"sameas", test_same, 2},
    {"divisibleby", test_divisible, 2},
    {NULL, NULL, 0},
};
