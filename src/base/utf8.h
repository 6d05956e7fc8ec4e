// UTF-8, as bytes come in: nothing here trusts its input.
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A byte of a code point other than its first.
static inline bool utf8_is_continuation(char byte) {
    return ((unsigned char)byte & 0xC0u) == 0x80u;
}
// Decodes the code point at bytes[0..length). Returns its size in bytes (1-4), or 0 when the bytes
// are not valid UTF-8 (overlong, surrogate, truncated) or length is 0.
size_t utf8_decode(const char *bytes, size_t length, uint32_t *codepoint);
// Writes 1-4 bytes; returns how many. codepoint must be <= 0x10FFFF and no surrogate.
size_t utf8_encode(uint32_t codepoint, char out[4]);
size_t utf8_count(const char *bytes, size_t length); // code points; an invalid byte counts as one
bool utf8_valid(const char *bytes, size_t length, size_t *first_bad);
bool utf8_is_letter(uint32_t codepoint); // Unicode category L*, and '_'
bool utf8_is_upper(uint32_t codepoint);  // upper case or title case
int utf8_width(uint32_t codepoint);      // terminal columns: 0, 1 or 2

#endif
