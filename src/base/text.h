// A growing byte string. Always NUL-terminated; `length` does not count the NUL.
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

#include "base/status.h"

typedef struct Text Text;
struct Text {
    char *bytes; // NULL until the first append: use text_get
    size_t length, capacity;
};

void text_append(Text *text, const char *bytes, size_t length);
void text_append_string(Text *text, const char *string);
void text_append_char(Text *text, char c);
void text_append_codepoint(Text *text, uint32_t codepoint); // as UTF-8
// In double quotes, as JSON and scripts write strings: what would end it or is not seen is escaped.
void text_append_quoted(Text *text, const char *bytes, size_t length);
void text_append_repeated(Text *text, char c, size_t count);
void text_format(Text *text, const char *format, ...) PRINTF_LIKE(2, 3);
void text_format_v(Text *text, const char *format, va_list arguments);
void text_clear(Text *text); // keeps the memory
void text_free(Text *text);
// A text of this scope, freed when that is left.
#define SCOPED_TEXT(name) Text name __attribute__((cleanup(text_free))) = {0}
const char *text_get(const Text *text);     // never NULL
char *text_take(Text *text);                // moves the bytes out (free() them); never NULL
const char *text_article(const char *name); // "a" or "an", by how the name begins

#endif
