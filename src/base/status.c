// Error records, one per thread.
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local ErrorRecord record;
_Thread_local Origin origin_current;

static const char *const words[STATUS_COUNT] = {
    "ok",
#define ERROR(code, word) word,
#include "base/errors.def"
#undef ERROR
};

const char *status_word(Status code) {
    ASSERT((unsigned)code < STATUS_COUNT);
    return words[code];
}

// Formats into a field; a text that does not fit ends in "..." after a whole code point.
static void write_field(char *field, size_t size, const char *format, va_list arguments) {
    int length = vsnprintf(field, size, format, arguments);
    if (length < 0 || (size_t)length < size) return;
    ASSERT(size > 4);
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)field[end] & 0xC0u) == 0x80u) end--;
    memcpy(field + end, "...", 4);
}

// The arguments may point into the record itself (a layer that says more about an error below), so
// the new message is made before the old one goes.
Status fail(Status code, const char *format, ...) {
    ASSERT(code > STATUS_OK && code < STATUS_COUNT);
    char message[ERROR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    write_field(message, sizeof message, format, arguments);
    va_end(arguments);
    error_clear();
    record.code = code;
    snprintf(record.kind, sizeof record.kind, "%s", words[code]);
    memcpy(record.message, message, strlen(message) + 1);
    return code;
}

Status fail_label(const char *format, ...) {
    ASSERT(record.code != STATUS_OK);
    va_list arguments;
    va_start(arguments, format);
    write_field(record.label, sizeof record.label, format, arguments);
    va_end(arguments);
    return record.code;
}

Status fail_help(const char *format, ...) {
    ASSERT(record.code != STATUS_OK);
    va_list arguments;
    va_start(arguments, format);
    write_field(record.help, sizeof record.help, format, arguments);
    va_end(arguments);
    return record.code;
}

void error_place(Span span) {
    if (record.span.begin == 0) record.span = span;
}

ErrorRecord *error_current(void) {
    return &record;
}

void error_clear(void) {
    record.code = STATUS_OK;
    record.kind[0] = record.message[0] = record.label[0] = record.help[0] = '\0';
    record.span = (Span){0, 0};
}

_Noreturn void assert_failed(const char *condition, const char *file, int line) {
    fprintf(stderr, "tl: internal error: %s does not hold (%s:%d)\n", condition, file, line);
    abort();
}
