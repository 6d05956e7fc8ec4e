// tojson, as Python's json.dumps writes values: with indent, separators, sort_keys and
// ensure_ascii.
#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "base/utf8.h"
#include "chat/template_calls.h"
#include "chat/template_operators.h"
#include "value/format.h"
#include "value/object.h"
#include "value/print.h"

enum { DEPTH_MAX = 100, INDENT_MAX = 32 };

typedef struct JsonWriter {
    Text text;
    const TemplateArguments *arguments;
    int64_t indent; // -1: all in one line
    const char *between, *after_key;
    bool ascii, sorted;
    int depth;
} JsonWriter;

static Status write_value(JsonWriter *writer, Value value);

static void write_codepoint(JsonWriter *writer, uint32_t codepoint) {
    if (codepoint < 0x10000) {
        text_format(&writer->text, "\\u%04x", codepoint);
        return;
    }
    uint32_t rest = codepoint - 0x10000;
    text_format(&writer->text, "\\u%04x\\u%04x", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
}

static void write_string(JsonWriter *writer, const String *string) {
    static const char letters[] = "\"\"\\\\\nn\rr\tt\bb\ff";
    Text *out = &writer->text;
    text_append_char(out, '"');
    for (size_t at = 0, size; at < string->length; at += size) {
        uint32_t codepoint = 0xFFFD;
        size = utf8_decode(string->bytes + at, string->length - at, &codepoint);
        if (size == 0) size = 1;
        const char *escape = letters;
        while (*escape && *escape != string->bytes[at]) escape += 2;
        if (*escape && size == 1) {
            text_append_char(out, '\\');
            text_append_char(out, escape[1]);
        } else if (codepoint < 0x20 || (writer->ascii && codepoint > 0x7E)) {
            write_codepoint(writer, codepoint);
        } else {
            text_append_codepoint(out, codepoint);
        }
    }
    text_append_char(out, '"');
}

static void new_line(JsonWriter *writer) {
    if (writer->indent < 0) return;
    text_append_char(&writer->text, '\n');
    text_append_repeated(&writer->text, ' ', (size_t)(writer->indent * writer->depth));
}

static Status open_bracket(JsonWriter *writer, char bracket) {
    text_append_char(&writer->text, bracket);
    TRY(template_check_size(writer->text.length, TEMPLATE_BYTES_MAX, writer->arguments->line));
    if (++writer->depth <= DEPTH_MAX) return STATUS_OK;
    return template_fail_at(writer->arguments, "the value is nested too deeply for", "tojson");
}

static void separate(JsonWriter *writer, bool first) {
    if (!first) text_append_string(&writer->text, writer->between);
    new_line(writer);
}

static void close_bracket(JsonWriter *writer, char bracket, bool empty) {
    ASSERT(writer->depth > 0);
    writer->depth--;
    if (!empty) new_line(writer);
    text_append_char(&writer->text, bracket);
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
    write_string(writer, template_text_of(key));
    text_append_string(&writer->text, writer->after_key);
    return write_value(writer, item);
}

static Status write_pairs(JsonWriter *writer, const List *pairs) {
    TRY(open_bracket(writer, '{'));
    for (size_t i = 0; i < pairs->count; i++) {
        const List *pair = pairs->items[i].as.list;
        TRY(write_member(writer, i == 0, pair->items[0], pair->items[1]));
    }
    close_bracket(writer, '}', pairs->count == 0);
    return STATUS_OK;
}

static Status write_dict(JsonWriter *writer, Value dict) {
    TemplateArguments arguments = {
        .items = {dict, value_bool(true)}, .count = 2, .line = writer->arguments->line};
    Value pairs;
    TRY(template_filter(writer->sorted ? "dictsort" : "items", &arguments, &pairs));
    Status status = write_pairs(writer, pairs.as.list);
    value_release(pairs);
    return status;
}

static Status write_struct(JsonWriter *writer, const Instance *instance) {
    TRY(open_bracket(writer, '{'));
    for (size_t i = 0; i < instance->type->field_count; i++)
        TRY(write_member(writer, i == 0, value_cstring(instance->type->field_names[i]),
                         instance->fields[i]));
    close_bracket(writer, '}', instance->type->field_count == 0);
    return STATUS_OK;
}

static void write_number(JsonWriter *writer, double number) {
    if (isnan(number))
        text_append_string(&writer->text, "NaN");
    else if (isinf(number))
        text_append_string(&writer->text, number > 0 ? "Infinity" : "-Infinity");
    else
        number_append_float(&writer->text, number);
}

static Status write_value(JsonWriter *writer, Value value) {
    switch ((ValueKind)value.kind) {
    case VALUE_NONE: text_append_string(&writer->text, "null"); break;
    case VALUE_BOOL: text_append_string(&writer->text, value.as.integer ? "true" : "false"); break;
    case VALUE_INT: number_append_integer(&writer->text, value.as.integer); break;
    case VALUE_FLOAT: write_number(writer, value.as.number); break;
    case VALUE_STRING: write_string(writer, value.as.string); break;
    case VALUE_LIST:
    case VALUE_TUPLE: return write_list(writer, value.as.list);
    case VALUE_DICT: return write_dict(writer, value);
    case VALUE_STRUCT: return write_struct(writer, value.as.instance);
    default:
        return fail(STATUS_FORMAT, "line %d of the template: `tojson` has nothing for %s",
                    writer->arguments->line,
                    value.kind == VALUE_ABSENT ? "what is undefined" : value_text(value).text);
    }
    return STATUS_OK;
}

static Status read_layout(JsonWriter *writer) {
    const TemplateArguments *arguments = writer->arguments;
    Value indent = template_argument(arguments, 2, "indent");
    Value separators = template_argument(arguments, 3, "separators");
    writer->ascii = template_is_true(template_argument(arguments, 1, "ensure_ascii"));
    writer->sorted = template_is_true(template_argument(arguments, 4, "sort_keys"));
    writer->indent = -1;
    if (indent.kind != VALUE_ABSENT && indent.kind != VALUE_NONE)
        TRY(template_need_int(indent, "tojson", arguments->line, &writer->indent));
    if (writer->indent > INDENT_MAX)
        return template_fail_at(arguments, "the indent is too large for", "tojson");
    writer->between = writer->indent < 0 ? ", " : ",";
    writer->after_key = ": ";
    bool pair = (separators.kind == VALUE_TUPLE || separators.kind == VALUE_LIST) &&
                separators.as.list->count == 2;
    if (!pair) return STATUS_OK;
    writer->between = template_text_of(separators.as.list->items[0])->bytes;
    writer->after_key = template_text_of(separators.as.list->items[1])->bytes;
    return STATUS_OK;
}

// {value, ensure_ascii, indent, separators, sort_keys}
Status template_call_tojson(const TemplateArguments *arguments, Value *out) {
    JsonWriter writer = {.arguments = arguments};
    TRY(read_layout(&writer));
    Status status = write_value(&writer, arguments->items[0]);
    *out = template_take_text(&writer.text);
    return status;
}
