// UTF-8 by hand; categories and widths from utf8proc.
#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

#include "base/status.h"

size_t utf8_decode(const char *bytes, size_t length, uint32_t *codepoint) {
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (length == 0) return 0;
    uint32_t first = (unsigned char)bytes[0];
    if (first < 0x80) return *codepoint = first, 1;
    if (first >= 0xC2 && first < 0xE0 && length >= 2 && utf8_is_continuation(bytes[1]))
        return *codepoint = (first & 0x1Fu) << 6 | ((unsigned char)bytes[1] & 0x3Fu), 2;
    size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || size > length) return 0;
    uint32_t value = first & (0x7Fu >> size);
    for (size_t i = 1; i < size; i++) {
        if (!utf8_is_continuation(bytes[i])) return 0;
        value = value << 6 | ((unsigned char)bytes[i] & 0x3Fu);
    }
    bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    if (value < smallest[size] || value > 0x10FFFF || surrogate) return 0;
    *codepoint = value;
    return size;
}

size_t utf8_encode(uint32_t codepoint, char out[4]) {
    if (codepoint < 0x80) {
        out[0] = (char)codepoint;
        return 1;
    }
    ASSERT(codepoint <= 0x10FFFF && (codepoint < 0xD800 || codepoint > 0xDFFF));
    size_t size = codepoint < 0x800 ? 2 : codepoint < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--) {
        out[i] = (char)(0x80u | (codepoint & 0x3Fu));
        codepoint >>= 6;
    }
    static const unsigned char lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    out[0] = (char)(lead[size] | codepoint);
    ASSERT(size > 1);
    return size;
}

// Most texts are ASCII for long stretches.
enum { ASCII_STRETCH = sizeof(uint64_t) };
static bool is_ascii_here(const char *bytes, size_t left) {
    uint64_t eight;
    if (left < sizeof eight) return false;
    memcpy(&eight, bytes, sizeof eight);
    return !(eight & 0x8080808080808080u);
}

size_t utf8_count(const char *bytes, size_t length) {
    size_t count = 0;
    uint32_t codepoint;
    for (size_t i = 0; i < length; count++) {
        while (is_ascii_here(bytes + i, length - i)) {
            i += ASCII_STRETCH;
            count += ASCII_STRETCH;
        }
        if (i == length) break;
        size_t size = utf8_decode(bytes + i, length - i, &codepoint);
        i += size ? size : 1;
    }
    return count;
}

bool utf8_valid(const char *bytes, size_t length, size_t *first_bad) {
    uint32_t codepoint;
    for (size_t i = 0; i < length;) {
        if (is_ascii_here(bytes + i, length - i)) {
            i += ASCII_STRETCH;
            continue;
        }
        size_t size = utf8_decode(bytes + i, length - i, &codepoint);
        if (size == 0) {
            if (first_bad) *first_bad = i;
            return false;
        }
        i += size;
    }
    return true;
}

bool utf8_is_letter(uint32_t codepoint) {
    if (codepoint < 0x80) return (codepoint | 32u) - 'a' < 26 || codepoint == '_';
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)codepoint);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool utf8_is_upper(uint32_t codepoint) {
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)codepoint);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LT;
}

int utf8_width(uint32_t codepoint) {
    if (codepoint >= 0x20 && codepoint < 0x7F) return 1;
    return utf8proc_charwidth((utf8proc_int32_t)codepoint);
}
