// What values are to templates: truth, text, members, and the operators between them.
#include <string.h>

#include "chat/template_values.h"
#include "value/convert.h"
#include "value/format.h"
#include "value/object.h"

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

bool template_truth(Value value) {
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

// Python's words for what has no text of its own.
void template_append(Value value, Text *out) {
    if (value.kind == VALUE_NONE)
        text_append_string(out, "None");
    else if (value.kind == VALUE_BOOL)
        text_append_string(out, value.as.integer ? "True" : "False");
    else if (value.kind != VALUE_ABSENT && value_print(value, false, out) != STATUS_OK)
        text_append_string(out, "?");
}

// --- operators

static Status joined(Value left, Value right, int line, Value *out) {
    Text text = {0};
    template_append(left, &text);
    template_append(right, &text);
    Status status = template_check_size(text.length, TEMPLATE_BYTES_MAX, line);
    if (status == STATUS_OK) *out = value_string(text_get(&text), text.length);
    text_free(&text);
    return status;
}

static Status list_sum(Value left, Value right, int line, Value *out) {
    TRY(template_check_size(left.as.list->count + right.as.list->count, TEMPLATE_ITEMS_MAX, line));
    *out = value_list(left.as.list->count + right.as.list->count);
    const List *const parts[] = {left.as.list, right.as.list};
    for (size_t p = 0; p < 2; p++)
        for (size_t i = 0; i < parts[p]->count; i++)
            list_push(out->as.list, value_retain(parts[p]->items[i]));
    return STATUS_OK;
}

static int64_t floor_quotient(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

// Whole numbers, as far as they do not overflow; false where the sign does not fit.
static bool integer_result(char sign, int64_t a, int64_t b, int64_t *out) {
    switch (sign) {
    case '+': return !__builtin_add_overflow(a, b, out);
    case '-': return !__builtin_sub_overflow(a, b, out);
    case '*': return !__builtin_mul_overflow(a, b, out);
    default: break;
    }
    if (b == 0 || b == -1) return false;
    *out = sign == '%' ? a - b * floor_quotient(a, b) : floor_quotient(a, b);
    return sign == '%' || sign == '/';
}

static Status arithmetic(const char *sign, Value left, Value right, int line, Value *out) {
    int64_t whole;
    bool integers = left.kind == VALUE_INT && right.kind == VALUE_INT && strcmp(sign, "/") != 0;
    if (integers && integer_result(*sign, left.as.integer, right.as.integer, &whole)) {
        *out = value_int(whole);
        return STATUS_OK;
    }
    return fail(STATUS_FORMAT, "line %d of the template: cannot compute %s %s %s", line,
                value_text(left).text, sign, value_text(right).text);
}

static Status compare(const char *sign, Value left, Value right, Value *out) {
    int order;
    TRY(value_compare(left, right, &order));
    bool equal = order == 0 && sign[1] == '=';
    *out = value_bool(equal || (*sign == '<' ? order < 0 : order > 0));
    return STATUS_OK;
}

Status template_operator(const char *sign, Value left, Value right, int line, Value *out) {
    bool answer;
    if (strcmp(sign, "==") == 0 || strcmp(sign, "!=") == 0) {
        bool absent = left.kind == VALUE_ABSENT || right.kind == VALUE_ABSENT;
        if (absent)
            answer = left.kind == right.kind;
        else
            TRY(value_equals(left, right, &answer));
        *out = value_bool(answer == (*sign == '='));
        return STATUS_OK;
    }
    if (strcmp(sign, "in") == 0) {
        if (right.kind == VALUE_STRUCT && is_string(left))
            answer = struct_find_field(right.as.instance->type, left.as.string->bytes,
                                       left.as.string->length) >= 0;
        else
            TRY(value_contains(right, left, &answer));
        *out = value_bool(answer);
        return STATUS_OK;
    }
    if (*sign == '<' || *sign == '>') return compare(sign, left, right, out);
    if (*sign == '~' || (*sign == '+' && is_string(left) && is_string(right)))
        return joined(left, right, line, out);
    if (*sign == '+' && left.kind == VALUE_LIST && right.kind == VALUE_LIST)
        return list_sum(left, right, line, out);
    return arithmetic(sign, left, right, line, out);
}
