// Conversions between the protocol's places and ours.
#include "lsp/place.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

static size_t units_of(uint32_t codepoint) {
    return codepoint > 0xFFFF ? 2 : 1;
}

static size_t step(const char *at, const char *end, uint32_t *codepoint) {
    size_t size = utf8_decode(at, (size_t)(end - at), codepoint);
    ASSERT(at < end);
    if (size > 0) return size;
    *codepoint = (unsigned char)*at;
    return 1;
}

static size_t member_size(const json_t *json, const char *name) {
    json_int_t value = json_integer_value(json_object_get(json, name));
    return value < 0 ? 0 : (size_t)value;
}

size_t place_offset(const json_t *json, const char *text, size_t length) {
    size_t line = member_size(json, "line"), units = member_size(json, "character");
    const char *at = text, *end = text + length;
    ASSERT(text != NULL || length == 0);
    for (; line > 0; line--) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline) return length;
        at = newline + 1;
    }
    uint32_t codepoint;
    while (at < end && *at != '\n' && units > 0) {
        size_t size = step(at, end, &codepoint);
        if (units < units_of(codepoint)) break;
        units -= units_of(codepoint);
        at += size;
    }
    return (size_t)(at - text);
}

static json_t *position_json(SourcePos position) {
    SourcePlace place = source_find(position);
    if (!place.file) return json_pack("{s:i, s:i}", "line", 0, "character", 0);
    const char *end = place.file->text + (position - place.file->base);
    ASSERT(end >= place.line_text);
    size_t units = 0;
    uint32_t codepoint;
    for (const char *at = place.line_text; at < end; at += step(at, end, &codepoint)) {
        step(at, end, &codepoint);
        units += units_of(codepoint);
    }
    return json_pack("{s:i, s:I}", "line", place.line - 1, "character", (json_int_t)units);
}

json_t *place_range(Span span) {
    ASSERT(span.begin <= span.end);
    return json_pack("{s:o, s:o}", "start", position_json(span.begin), "end",
                     position_json(span.end));
}

static char *uri_of(const char *path) {
    char resolved[PATH_MAX];
    if (realpath(path, resolved)) path = resolved;
    if (path[0] != '/') return memory_copy_string(path, strlen(path));
    Text uri = {0};
    text_append_string(&uri, "file://");
    for (; *path; path++) {
        if (isalnum((unsigned char)*path) || strchr("/-._~", *path))
            text_append_char(&uri, *path);
        else
            text_format(&uri, "%%%02X", (unsigned char)*path);
    }
    return text_take(&uri);
}

json_t *place_location(Span span) {
    SourcePlace place = source_find(span.begin);
    ASSERT(span.begin <= span.end);
    if (!place.file) return NULL;
    SCOPED_MEMORY char *uri = uri_of(place.file->name);
    return json_pack("{s:o, s:o}", "uri", place_text(uri, strlen(uri)), "range", place_range(span));
}

static int hex_value(char c) {
    if (!isxdigit((unsigned char)c)) return -1;
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

char *place_path(const char *uri) {
    ASSERT(uri != NULL);
    if (strncmp(uri, "file://", 7) != 0) return memory_copy_string(uri, strlen(uri));
    Text path = {0};
    for (const char *at = uri + 7; *at; at++) {
        int high = *at == '%' ? hex_value(at[1]) : -1;
        int low = high >= 0 ? hex_value(at[2]) : -1;
        bool escape = low >= 0 && high * 16 + low > 0;
        text_append_char(&path, escape ? (char)(high * 16 + low) : *at);
        if (escape) at += 2;
    }
    return text_take(&path);
}

json_t *place_text(const char *text, size_t length) {
    json_t *json = json_stringn(text, length);
    if (json) return json;
    SCOPED_TEXT(valid);
    uint32_t codepoint;
    for (size_t at = 0; at < length; at++) {
        size_t size = utf8_decode(text + at, length - at, &codepoint);
        if (size == 0)
            text_append_char(&valid, '?');
        else
            text_append(&valid, text + at, size);
        if (size > 1) at += size - 1;
    }
    json = json_stringn(text_get(&valid), valid.length);
    return json;
}
