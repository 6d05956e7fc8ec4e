// Values as print shows them, and as messages describe them.
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "device/foretell.h"
#include "value/convert.h"
#include "value/object.h"
#include "value/print.h"

enum { NESTING_SHOWN_MAX = 200 };

// The containers that are being printed, innermost first: one that contains itself shows as [...].
typedef struct Outer {
    const struct Outer *next;
    const void *container;
    int depth;
} Outer;

static Status print_nested(Value value, bool quoted, const Outer *outer, Text *out);

static Status print_items(const List *list, const Outer *outer, Text *out) {
    for (size_t i = 0; i < list->count; i++) {
        if (i) text_append_string(out, ", ");
        TRY(print_nested(list->items[i], true, outer, out));
    }
    return STATUS_OK;
}

static Status print_list(Value value, const Outer *outer, Text *out) {
    ASSERT(value.kind == VALUE_LIST || value.kind == VALUE_TUPLE);
    bool tuple = value.kind == VALUE_TUPLE;
    const List *list = value.as.list;
    text_append_char(out, tuple ? '(' : '[');
    TRY(print_items(list, outer, out));
    text_append_string(out, tuple ? (list->count == 1 ? ",)" : ")") : "]");
    return STATUS_OK;
}

static Status print_dict(const Dict *dict, const Outer *outer, Text *out) {
    text_append_char(out, '{');
    for (size_t i = 0; i < dict_count(dict); i++) {
        Value key, item;
        dict_entry(dict, i, &key, &item);
        if (i) text_append_string(out, ", ");
        TRY(print_nested(key, true, outer, out));
        text_append_string(out, ": ");
        TRY(print_nested(item, true, outer, out));
    }
    text_append_char(out, '}');
    return STATUS_OK;
}

static Status print_struct(const Instance *instance, const Outer *outer, Text *out) {
    const StructType *type = instance->type;
    ASSERT(type->field_count == 0 || type->field_names != NULL);
    text_append_string(out, type->name);
    text_append_string(out, type->field_count ? " { " : " {");
    for (size_t i = 0; i < type->field_count; i++) {
        text_format(out, i ? ", %s: " : "%s: ", type->field_names[i]);
        TRY(print_nested(instance->fields[i], true, outer, out));
    }
    text_append_string(out, type->field_count ? " }" : "}");
    return STATUS_OK;
}

static Status print_container(Value value, const Outer *outer, Text *out) {
    bool again = outer && outer->depth >= NESTING_SHOWN_MAX;
    for (const Outer *o = outer; o && !again; o = o->next) again = o->container == value.as.pointer;
    Outer here = {outer, value.as.pointer, outer ? outer->depth + 1 : 1};
    if (value.kind == VALUE_DICT) {
        if (!again) return print_dict(value.as.dict, &here, out);
        text_append_string(out, "{...}");
    } else if (value.kind == VALUE_STRUCT) {
        if (!again) return print_struct(value.as.instance, &here, out);
        text_format(out, "%s {...}", value.as.instance->type->name);
    } else {
        if (!again) return print_list(value, &here, out);
        text_append_string(out, value.kind == VALUE_TUPLE ? "(...)" : "[...]");
    }
    return STATUS_OK;
}

static void print_range(const Range *range, Text *out) {
    if (range->step == 1)
        text_format(out, "%lld..%lld", (long long)range->start, (long long)range->stop);
    else
        text_format(out, "range(%lld, %lld, %lld)", (long long)range->start, (long long)range->stop,
                    (long long)range->step);
}

static void print_handle(Handle *handle, Text *out) {
    if (handle->type->print)
        handle->type->print(handle, out);
    else
        text_format(out, "<%s>", handle->type->name);
}

static Status print_nested(Value value, bool quoted, const Outer *outer, Text *out) {
    switch ((ValueKind)value.kind) {
    case VALUE_NONE: text_append_string(out, "none"); break;
    case VALUE_BOOL: text_append_string(out, value.as.boolean ? "true" : "false"); break;
    case VALUE_INT: number_append_integer(out, value.as.integer); break;
    case VALUE_FLOAT: number_append_float(out, value.as.number); break;
    case VALUE_MEASURED: return value_print(value_guess(value), false, out);
    case VALUE_STRING:
        if (string_is_measured(value.as.string)) foretell_text_shown();
        if (quoted)
            text_append_quoted(out, value.as.string->bytes, value.as.string->length);
        else
            text_append(out, value.as.string->bytes, value.as.string->length);
        break;
    case VALUE_RANGE: print_range(value.as.range, out); break;
    case VALUE_BUILTIN: text_format(out, "<fn %s>", value.as.builtin->signature.name); break;
    case VALUE_DTYPE: text_append_string(out, dtype_name((DType)value.as.integer)); break;
    case VALUE_TYPE:
        text_format(out, "<struct %s>", ((const StructType *)value.as.pointer)->name);
        break;
    case VALUE_TENSOR: return tensor_print(value.as.tensor, out);
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_DICT:
    case VALUE_STRUCT: return print_container(value, outer, out);
    case VALUE_FUNCTION:
        text_format(out, "<fn %s>", value.as.function->name ? value.as.function->name : "lambda");
        break;
    case VALUE_HANDLE: print_handle(value.as.handle, out); break;
    case VALUE_CELL: return print_nested(value.as.cell->value, quoted, outer, out);
    case VALUE_ABSENT:
    case VALUE_FAIL: text_append_string(out, "<unset>"); break;
    }
    return STATUS_OK;
}

Status value_print(Value value, bool quoted, Text *out) {
    return print_nested(value, quoted, NULL, out);
}

static void describe_string(const String *string, Text *out) {
    enum { SHOWN_MAX = 40 };
    Value cut = string_slice(string, 0,
                             string_length(string) < SHOWN_MAX ? string_length(string) : SHOWN_MAX);
    text_append_quoted(out, cut.as.string->bytes, cut.as.string->length);
    if (string_length(string) > SHOWN_MAX) text_append_string(out, "...");
}

static void describe_count(const char *what, size_t count, const char *unit, Text *out) {
    text_format(out, "a %s of %zu %s%s", what, count, unit, count == 1 ? "" : "s");
}

static void describe_named(const char *name, Text *out) {
    text_format(out, "%s %s", text_article(name), name);
}

void value_describe(Value value, Text *out) {
    switch ((ValueKind)value.kind) {
    case VALUE_STRING: describe_string(value.as.string, out); break;
    case VALUE_TENSOR: tensor_describe(value.as.tensor, out); break;
    case VALUE_LIST: describe_count("list", value.as.list->count, "value", out); break;
    case VALUE_TUPLE: describe_count("tuple", value.as.list->count, "value", out); break;
    case VALUE_DICT: {
        size_t count = dict_count(value.as.dict);
        text_format(out, "a dictionary of %zu entr%s", count, count == 1 ? "y" : "ies");
        break;
    }
    case VALUE_STRUCT: describe_named(value.as.instance->type->name, out); break;
    case VALUE_HANDLE: describe_named(value.as.handle->type->name, out); break;
    case VALUE_FUNCTION:
    case VALUE_BUILTIN: text_append_string(out, "a function"); break;
    case VALUE_RANGE:
        text_append_string(out, "the range ");
        print_range(value.as.range, out);
        break;
    case VALUE_DTYPE: text_format(out, "the dtype %s", dtype_name((DType)value.as.integer)); break;
    case VALUE_TYPE:
        text_format(out, "the struct type %s", ((const StructType *)value.as.pointer)->name);
        break;
    case VALUE_CELL: value_describe(value.as.cell->value, out); break;
    case VALUE_ABSENT:
    case VALUE_FAIL: text_append_string(out, "nothing"); break;
    case VALUE_MEASURED: value_describe(value_look(value), out); break;
    case VALUE_NONE:
    case VALUE_BOOL:
    case VALUE_INT:
    case VALUE_FLOAT: {
        Status status = print_nested(value, false, NULL, out);
        ASSERT(status == STATUS_OK);
        break;
    }
    }
}

static ValueText text_taken(Text *text) {
    ValueText result;
    size_t length = text->length < sizeof result.text ? text->length : sizeof result.text - 1;
    while (length < text->length && length > 0 &&
           ((unsigned char)text_get(text)[length] & 0xC0u) == 0x80u)
        length--;
    memcpy(result.text, text_get(text), length);
    result.text[length] = '\0';
    text_free(text);
    return result;
}

ValueText value_text(Value value) {
    Text text = {0};
    value_describe(value, &text);
    return text_taken(&text);
}

ValueText value_shown(Value value) {
    enum { SHOWN_MAX = 80 };
    SCOPED_TEXT(text);
    if (value_print(value, true, &text) == STATUS_OK && text.length <= SHOWN_MAX &&
        !strchr(text_get(&text), '\n'))
        return text_taken(&text);
    return value_text(value);
}
