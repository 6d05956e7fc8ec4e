// Strings: immutable UTF-8 on the collector's heap, measured and cut by code points.
#include <string.h>

#include "base/utf8.h"
#include "value/heap.h"

// Empty when there is no memory for it: then the program fails with the next statement.
static String *new_string(size_t *length_in_out) {
    size_t length = *length_in_out;
    ASSERT(length < SIZE_MAX / 2);
    String *string = heap_try_allocate_bytes(sizeof(String) + length + 1);
    if (UNLIKELY(!string)) {
        length = *length_in_out = 0;
        string = heap_allocate_bytes(sizeof(String) + 1);
    }
    string->length = length;
    string->codepoints = -1;
    string->bytes[length] = '\0';
    return string;
}

static Value string_value(String *string) {
    return (Value){.kind = VALUE_STRING, .as.string = string};
}

Value value_string(const char *bytes, size_t length) {
    String *string = new_string(&length);
    if (length) memcpy(string->bytes, bytes, length);
    return string_value(string);
}

Value value_cstring(const char *text) {
    return value_string(text, strlen(text));
}

int64_t string_length(const String *string) {
    // The count is remembered in place: a cache that no reader can tell from an unchanging string.
    if (string->codepoints < 0)
        ((String *)string)->codepoints = (int64_t)utf8_count(string->bytes, string->length);
    return string->codepoints;
}

// Bytes that the first `count` code points of bytes[0..length) take.
static size_t prefix_bytes(const char *bytes, size_t length, int64_t count) {
    size_t at = 0;
    uint32_t codepoint;
    for (; count > 0 && at < length; count--) {
        size_t size = utf8_decode(bytes + at, length - at, &codepoint);
        at += size ? size : 1;
    }
    return at;
}

Value string_slice(const String *string, int64_t start, int64_t count) {
    bool ascii = string_length(string) == (int64_t)string->length;
    if (ascii) return value_string(string->bytes + start, (size_t)count);
    size_t first = prefix_bytes(string->bytes, string->length, start);
    size_t length = prefix_bytes(string->bytes + first, string->length - first, count);
    return value_string(string->bytes + first, length);
}

Value string_concat(const String *a, const String *b) {
    size_t length = a->length + b->length;
    String *joined = new_string(&length);
    if (length == 0) return string_value(joined);
    memcpy(joined->bytes, a->bytes, a->length);
    memcpy(joined->bytes + a->length, b->bytes, b->length);
    return string_value(joined);
}

bool string_equals(const String *a, const String *b) {
    return a == b || (a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0);
}

int string_compare(const String *a, const String *b) {
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->bytes, b->bytes, shorter);
    if (order != 0) return order < 0 ? -1 : 1;
    return a->length < b->length ? -1 : a->length > b->length;
}
