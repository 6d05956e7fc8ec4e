// JSON: read through jansson, written here because values have their own number text and order.
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "value/convert.h"
#include "value/format.h"
#include "value/items.h"
#include "value/json.h"
#include "value/object.h"
#include "value/print.h"

enum { NESTING_WRITTEN_MAX = 1000, INDENT_MAX = 32 };

Value builtin_parse_json(BuiltinCall *call) {
    const String *text = call->arguments[0].as.string;
    json_error_t error;
    json_t *json = json_loadb(text->bytes, text->length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!json) {
        fail(STATUS_FORMAT, "parse_json: %s (line %d, column %d)", error.text, error.line,
             error.column);
        return value_fail();
    }
    Value value = value_from_json(json);
    json_decref(json);
    return value;
}

// --- writing

typedef struct JsonWriter {
    Text text;
    int indent, depth;
} JsonWriter;

static Status write_value(JsonWriter *writer, Value value);

static Status write_float(JsonWriter *writer, double number) {
    if (!isfinite(number))
        return fail(STATUS_VALUE, "to_json: JSON has no %s", value_text(value_float(number)).text);
    number_append_float(&writer->text, number);
    return STATUS_OK;
}

static void new_line(JsonWriter *writer) {
    if (!writer->indent) return;
    text_append_char(&writer->text, '\n');
    text_append_repeated(&writer->text, ' ', (size_t)(writer->indent * writer->depth));
}

static Status open_bracket(JsonWriter *writer, char bracket) {
    text_append_char(&writer->text, bracket);
    if (++writer->depth <= NESTING_WRITTEN_MAX) return STATUS_OK;
    return fail(STATUS_DEPTH, "to_json: the value is nested more than %d deep, or contains itself",
                NESTING_WRITTEN_MAX);
}

static void close_bracket(JsonWriter *writer, char bracket, bool empty) {
    ASSERT(writer->depth > 0);
    writer->depth--;
    if (!empty) new_line(writer);
    text_append_char(&writer->text, bracket);
}

static void separate(JsonWriter *writer, bool first) {
    if (!first) text_append_string(&writer->text, writer->indent ? "," : ", ");
    new_line(writer);
}

static Status write_list(JsonWriter *writer, const List *list) {
    TRY(open_bracket(writer, '['));
    for (size_t i = 0; i < list->count; i++) {
        separate(writer, i == 0);
        TRY(write_value(writer, list->items[i]));
    }
    close_bracket(writer, ']', list->count == 0);
    return STATUS_OK;
}

static Status write_member(JsonWriter *writer, bool first, Value key, Value item) {
    separate(writer, first);
    if (key.kind == VALUE_STRING) {
        text_append_quoted(&writer->text, key.as.string->bytes, key.as.string->length);
    } else { // keys of other kinds are written as their text
        Text text = {0};
        TRY(value_print(key, false, &text));
        text_append_quoted(&writer->text, text_get(&text), text.length);
        text_free(&text);
    }
    text_append_string(&writer->text, ": ");
    return write_value(writer, item);
}

static Status write_dict(JsonWriter *writer, const Dict *dict) {
    TRY(open_bracket(writer, '{'));
    for (size_t i = 0; i < dict_count(dict); i++) {
        Value key, item;
        dict_entry(dict, i, &key, &item);
        TRY(write_member(writer, i == 0, key, item));
    }
    close_bracket(writer, '}', dict_count(dict) == 0);
    return STATUS_OK;
}

static Status write_struct(JsonWriter *writer, const Instance *instance) {
    TRY(open_bracket(writer, '{'));
    for (size_t i = 0; i < instance->type->field_count; i++)
        TRY(write_member(writer, i == 0, value_cstring(instance->type->field_names[i]),
                         instance->fields[i]));
    close_bracket(writer, '}', instance->type->field_count == 0);
    return STATUS_OK;
}

static Status write_items(JsonWriter *writer, Value value) {
    Value items = value_to_items(value, "to_json: x");
    if (items.kind == VALUE_FAIL) return error_current()->code;
    Status status = write_list(writer, items.as.list);
    value_release(items);
    return status;
}

static Status write_value(JsonWriter *writer, Value value) {
    TRY(value_read_number(&value));
    switch ((ValueKind)value.kind) {
    case VALUE_NONE: text_append_string(&writer->text, "null"); return STATUS_OK;
    case VALUE_BOOL:
        text_append_string(&writer->text, value.as.boolean ? "true" : "false");
        return STATUS_OK;
    case VALUE_INT: number_append_integer(&writer->text, value.as.integer); return STATUS_OK;
    case VALUE_FLOAT: return write_float(writer, value.as.number);
    case VALUE_STRING:
        text_append_quoted(&writer->text, value.as.string->bytes, value.as.string->length);
        return STATUS_OK;
    case VALUE_DTYPE: {
        const char *name = dtype_name((DType)value.as.integer);
        text_append_quoted(&writer->text, name, strlen(name));
        return STATUS_OK;
    }
    case VALUE_LIST:
    case VALUE_TUPLE: return write_list(writer, value.as.list);
    case VALUE_RANGE:
    case VALUE_TENSOR: return write_items(writer, value);
    case VALUE_DICT: return write_dict(writer, value.as.dict);
    case VALUE_STRUCT: return write_struct(writer, value.as.instance);
    default: return fail(STATUS_TYPE, "to_json: JSON has nothing for %s", value_text(value).text);
    }
}

Value builtin_to_json(BuiltinCall *call) {
    int64_t indent = call->arguments[1].as.integer;
    if (indent < 0 || indent > INDENT_MAX) {
        fail(STATUS_VALUE, "to_json: indent must be 0 to %d, but it is %lld", INDENT_MAX,
             (long long)indent);
        return value_fail();
    }
    JsonWriter writer = {.indent = (int)indent};
    Status status = write_value(&writer, call->arguments[0]);
    Value result = status == STATUS_OK ? value_string(text_get(&writer.text), writer.text.length)
                                       : value_fail();
    text_free(&writer.text);
    return result;
}
