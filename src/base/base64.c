#include "base/base64.h"

#include <stdint.h>

static int value_of(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(const char *text, size_t length, Text *out) {
    if (length % 4 != 0) return false;
    size_t padding = 0;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=') padding++;
    for (size_t at = 0; at < length; at += 4) {
        size_t kept = at + 4 == length ? 4 - padding : 4;
        uint32_t group = 0;
        ASSERT(kept >= 2 && kept <= 4);
        for (size_t i = 0; i < 4; i++) {
            int value = i < kept ? value_of(text[at + i]) : 0;
            if (value < 0) return false;
            group = group << 6 | (uint32_t)value;
        }
        for (size_t i = 0; i + 1 < kept; i++) text_append_char(out, (char)(group >> (16 - 8 * i)));
    }
    return true;
}
