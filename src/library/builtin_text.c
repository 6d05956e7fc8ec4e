// Functions of strings. Positions count code points.
#define _GNU_SOURCE // memmem
#include <string.h>
#include <utf8proc.h>

#include "base/runtime.h"
#include "base/utf8.h"
#include "value/convert.h"
#include "value/items.h"
#include "value/print.h"

static const String *string_of(const BuiltinCall *call, int index) {
    return call->arguments[index].as.string;
}

static Value take_text(Text *text) {
    Value result = value_string(text_get(text), text->length);
    text_free(text);
    return result;
}

static Value join_items(Value x, const String *separator) {
    Value items = value_to_items(x, "join: x");
    if (items.kind == VALUE_FAIL) return items;
    SCOPED_TEXT(text);
    Status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < items.as.list->count; i++) {
        if (i) text_append(&text, separator->bytes, separator->length);
        status = value_print(items.as.list->items[i], false, &text);
    }
    value_release(items);
    if (status == STATUS_OK) return take_text(&text);
    return value_fail();
}

Value builtin_join(BuiltinCall *call) {
    return join_items(call->arguments[0], string_of(call, 1));
}

Value builtin_join_with(BuiltinCall *call) {
    return join_items(call->arguments[1], string_of(call, 0));
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static Value split_words(const String *text) {
    Value list = value_list(0);
    for (size_t at = 0; at < text->length && !runtime_interrupts(runtime_current);) {
        while (at < text->length && is_space(text->bytes[at])) at++;
        size_t begin = at;
        while (at < text->length && !is_space(text->bytes[at])) at++;
        if (at > begin) list_push(list.as.list, value_string(text->bytes + begin, at - begin));
    }
    return list;
}

Value builtin_split(BuiltinCall *call) {
    const String *text = string_of(call, 0);
    if (call->arguments[1].kind == VALUE_ABSENT) return split_words(text);
    const String *separator = string_of(call, 1);
    if (separator->length == 0) return value_to_items(call->arguments[0], "text");
    Value list = value_list(0);
    const char *at = text->bytes, *end = text->bytes + text->length;
    for (;;) {
        const char *found = memmem(at, (size_t)(end - at), separator->bytes, separator->length);
        list_push(list.as.list, value_string(at, (size_t)((found ? found : end) - at)));
        if (!found || runtime_interrupts(runtime_current)) return list;
        at = found + separator->length;
    }
}

Value builtin_trim(BuiltinCall *call) {
    const String *text = string_of(call, 0);
    size_t begin = 0, end = text->length;
    while (begin < end && is_space(text->bytes[begin])) begin++;
    while (end > begin && is_space(text->bytes[end - 1])) end--;
    return value_string(text->bytes + begin, end - begin);
}

Value builtin_replace(BuiltinCall *call) {
    const String *text = string_of(call, 0), *old = string_of(call, 1), *new = string_of(call, 2);
    if (old->length == 0) return value_failed(fail(STATUS_VALUE, "replace: old must not be empty"));
    Text result = {0};
    const char *at = text->bytes, *end = text->bytes + text->length;
    for (;;) {
        const char *found = memmem(at, (size_t)(end - at), old->bytes, old->length);
        text_append(&result, at, (size_t)((found ? found : end) - at));
        if (!found) return take_text(&result);
        text_append(&result, new->bytes, new->length);
        at = found + old->length;
    }
}

Value builtin_starts_with(BuiltinCall *call) {
    const String *text = string_of(call, 0), *part = string_of(call, 1);
    return value_bool(part->length <= text->length &&
                      memcmp(text->bytes, part->bytes, part->length) == 0);
}

Value builtin_ends_with(BuiltinCall *call) {
    const String *text = string_of(call, 0), *part = string_of(call, 1);
    if (part->length > text->length) return value_bool(false);
    const char *tail = text->bytes + text->length - part->length;
    return value_bool(memcmp(tail, part->bytes, part->length) == 0);
}

static Value character_of(uint32_t codepoint) {
    char bytes[4];
    return string_character(bytes, utf8_encode(codepoint, bytes));
}

static Value map_codepoints(const String *text, utf8proc_int32_t (*map)(utf8proc_int32_t)) {
    Text result = {0};
    uint32_t codepoint;
    if (text->length && utf8_decode(text->bytes, text->length, &codepoint) == text->length)
        return character_of((uint32_t)map((utf8proc_int32_t)codepoint));
    for (size_t at = 0; at < text->length && !runtime_interrupts(runtime_current);) {
        size_t size = utf8_decode(text->bytes + at, text->length - at, &codepoint);
        if (size)
            text_append_codepoint(&result, (uint32_t)map((utf8proc_int32_t)codepoint));
        else
            text_append_char(&result, text->bytes[at]);
        at += size ? size : 1;
    }
    return take_text(&result);
}

Value builtin_upper(BuiltinCall *call) {
    return map_codepoints(string_of(call, 0), utf8proc_toupper);
}

Value builtin_lower(BuiltinCall *call) {
    return map_codepoints(string_of(call, 0), utf8proc_tolower);
}

// A bound as in text[start:stop]: negative from the end, clamped.
static int64_t clamp_bound(int64_t bound, int64_t length) {
    if (bound < 0) bound = bound < -length ? 0 : bound + length;
    return bound > length ? length : bound;
}

Value builtin_find(BuiltinCall *call) {
    const String *text = string_of(call, 0), *part = string_of(call, 1);
    int64_t start = clamp_bound(call->arguments[2].as.integer, string_length(text));
    size_t first = string_byte_of(text, start);
    const char *tail = text->bytes + first;
    const char *found = memmem(tail, text->length - first, part->bytes, part->length);
    return value_int(found ? start + (int64_t)utf8_count(tail, (size_t)(found - tail)) : -1);
}

Value builtin_string_length(BuiltinCall *call) {
    return value_int(string_length(string_of(call, 0)));
}

Value builtin_string_substring(BuiltinCall *call) {
    const String *text = string_of(call, 0);
    int64_t length = string_length(text), stop = length;
    int64_t start = clamp_bound(call->arguments[1].as.integer, length);
    if (call->arguments[2].kind == VALUE_INT)
        stop = clamp_bound(call->arguments[2].as.integer, length);
    return string_slice(text, start, stop > start ? stop - start : 0);
}

Value builtin_chr(BuiltinCall *call) {
    int64_t n = call->arguments[0].as.integer;
    if (n >= 0 && n <= 0x10FFFF && (n < 0xD800 || n > 0xDFFF)) return character_of((uint32_t)n);
    return value_failed(
        fail(STATUS_VALUE, "chr: %lld is not the code point of a character", (long long)n));
}

Value builtin_ord(BuiltinCall *call) {
    const String *text = string_of(call, 0);
    uint32_t codepoint;
    size_t size = utf8_decode(text->bytes, text->length, &codepoint);
    if (size > 0 && size == text->length) return value_int(codepoint);
    return value_failed(fail(STATUS_VALUE, "ord takes a string of one character, but this has %lld",
                             (long long)string_length(text)));
}
