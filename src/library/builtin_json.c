// JSON: read through jansson, written here because values have their own number text and order.
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "value/convert.h"
#include "value/items.h"
#include "value/json.h"
#include "value/json_write.h"
#include "value/print.h"

enum { NESTING_WRITTEN_MAX = 1000, INDENT_MAX = 32 };

Value builtin_parse_json(BuiltinCall *call) {
    const String *text = call->arguments[0].as.string;
    json_error_t error;
    json_auto_t *json =
        json_loadb(text->bytes, text->length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!json)
        return value_failed(fail(STATUS_FORMAT, "parse_json: %s (line %d, column %d)", error.text,
                                 error.line, error.column));
    return value_from_json(json);
}

// --- writing

static Status check_opened(JsonWriter *writer) {
    if (writer->depth <= NESTING_WRITTEN_MAX) return STATUS_OK;
    return fail(STATUS_DEPTH, "to_json: the value is nested more than %d deep, or contains itself",
                NESTING_WRITTEN_MAX);
}

static Status write_float(JsonWriter *writer, double number) {
    if (!isfinite(number))
        return fail(STATUS_VALUE, "to_json: JSON has no %s", value_text(value_float(number)).text);
    number_append_float(&writer->text, number);
    return STATUS_OK;
}

// Keys that are not strings are written as their text.
static Status write_entry(JsonWriter *writer, const Dict *dict, size_t index) {
    Value key, item;
    dict_entry(dict, index, &key, &item);
    if (key.kind == VALUE_STRING) return json_write_member(writer, index == 0, key.as.string, item);
    SCOPED_TEXT(text);
    TRY(value_print(key, false, &text));
    Value shown = value_string(text_get(&text), text.length);
    return json_write_member(writer, index == 0, shown.as.string, item);
}

static Status write_dict(JsonWriter *writer, const Dict *dict) {
    TRY(json_open_object(writer));
    for (size_t i = 0; i < dict_count(dict); i++) TRY(write_entry(writer, dict, i));
    json_close_object(writer, dict_count(dict) == 0);
    return STATUS_OK;
}

static Status write_items(JsonWriter *writer, Value value) {
    SCOPED_VALUE(items) = value_to_items(value, "to_json: x");
    if (items.kind == VALUE_FAIL) return error_current()->code;
    return json_write_list(writer, items.as.list);
}

static Status write_value(JsonWriter *writer, Value value) {
    TRY(value_read_number(&value));
    value = value_guess(value);
    if (json_write_plain(writer, value)) return STATUS_OK;
    switch ((ValueKind)value.kind) {
    case VALUE_FLOAT: return write_float(writer, value.as.number);
    case VALUE_DTYPE: {
        const char *name = dtype_name((DType)value.as.integer);
        json_write_string(writer, name, strlen(name));
        return STATUS_OK;
    }
    case VALUE_LIST:
    case VALUE_TUPLE: return json_write_list(writer, value.as.list);
    case VALUE_RANGE:
    case VALUE_TENSOR: return write_items(writer, value);
    case VALUE_DICT: return write_dict(writer, value.as.dict);
    case VALUE_STRUCT: return json_write_struct(writer, value.as.instance);
    default: return fail(STATUS_TYPE, "to_json: JSON has nothing for %s", value_text(value).text);
    }
}

Value builtin_to_json(BuiltinCall *call) {
    int64_t indent = call->arguments[1].as.integer;
    if (indent < 0 || indent > INDENT_MAX)
        return value_failed(fail(STATUS_VALUE, "to_json: indent must be 0 to %d, but it is %lld",
                                 INDENT_MAX, (long long)indent));
    JsonWriter writer = {.indent = indent > 0 ? indent : -1,
                         .between = indent > 0 ? "," : ", ",
                         .after_key = ": ",
                         .write = write_value,
                         .opened = check_opened};
    Status status = write_value(&writer, call->arguments[0]);
    Value result = status == STATUS_OK ? value_string(text_get(&writer.text), writer.text.length)
                                       : value_fail();
    text_free(&writer.text);
    return result;
}
