// Values as JSON: brackets, separators, strings and members. What a value is that JSON has no form
// for, and how deep values may be nested, is the caller's to say.
#ifndef VALUE_JSON_WRITE_H
#define VALUE_JSON_WRITE_H

#include "base/text.h"
#include "value/value.h"

typedef struct JsonWriter JsonWriter;
struct JsonWriter {
    Text text;
    int64_t indent; // -1: all in one line
    const char *between, *after_key;
    bool ascii; // other characters as \uXXXX
    int depth;  // open brackets
    void *context;
    Status (*write)(JsonWriter *writer, Value value);
    Status (*opened)(JsonWriter *writer); // after each bracket that opens
};

// None, bools, ints and strings; false, and nothing written, for other values.
bool json_write_plain(JsonWriter *writer, Value value);
void json_write_string(JsonWriter *writer, const char *bytes, size_t length);
Status json_write_list(JsonWriter *writer, const List *list) MUST_USE;
Status json_write_struct(JsonWriter *writer, const Instance *instance) MUST_USE;
// An object is opened, gets its members, and is closed.
Status json_open_object(JsonWriter *writer) MUST_USE;
Status json_write_member(JsonWriter *writer, bool first, const String *key, Value item) MUST_USE;
void json_close_object(JsonWriter *writer, bool empty);

#endif
