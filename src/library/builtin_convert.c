// Conversions between kinds, and functions of plain numbers.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/foretell.h"
#include "eval/access.h"
#include "eval/bind.h"
#include "tensor/gradient/backward.h"
#include "value/convert.h"
#include "value/items.h"
#include "value/print.h"

Value builtin_str(BuiltinCall *call) {
    if (call->arguments[0].kind == VALUE_STRING) return call->arguments[0];
    SCOPED_TEXT(text);
    Status status = value_print(call->arguments[0], false, &text);
    return status == STATUS_OK ? value_string(text_get(&text), text.length) : value_fail();
}

Value builtin_type(BuiltinCall *call) {
    return value_cstring(value_kind_name(call->arguments[0]));
}

static bool is_one_of(char c, const char *set) {
    return c && strchr(set, c);
}

// A string without white space around it and without `_` between digits, as numbers are written.
static Status number_text(const String *string, char *out, size_t size) {
    const char *at = string->bytes, *end = string->bytes + string->length;
    while (at < end && is_one_of(*at, " \t\r\n")) at++;
    while (end > at && is_one_of(end[-1], " \t\r\n")) end--;
    size_t length = 0;
    for (; at < end; at++) {
        bool between = length > 0 && at + 1 < end;
        if (*at == '_' && between) continue;
        if (length + 1 >= size || !is_one_of(*at, "0123456789abcdefxABCDEFX+-.nity")) break;
        out[length++] = *at;
    }
    out[length] = '\0';
    return at == end && length > 0 ? STATUS_OK : STATUS_VALUE;
}

static Status fail_unreadable(const char *wanted, const String *string) {
    Value value = {.kind = VALUE_STRING, .as.string = (String *)string};
    return fail(STATUS_VALUE, "%s does not read as %s", value_text(value).text, wanted);
}

static Status int_from_string(const String *string, int64_t *out) {
    char text[80], *end;
    if (number_text(string, text, sizeof text) != STATUS_OK)
        return fail_unreadable("an int", string);
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    int base = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')   ? 16
               : digits[0] == '0' && (digits[1] == 'b' || digits[1] == 'B') ? 2
                                                                            : 10;
    const char *first = base == 10 ? digits : digits + 2;
    if (!*first || !strchr("0123456789abcdefABCDEF", *first))
        return fail_unreadable("an int", string);
    errno = 0;
    unsigned long long magnitude = strtoull(first, &end, base);
    bool negative = text[0] == '-';
    if (*end) return fail_unreadable("an int", string);
    if (errno == ERANGE || magnitude > (unsigned long long)INT64_MAX + negative)
        return fail(STATUS_OVERFLOW, "%s does not fit a 64-bit int", text);
    *out = negative ? (int64_t)(-magnitude) : (int64_t)magnitude;
    return STATUS_OK;
}

static Status int_from_double(double number, int64_t *out) {
    double whole = trunc(number);
    if (isnan(number)) return fail(STATUS_VALUE, "nan is not an integer");
    if (!(whole >= -0x1p63 && whole < 0x1p63))
        return fail(STATUS_OVERFLOW, "%s does not fit a 64-bit int",
                    value_text(value_float(number)).text);
    *out = (int64_t)whole;
    return STATUS_OK;
}

static Status fail_tensor_conversion(Value x, const char *dtype) {
    if (x.kind != VALUE_TENSOR) return error_current()->code;
    return fail_help("`x as %s` converts every element", dtype);
}

// The number alone goes on.
static void note_read(const char *name, Value x) {
    if (x.kind == VALUE_TENSOR) tape_note_read(name, x.as.tensor);
}

// A number that only a run has, or a text that shows one.
static bool is_measured(Value x) {
    return x.kind == VALUE_MEASURED || (x.kind == VALUE_STRING && string_is_measured(x.as.string));
}

static Value measured_as(uint64_t kind, Value x) {
    bool number = x.kind == VALUE_MEASURED;
    return value_measured(kind, number ? x.as.measured.at : origin_current.at);
}

Value builtin_int(BuiltinCall *call) {
    Value x = call->arguments[0];
    note_read("int", x);
    TRY_VALUE(value_read_number(&x));
    int64_t number = 0;
    if (is_measured(x)) return measured_as(VALUE_INT, x);
    if (x.kind == VALUE_INT) return x;
    if (x.kind == VALUE_BOOL) return value_int(x.as.boolean);
    if (x.kind == VALUE_FLOAT)
        TRY_VALUE(int_from_double(x.as.number, &number));
    else if (x.kind == VALUE_STRING)
        TRY_VALUE(int_from_string(x.as.string, &number));
    else {
        fail_kind("int: x", "a number, bool or string", x);
        fail_tensor_conversion(x, "int64");
        return value_fail();
    }
    return value_int(number);
}

static Status float_from_string(const String *string, double *out) {
    char text[400], *end;
    if (number_text(string, text, sizeof text) != STATUS_OK)
        return fail_unreadable("a float", string);
    bool hex = strpbrk(text, "xX") != NULL;
    *out = strtod(text, &end);
    return hex || *end ? fail_unreadable("a float", string) : STATUS_OK;
}

Value builtin_float(BuiltinCall *call) {
    Value x = call->arguments[0];
    note_read("float", x);
    TRY_VALUE(value_read_number(&x));
    double number = 0;
    if (is_measured(x)) return measured_as(VALUE_FLOAT, x);
    if (x.kind == VALUE_FLOAT) return x;
    if (x.kind == VALUE_INT) return value_float((double)x.as.integer);
    if (x.kind == VALUE_BOOL) return value_float(x.as.boolean);
    if (x.kind != VALUE_STRING) {
        fail_kind("float: x", "a number, bool or string", x);
        fail_tensor_conversion(x, "float32");
        return value_fail();
    }
    TRY_VALUE(float_from_string(x.as.string, &number));
    return value_float(number);
}

static Value bool_from_string(const String *string) {
    bool whole = strlen(string->bytes) == string->length;
    if (whole && strcmp(string->bytes, "true") == 0) return value_bool(true);
    if (whole && strcmp(string->bytes, "false") == 0) return value_bool(false);
    fail_unreadable("a bool", string);
    return value_fail();
}

Value builtin_bool(BuiltinCall *call) {
    Value x = call->arguments[0];
    TRY_VALUE(value_read_number(&x));
    int64_t length;
    if (is_measured(x)) return measured_as(VALUE_BOOL, x);
    switch ((ValueKind)x.kind) {
    case VALUE_BOOL: return x;
    case VALUE_INT: return value_bool(x.as.integer != 0);
    case VALUE_FLOAT: return value_bool(x.as.number != 0);
    case VALUE_NONE: return value_bool(false);
    case VALUE_STRING: return bool_from_string(x.as.string);
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_DICT:
    case VALUE_RANGE: TRY_VALUE(value_length(x, &length)); return value_bool(length != 0);
    default:
        fail_kind("bool: x", "a number, string, none or container", x);
        if (x.kind == VALUE_TENSOR) fail_help("any(...) or all(...) makes one bool of a tensor");
        return value_fail();
    }
}

// --- numbers

Value builtin_divmod(BuiltinCall *call) {
    const Builtin *rows[2] = {catalog_find("floor_div", 9), catalog_find("mod", 3)};
    Value pair = value_tuple(2);
    for (int i = 0; i < 2; i++) {
        Value part = interp_call_builtin(call->interp, rows[i], call->arguments, 2);
        if (part.kind == VALUE_FAIL) {
            value_release(pair);
            return part;
        }
        list_push(pair.as.list, part);
    }
    return pair;
}

Value builtin_factorial(BuiltinCall *call) {
    int64_t n = call->arguments[0].as.integer, product = 1;
    if (n < 0)
        return value_failed(
            fail(STATUS_VALUE, "factorial: n must not be negative, but it is %lld", (long long)n));
    for (int64_t i = 2; i <= n; i++) {
        if (!__builtin_mul_overflow(product, i, &product)) continue;
        return value_failed(fail(STATUS_OVERFLOW,
                                 "factorial(%lld) does not fit a 64-bit int; 20 is the largest n",
                                 (long long)n));
    }
    return value_int(product);
}

// Through the decimal text, which is exact: 2.675 is below the half that it is written as.
Value builtin_round_number(BuiltinCall *call) {
    enum { DIGITS_MAX = 300 };
    double x;
    int64_t digits = call->arguments[1].as.integer;
    if (is_measured(call->arguments[0])) return measured_as(VALUE_FLOAT, call->arguments[0]);
    TRY_VALUE(value_to_double(call->arguments[0], "round: x", &x));
    if (!isfinite(x) || digits > DIGITS_MAX) return value_float(x);
    if (digits < -DIGITS_MAX) return value_float(0);
    if (digits < 0) {
        double unit = pow(10, (double)-digits);
        return value_float(rint(x / unit) * unit);
    }
    char text[700];
    snprintf(text, sizeof text, "%.*f", (int)digits, x);
    return value_float(strtod(text, NULL));
}

// --- the largest and smallest of several

// The larger or smaller one of two numbers.
static Value measured_of(Value left, Value right) {
    SourcePos at = value_measured_at(left, right);
    if (value_kind_in_run(left) == value_kind_in_run(right))
        return value_measured(value_kind_in_run(left), at);
    return foretell_choose(at) ? left : right;
}

// The first nan, else the first that none comes before in the order times `sign`.
static Value pick(const BuiltinCall *call, int sign) {
    Value best = call->arguments[0];
    for (size_t i = 0; i <= call->rest_count; i++) {
        Value item = i ? call->rest[i - 1] : call->arguments[1], left = best, right = item;
        int order;
        TRY_VALUE(value_read_number(&left));
        TRY_VALUE(value_read_number(&right));
        if (UNLIKELY(left.kind == VALUE_MEASURED || right.kind == VALUE_MEASURED))
            return measured_of(left, right);
        if (left.kind == VALUE_FLOAT && isnan(left.as.number)) break;
        bool is_nan = right.kind == VALUE_FLOAT && isnan(right.as.number);
        TRY_VALUE(value_compare(right, left, &order));
        if (is_nan || order * sign > 0) best = item;
    }
    return value_retain(best);
}

Value builtin_max_number(BuiltinCall *call) {
    return pick(call, 1);
}
Value builtin_max_string(BuiltinCall *call) {
    return pick(call, 1);
}
Value builtin_min_number(BuiltinCall *call) {
    return pick(call, -1);
}
Value builtin_min_string(BuiltinCall *call) {
    return pick(call, -1);
}
