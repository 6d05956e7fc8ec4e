// What values are to templates: true or false, text, members, and the operators between them.
#include <math.h>
#include <string.h>

#include "chat/template_calls.h"
#include "chat/template_operators.h"
#include "chat/template_values.h"
#include "eval/access.h"
#include "value/items.h"
#include "value/object.h"
#include "value/print.h"

static bool is_string(Value value) {
    return value.kind == VALUE_STRING;
}

Status template_check_size(size_t size, size_t size_max, int line) {
    if (size <= size_max) return STATUS_OK;
    return fail(STATUS_FORMAT, "line %d of the template: something grows beyond all measure", line);
}

Value template_member(Value object, const char *name) {
    if (object.kind == VALUE_DICT) return dict_get_word(object.as.dict, name);
    if (object.kind != VALUE_STRUCT) return value_absent();
    int at = struct_find_field(object.as.instance->type, name, strlen(name));
    return at < 0 ? value_absent() : object.as.instance->fields[at];
}

bool template_is_true(Value value) {
    int64_t length;
    switch (value.kind) {
    case VALUE_ABSENT:
    case VALUE_NONE: return false;
    case VALUE_BOOL:
    case VALUE_INT: return value.as.integer != 0;
    case VALUE_FLOAT: return value.as.number != 0;
    case VALUE_STRING: return value.as.string->length > 0;
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_DICT: return value_length(value, &length) != STATUS_OK || length > 0;
    default: return true;
    }
}

// --- text, as Python's str and repr make it

static void append_string_quoted(const String *string, Text *out) {
    static const char letters[] = "\nn\rr\tt\\\\";
    bool single = memchr(string->bytes, '\'', string->length) != NULL;
    char quote = single && !memchr(string->bytes, '"', string->length) ? '"' : '\'';
    text_append_char(out, quote);
    for (size_t i = 0; i < string->length; i++) {
        char c = string->bytes[i];
        const char *escape = letters;
        while (*escape && *escape != c) escape += 2;
        if (*escape || c == quote) {
            text_append_char(out, '\\');
            text_append_char(out, *escape ? escape[1] : c);
        } else if ((unsigned char)c < ' ' || c == 0x7F) {
            text_format(out, "\\x%02x", (unsigned char)c);
        } else {
            text_append_char(out, c);
        }
    }
    text_append_char(out, quote);
}

// A namespace may contain itself: what lies deep is left out.
enum { QUOTED_DEPTH_MAX = 100 };

static void append_quoted(Value value, int depth, Text *out);

static void append_items(const List *list, bool tuple, int depth, Text *out) {
    text_append_char(out, tuple ? '(' : '[');
    for (size_t i = 0; i < list->count && out->length < TEMPLATE_BYTES_MAX; i++) {
        if (i > 0) text_append_string(out, ", ");
        append_quoted(list->items[i], depth + 1, out);
    }
    if (tuple && list->count == 1) text_append_char(out, ',');
    text_append_char(out, tuple ? ')' : ']');
}

static void append_dict(const Dict *dict, int depth, Text *out) {
    text_append_char(out, '{');
    for (size_t i = 0; i < dict_count(dict) && out->length < TEMPLATE_BYTES_MAX; i++) {
        Value key, item;
        dict_entry(dict, i, &key, &item);
        if (i > 0) text_append_string(out, ", ");
        append_quoted(key, depth + 1, out);
        text_append_string(out, ": ");
        append_quoted(item, depth + 1, out);
    }
    text_append_char(out, '}');
}

static void append_quoted(Value value, int depth, Text *out) {
    if (depth > QUOTED_DEPTH_MAX)
        text_append_string(out, "...");
    else if (value.kind == VALUE_STRING)
        append_string_quoted(value.as.string, out);
    else if (value.kind == VALUE_LIST || value.kind == VALUE_TUPLE)
        append_items(value.as.list, value.kind == VALUE_TUPLE, depth, out);
    else if (value.kind == VALUE_DICT)
        append_dict(value.as.dict, depth, out);
    else if (value.kind == VALUE_ABSENT)
        text_append_string(out, "Undefined");
    else
        template_append(value, out);
}

static void template_append_quoted(Value value, Text *out) {
    append_quoted(value, 0, out);
}

void template_append(Value value, Text *out) {
    bool holds = value.kind == VALUE_LIST || value.kind == VALUE_TUPLE || value.kind == VALUE_DICT;
    if (holds)
        template_append_quoted(value, out);
    else if (value.kind == VALUE_NONE)
        text_append_string(out, "None");
    else if (value.kind == VALUE_BOOL)
        text_append_string(out, value.as.integer ? "True" : "False");
    else if (value.kind != VALUE_ABSENT && value_print(value, false, out) != STATUS_OK)
        text_append_string(out, "?");
}

// --- operators

static Status joined(Value left, Value right, int line, Value *out) {
    SCOPED_TEXT(text);
    template_append(left, &text);
    template_append(right, &text);
    Status status = template_check_size(text.length, TEMPLATE_BYTES_MAX, line);
    if (status == STATUS_OK) *out = value_string(text_get(&text), text.length);
    return status;
}

static Status list_sum(Value left, Value right, int line, Value *out) {
    size_t count = left.as.list->count + right.as.list->count;
    TRY(template_check_size(count, TEMPLATE_ITEMS_MAX, line));
    *out = left.kind == VALUE_TUPLE ? value_tuple(count) : value_list(count);
    const List *const parts[] = {left.as.list, right.as.list};
    for (size_t p = 0; p < 2; p++) list_append(out->as.list, parts[p]->items, parts[p]->count);
    return STATUS_OK;
}

static Status repeated(const String *text, int64_t count, int line, Value *out) {
    if (count < 0) count = 0;
    size_t length = 0;
    if (__builtin_mul_overflow(text->length, (size_t)count, &length)) length = SIZE_MAX;
    TRY(template_check_size(length, TEMPLATE_BYTES_MAX, line));
    SCOPED_TEXT(all);
    for (int64_t i = 0; i < count && text->length > 0; i++)
        text_append(&all, text->bytes, text->length);
    *out = value_string(text_get(&all), all.length);
    return STATUS_OK;
}

static int64_t floor_quotient(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

// Integers, as far as they do not overflow; false where the sign does not fit.
static bool integer_result(const char *sign, int64_t a, int64_t b, int64_t *out) {
    if (strcmp(sign, "+") == 0) return !__builtin_add_overflow(a, b, out);
    if (strcmp(sign, "-") == 0) return !__builtin_sub_overflow(a, b, out);
    if (strcmp(sign, "*") == 0) return !__builtin_mul_overflow(a, b, out);
    if (strcmp(sign, "**") == 0 && b >= 0 && b < 64) {
        *out = 1;
        for (int64_t i = 0; i < b; i++)
            if (__builtin_mul_overflow(*out, a, out)) return false;
        return true;
    }
    bool quotient = strcmp(sign, "//") == 0;
    if (b == 0 || (!quotient && *sign != '%')) return false;
    if (b == -1) return !__builtin_mul_overflow(a, quotient ? -1 : 0, out);
    *out = quotient ? floor_quotient(a, b) : a - b * floor_quotient(a, b);
    return true;
}

static bool float_result(const char *sign, double a, double b, double *out) {
    bool divides = *sign == '/' || *sign == '%', power = strcmp(sign, "**") == 0;
    if ((divides && b == 0) || (power && a == 0 && b < 0)) return false;
    if (power && a < 0 && b != floor(b)) return false; // a complex number
    *out = strcmp(sign, "+") == 0    ? a + b
           : strcmp(sign, "-") == 0  ? a - b
           : strcmp(sign, "*") == 0  ? a * b
           : power                   ? pow(a, b)
           : strcmp(sign, "/") == 0  ? a / b
           : strcmp(sign, "//") == 0 ? floor(a / b)
                                     : a - b * floor(a / b);
    return true;
}

static bool is_integer(Value value) {
    return value.kind == VALUE_INT || value.kind == VALUE_BOOL;
}

static bool is_numeric(Value value) {
    return is_integer(value) || value.kind == VALUE_FLOAT;
}

static double number_of(Value value) {
    return value.kind == VALUE_FLOAT ? value.as.number : (double)value.as.integer;
}

static Status arithmetic(const char *sign, Value left, Value right, int line, Value *out) {
    int64_t integer;
    double number;
    bool numeric = is_numeric(left) && is_numeric(right);
    bool integers = numeric && left.kind != VALUE_FLOAT && right.kind != VALUE_FLOAT;
    if (integers && integer_result(sign, left.as.integer, right.as.integer, &integer)) {
        *out = value_int(integer);
        return STATUS_OK;
    }
    bool inverse = strcmp(sign, "**") == 0 && integers && right.as.integer < 0;
    bool exact = integers && !inverse && strcmp(sign, "/") != 0; // an integer, or an error
    if (numeric && !exact && float_result(sign, number_of(left), number_of(right), &number)) {
        *out = value_float(number);
        return STATUS_OK;
    }
    return fail(STATUS_FORMAT, "line %d of the template: cannot compute %s %s %s", line,
                left.kind == VALUE_ABSENT ? "nothing" : value_text(left).text, sign,
                right.kind == VALUE_ABSENT ? "nothing" : value_text(right).text);
}

// A bool is compared as the 0 or 1 that it is in Python.
static Value as_number(Value value) {
    return value.kind == VALUE_BOOL ? value_int(value.as.integer) : value;
}

static Status compare(const char *sign, Value left, Value right, int line, Value *out) {
    int order;
    if (value_compare(as_number(left), as_number(right), &order) != STATUS_OK)
        return fail(STATUS_FORMAT, "line %d of the template: %s and %s have no order", line,
                    value_text(left).text, value_text(right).text);
    bool equal = order == 0 && sign[1] == '=';
    *out = value_bool(equal || (*sign == '<' ? order < 0 : order > 0));
    return STATUS_OK;
}

// Nothing is in what is undefined.
static Status contains(Value container, Value item, int line, Value *out) {
    bool answer = false;
    if (container.kind == VALUE_NONE)
        return fail(STATUS_FORMAT, "line %d of the template: none contains nothing", line);
    if (container.kind == VALUE_STRUCT && is_string(item))
        answer = struct_find_field(container.as.instance->type, item.as.string->bytes,
                                   item.as.string->length) >= 0;
    else if (container.kind == VALUE_DICT)
        answer = is_string(item) && dict_get(container.as.dict, item).kind != VALUE_ABSENT;
    else if (container.kind != VALUE_ABSENT && item.kind != VALUE_ABSENT)
        TRY(value_contains(container, item, &answer));
    *out = value_bool(answer);
    return STATUS_OK;
}

Status template_operator(const char *sign, Value left, Value right, int line, Value *out) {
    bool answer;
    if (strcmp(sign, "==") == 0 || strcmp(sign, "!=") == 0) {
        bool absent = left.kind == VALUE_ABSENT || right.kind == VALUE_ABSENT;
        if (absent)
            answer = left.kind == right.kind;
        else
            TRY(value_equals(as_number(left), as_number(right), &answer));
        *out = value_bool(answer == (*sign == '='));
        return STATUS_OK;
    }
    if (strcmp(sign, "in") == 0) return contains(right, left, line, out);
    if (*sign == '<' || *sign == '>') return compare(sign, left, right, line, out);
    if (*sign == '~' || (*sign == '+' && is_string(left) && is_string(right)))
        return joined(left, right, line, out);
    if (*sign == '+' && value_is_sequence(left) && left.kind == right.kind)
        return list_sum(left, right, line, out);
    if (strcmp(sign, "*") == 0 && is_string(left) && is_integer(right))
        return repeated(left.as.string, right.as.integer, line, out);
    if (strcmp(sign, "*") == 0 && is_integer(left) && is_string(right))
        return repeated(right.as.string, left.as.integer, line, out);
    if (*sign == '%' && is_string(left))
        return template_format_percent(string_end(left.as.string), right, line, out);
    return arithmetic(sign, left, right, line, out);
}
