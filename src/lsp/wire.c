// Reads and writes the protocol's framing. Nothing here trusts its input.
#include "lsp/wire.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEADER_BYTES_MAX = 8192, BODY_BYTES_MAX = 64 << 20 };

void wire_feed(Wire *wire, const char *bytes, size_t length) {
    if (wire->taken == wire->bytes.length) {
        text_clear(&wire->bytes);
    } else if (wire->taken > 0) {
        wire->bytes.length -= wire->taken;
        memmove(wire->bytes.bytes, wire->bytes.bytes + wire->taken, wire->bytes.length);
    }
    wire->taken = 0;
    text_append(&wire->bytes, bytes, length);
}

// The value of one header line; false when it is another header or no number in range.
static bool read_length(const char *line, size_t length, size_t *out) {
    static const char name[] = "content-length:";
    size_t at = sizeof name - 1, value = 0, digits = 0;
    if (length < at || strncasecmp(line, name, at) != 0) return false;
    while (at < length && (line[at] == ' ' || line[at] == '\t')) at++;
    for (; at < length && isdigit((unsigned char)line[at]) && digits < 10; at++, digits++)
        value = value * 10 + (size_t)(line[at] - '0');
    while (at < length && isspace((unsigned char)line[at])) at++;
    *out = value;
    return digits > 0 && at == length && value <= BODY_BYTES_MAX;
}

// Reads the lines of one block of headers; false when none gives the length.
static bool read_headers(const char *begin, const char *end, size_t *length) {
    bool found = false;
    while (begin < end) {
        const char *newline = memchr(begin, '\n', (size_t)(end - begin));
        const char *stop = newline ? newline : end;
        found |= read_length(begin, (size_t)(stop - begin), length);
        begin = stop + 1;
    }
    return found;
}

// The empty line behind the headers; NULL when it has not come yet.
static const char *find_blank(const char *begin, size_t length) {
    static const char blank[] = "\r\n\r\n";
    const char *end = begin + length;
    for (const char *at = begin; (at = memchr(at, '\r', (size_t)(end - at))) != NULL; at++)
        if (end - at >= 4 && memcmp(at, blank, 4) == 0) return at;
    return NULL;
}

const char *wire_next(Wire *wire, size_t *length) {
    for (;;) {
        const char *begin = text_get(&wire->bytes) + wire->taken;
        size_t left = wire->bytes.length - wire->taken;
        const char *blank = find_blank(begin, left);
        if (!blank) {
            if (left > HEADER_BYTES_MAX) wire->taken += left - 3; // no header is that long
            return NULL;
        }
        size_t header = (size_t)(blank - begin) + 4;
        if (!read_headers(begin, blank, length)) {
            wire->taken += header;
            continue;
        }
        if (left - header < *length) return NULL;
        wire->taken += header + *length;
        return begin + header;
    }
}

void wire_free(Wire *wire) {
    text_free(&wire->bytes);
}

void wire_write(Text *out, const char *body, size_t length) {
    text_format(out, "Content-Length: %zu\r\n\r\n", length);
    text_append(out, body, length);
}
