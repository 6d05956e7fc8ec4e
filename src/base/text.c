// A growing byte string.
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

// Not inlined, so that appending to a text with room stays short.
static __attribute__((noinline)) bool grow(Text *text, size_t needed) {
    ASSERT(text->capacity == 0 || text->length < text->capacity);
    size_t grown = text->capacity < 64 ? 64 : text->capacity * 2;
    size_t capacity = grown < needed ? needed : grown;
    char *bytes = memory_try_resize(text->bytes, capacity);
    if (!bytes) return false;
    ASSERT(capacity > text->length);
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

// False when memory runs out: the text is unchanged.
static inline bool reserve(Text *text, size_t extra) {
    size_t needed = text->length + extra + 1;
    ASSERT(needed > extra);
    return LIKELY(needed <= text->capacity) || grow(text, needed);
}

void text_append(Text *text, const char *bytes, size_t length) {
    if (!reserve(text, length)) return;
    if (length) memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void text_append_string(Text *text, const char *string) {
    text_append(text, string, strlen(string));
}

void text_append_char(Text *text, char c) {
    text_append(text, &c, 1);
}

void text_append_codepoint(Text *text, uint32_t codepoint) {
    char bytes[4];
    text_append(text, bytes, utf8_encode(codepoint, bytes));
}

void text_append_quoted(Text *text, const char *bytes, size_t length) {
    static const char special[] = "\"\\\n\t\r", letters[] = "\"\\ntr";
    text_append_char(text, '"');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        const char *found = c ? strchr(special, c) : NULL;
        if (found)
            text_format(text, "\\%c", letters[found - special]);
        else if (c < 0x20 || c == 0x7F)
            text_format(text, "\\u%04x", (unsigned)c);
        else
            text_append_char(text, (char)c);
    }
    text_append_char(text, '"');
}

void text_append_repeated(Text *text, char c, size_t count) {
    if (!reserve(text, count)) return;
    ASSERT(text->length + count < text->capacity);
    memset(text->bytes + text->length, c, count);
    text->length += count;
    text->bytes[text->length] = '\0';
}

void text_format_v(Text *text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    ASSERT(length >= 0);
    if (reserve(text, (size_t)length)) {
        vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void text_format(Text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    text_format_v(text, format, arguments);
    va_end(arguments);
}

const char *text_article(const char *name) {
    return *name && strchr("aeiouAEIOU", *name) ? "an" : "a";
}

void text_clear(Text *text) {
    text->length = 0;
    if (text->bytes) text->bytes[0] = '\0';
}

void text_free(Text *text) {
    free(text->bytes);
    *text = (Text){0};
}

const char *text_get(const Text *text) {
    return text->bytes ? text->bytes : "";
}

char *text_take(Text *text) {
    ASSERT(text->capacity == 0 || text->length < text->capacity);
    if (!text->bytes) text->bytes = memory_allocate(1);
    text->bytes[text->length] = '\0';
    char *bytes = text->bytes;
    *text = (Text){0};
    return bytes;
}
