#include "value/json_write.h"

#include "base/number.h"
#include "base/utf8.h"
#include "value/object.h"

static void write_codepoint(Text *out, uint32_t codepoint) {
    ASSERT(codepoint <= 0x10FFFF);
    if (codepoint < 0x10000) {
        text_format(out, "\\u%04x", codepoint);
        return;
    }
    uint32_t rest = codepoint - 0x10000;
    text_format(out, "\\u%04x\\u%04x", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
}

void json_write_string(JsonWriter *writer, const char *bytes, size_t length) {
    static const char letters[] = "\"\"\\\\\nn\rr\tt\bb\ff"; // a character and its letter
    Text *out = &writer->text;
    text_append_char(out, '"');
    for (size_t at = 0, size; at < length; at += size) {
        uint32_t codepoint = 0xFFFD;
        size = utf8_decode(bytes + at, length - at, &codepoint);
        if (size == 0) size = 1;
        const char *escape = letters;
        while (*escape && *escape != bytes[at]) escape += 2;
        if (*escape && size == 1) {
            text_append_char(out, '\\');
            text_append_char(out, escape[1]);
        } else if (codepoint < 0x20 || (writer->ascii && codepoint > 0x7E)) {
            write_codepoint(out, codepoint);
        } else {
            text_append_codepoint(out, codepoint);
        }
    }
    text_append_char(out, '"');
}

bool json_write_plain(JsonWriter *writer, Value value) {
    Text *out = &writer->text;
    switch ((ValueKind)value.kind) {
    case VALUE_NONE: text_append_string(out, "null"); return true;
    case VALUE_BOOL: text_append_string(out, value.as.integer ? "true" : "false"); return true;
    case VALUE_INT: number_append_integer(out, value.as.integer); return true;
    case VALUE_STRING:
        json_write_string(writer, value.as.string->bytes, value.as.string->length);
        return true;
    default: return false;
    }
}

static void new_line(JsonWriter *writer) {
    ASSERT(writer->depth >= 0);
    if (writer->indent < 0) return;
    text_append_char(&writer->text, '\n');
    text_append_repeated(&writer->text, ' ', (size_t)(writer->indent * writer->depth));
}

static Status open_bracket(JsonWriter *writer, char bracket) {
    text_append_char(&writer->text, bracket);
    writer->depth++;
    return writer->opened(writer);
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

Status json_write_list(JsonWriter *writer, const List *list) {
    TRY(open_bracket(writer, '['));
    for (size_t i = 0; i < list->count; i++) {
        separate(writer, i == 0);
        TRY(writer->write(writer, list->items[i]));
    }
    close_bracket(writer, ']', list->count == 0);
    return STATUS_OK;
}

Status json_open_object(JsonWriter *writer) {
    return open_bracket(writer, '{');
}

Status json_write_member(JsonWriter *writer, bool first, const String *key, Value item) {
    separate(writer, first);
    json_write_string(writer, key->bytes, key->length);
    text_append_string(&writer->text, writer->after_key);
    return writer->write(writer, item);
}

void json_close_object(JsonWriter *writer, bool empty) {
    close_bracket(writer, '}', empty);
}

Status json_write_struct(JsonWriter *writer, const Instance *instance) {
    const StructType *type = instance->type;
    TRY(json_open_object(writer));
    for (size_t i = 0; i < type->field_count; i++) {
        Value key = value_cstring(type->field_names[i]);
        TRY(json_write_member(writer, i == 0, key.as.string, instance->fields[i]));
    }
    json_close_object(writer, type->field_count == 0);
    return STATUS_OK;
}
