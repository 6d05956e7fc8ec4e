// Filters that make or change numbers.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chat/template_calls.h"

// Of a number or of a text that is one, all of it but blanks around it.
static bool read_number(Value value, double *out) {
    if (value.kind == VALUE_INT || value.kind == VALUE_BOOL) *out = (double)value.as.integer;
    if (value.kind == VALUE_FLOAT) *out = value.as.number;
    if (value.kind != VALUE_STRING)
        return value.kind == VALUE_INT || value.kind == VALUE_BOOL || value.kind == VALUE_FLOAT;
    const char *text = string_end(value.as.string)->bytes;
    char *end;
    *out = strtod(text, &end);
    return end != text && strspn(end, " \t\r\n") == strlen(end) && !strpbrk(text, "xXpP");
}

// {value, default, base}
static Status call_int(const TemplateArguments *arguments, Value *out) {
    Value value = arguments->items[0], fallback = template_argument(arguments, 1, "default");
    double number = 0;
    bool known = read_number(value, &number);
    char *end;
    if (value.kind == VALUE_STRING && !strpbrk(string_end(value.as.string)->bytes, ".eEnN")) {
        *out = value_int(strtoll(value.as.string->bytes, &end, 10));
        if (known) return STATUS_OK;
    }
    bool fits = known && fabs(number) < 9e18;
    *out = value.kind == VALUE_INT         ? value
           : fits                          ? value_int((int64_t)number)
           : fallback.kind == VALUE_ABSENT ? value_int(0)
                                           : value_retain(fallback);
    return STATUS_OK;
}

static Status call_float(const TemplateArguments *arguments, Value *out) {
    Value fallback = template_argument(arguments, 1, "default");
    double number = 0;
    bool known = read_number(arguments->items[0], &number);
    *out = known                           ? value_float(number)
           : fallback.kind == VALUE_ABSENT ? value_float(0)
                                           : value_retain(fallback);
    return STATUS_OK;
}

static Status need_number(const TemplateArguments *arguments, const char *what, double *out) {
    Value value = arguments->items[0];
    if (value.kind != VALUE_STRING && read_number(value, out)) return STATUS_OK;
    return template_fail_at(arguments, "a number is expected by", what);
}

static Status call_abs(const TemplateArguments *arguments, Value *out) {
    double number = 0;
    TRY(need_number(arguments, "abs", &number));
    Value value = arguments->items[0];
    bool integer = value.kind != VALUE_FLOAT && value.as.integer != INT64_MIN;
    *out = integer ? value_int(llabs(value.as.integer)) : value_float(fabs(number));
    return STATUS_OK;
}

// {number, precision, method}: to even where it lies in the middle, as Python rounds
static Status call_round(const TemplateArguments *arguments, Value *out) {
    double number = 0;
    int64_t digits = 0;
    Value precision = template_argument(arguments, 1, "precision");
    Value method = template_argument(arguments, 2, "method");
    TRY(need_number(arguments, "round", &number));
    if (precision.kind != VALUE_ABSENT)
        TRY(template_need_int(precision, "round", arguments->line, &digits));
    double scale = pow(10.0, (double)digits), scaled = number * scale;
    const char *how = method.kind == VALUE_STRING ? string_end(method.as.string)->bytes : "common";
    double rounded = strcmp(how, "ceil") == 0    ? ceil(scaled)
                     : strcmp(how, "floor") == 0 ? floor(scaled)
                                                 : nearbyint(scaled);
    *out = value_float(isfinite(rounded / scale) ? rounded / scale : number);
    return STATUS_OK;
}

const TemplateRow template_number_filters[] = {
    {"int", call_int, 1},     {"float", call_float, 1}, {"abs", call_abs, 1},
    {"round", call_round, 1}, {NULL, NULL, 0},
};
