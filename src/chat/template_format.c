// Values in a text, as Python puts them there: "%d of %s" % (1, "x"), "{:.2f}".format(2). Of its
// conversions those of texts, integers and decimals, with width, precision and C's flags.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "chat/template_calls.h"
#include "chat/template_operators.h"
#include "value/print.h"

enum { FLAGS_MAX = 4, WIDTH_MAX = 9999 };

// %-8.3f or {:8.3f}
typedef struct Conversion {
    const char *words; // all of it, for messages
    size_t length;
    char flags[FLAGS_MAX + 1];
    int width, precision; // -1: not given
    char type;            // s, d or f
    bool left;            // texts begin where the width does
} Conversion;

typedef struct Formatting {
    const Value *values; // in turn
    size_t count, next;
    const TemplateArguments *named; // NULL: values have no names
    int line;
    Text out;
} Formatting;

static Status fail_conversion(const Formatting *f, const Conversion *c, const char *what) {
    return fail(STATUS_FORMAT, "line %d of the template: %s `%.*s`", f->line, what, (int)c->length,
                c->words);
}

static int read_number(const char **at) {
    int number = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if (number <= WIDTH_MAX) number = number * 10 + (**at - '0');
    return number;
}

// Flags, width and precision; gives where the type stands, NULL where they are too many.
static const char *read_sizes(const char *at, Conversion *out) {
    size_t flags = strspn(at, "-+ 0");
    if (flags > FLAGS_MAX) return NULL;
    memcpy(out->flags, at, flags);
    at += flags;
    out->width = read_number(&at);
    out->precision = -1;
    if (*at == '.') {
        at++;
        out->precision = read_number(&at);
    }
    return out->width <= WIDTH_MAX && out->precision <= WIDTH_MAX ? at : NULL;
}

static void append_text(const Conversion *c, Value value, Text *out) {
    const String *text = template_text_of(value);
    size_t length = 0, count = 0;
    while (length < text->length && (c->precision < 0 || count < (size_t)c->precision)) {
        uint32_t codepoint;
        size_t size = utf8_decode(text->bytes + length, text->length - length, &codepoint);
        length += size > 0 ? size : 1;
        count++;
    }
    ASSERT(length <= text->length && c->width >= 0);
    size_t blanks = count < (size_t)c->width ? (size_t)c->width - count : 0;
    if (!c->left) text_append_repeated(out, ' ', blanks);
    text_append(out, text->bytes, length);
    if (c->left) text_append_repeated(out, ' ', blanks);
}

static Status append_number(Formatting *f, const Conversion *c, Value value) {
    bool integer = value.kind == VALUE_INT || value.kind == VALUE_BOOL;
    if (!integer && value.kind != VALUE_FLOAT)
        return fail_conversion(f, c, "a number is expected by");
    double number = integer ? (double)value.as.integer : value.as.number;
    char format[FLAGS_MAX + 16];
    if (c->type == 'f') {
        snprintf(format, sizeof format, "%%%s*.*f", c->flags);
        text_format(&f->out, format, c->width, c->precision, number);
        return STATUS_OK;
    }
    if (!integer && !(fabs(number) < 9e18)) return fail_conversion(f, c, "no integer is given to");
    int64_t whole = integer ? value.as.integer : (int64_t)number;
    snprintf(format, sizeof format, "%%%s*.*" PRId64, c->flags);
    text_format(&f->out, format, c->width, c->precision, whole);
    return STATUS_OK;
}

static Status append_value(Formatting *f, const Conversion *c, Value value) {
    if (c->type == 's')
        append_text(c, value, &f->out);
    else
        TRY(append_number(f, c, value));
    return template_check_size(f->out.length, TEMPLATE_BYTES_MAX, f->line);
}

// --- "%s" % value

// *at stands at a percent sign.
static Status append_percent(Formatting *f, const char **at, const char *end) {
    Conversion c = {.words = *at, .length = 1};
    const char *type = read_sizes(*at + 1, &c);
    if (type && type < end) c.length = (size_t)(type - *at) + 1;
    if (!type || type >= end || !strchr("sdif%", *type))
        return fail_conversion(f, &c, "tl knows no format");
    *at = type + 1;
    if (*type == '%') {
        text_append_char(&f->out, '%');
        return STATUS_OK;
    }
    c.type = *type == 'i' ? 'd' : *type;
    c.left = strchr(c.flags, '-') != NULL;
    if (f->next == f->count) return fail_conversion(f, &c, "no value is left for");
    return append_value(f, &c, f->values[f->next++]);
}

static Status append_percents(Formatting *f, const String *text) {
    const char *at = text->bytes, *end = at + text->length;
    while (at < end) {
        const char *sign = memchr(at, '%', (size_t)(end - at));
        text_append(&f->out, at, (size_t)((sign ? sign : end) - at));
        at = sign ? sign : end;
        if (sign) TRY(append_percent(f, &at, end));
    }
    if (f->next == f->count) return STATUS_OK;
    return fail(STATUS_FORMAT,
                "line %d of the template: %zu of %zu values are left when a text is formatted",
                f->line, f->count - f->next, f->count);
}

Status template_format_percent(const String *text, Value values, int line, Value *out) {
    bool keyed =
        values.kind == VALUE_DICT || values.kind == VALUE_LIST; // a text may take none of it
    bool none = keyed && !memchr(text->bytes, '%', text->length);
    Formatting f = {.values = &values, .count = none ? 0 : 1, .line = line};
    if (values.kind == VALUE_TUPLE) {
        f.values = values.as.list->items;
        f.count = values.as.list->count;
    }
    Status status = append_percents(&f, text);
    *out = template_take_text(&f.out);
    return status;
}

Status template_call_percents(const TemplateArguments *arguments, Value *out) {
    Formatting f = {
        .values = arguments->items + 1, .count = arguments->count - 1, .line = arguments->line};
    Status status = append_percents(&f, template_text_of(arguments->items[0]));
    *out = template_take_text(&f.out);
    return status;
}

// --- "{}".format(value)

// The value of a field: the next one, one by its place, or one by its name.
static Status find_value(Formatting *f, const Conversion *c, const char *name, size_t length,
                         Value *out) {
    size_t digits = strspn(name, "0123456789");
    if (length == 0 || (digits == length && length < 4)) {
        size_t at = length == 0 ? f->next++ : strtoul(name, NULL, 10);
        if (at >= f->count) return fail_conversion(f, c, "no value is given for");
        *out = f->values[at];
        return STATUS_OK;
    }
    for (size_t i = 0; i < f->named->count; i++) {
        const char *word = f->named->keywords[i];
        if (!word || strlen(word) != length || memcmp(word, name, length) != 0) continue;
        *out = f->named->items[i];
        return STATUS_OK;
    }
    return fail_conversion(f, c, "no value is given for");
}

// What is behind the colon; without a type it is that of the value.
static bool read_spec(const char *at, const char *close, Value value, Conversion *out) {
    const char *type = read_sizes(at, out);
    bool text = value.kind != VALUE_INT && value.kind != VALUE_FLOAT && value.kind != VALUE_BOOL;
    if (!type || type > close || close - type > 1 || strchr(out->flags, '-')) return false;
    out->type = type < close ? *type : 's';
    out->left = text;
    bool plain = !out->flags[0] && (text || out->precision < 0);
    return out->type == 's' ? plain : out->type == 'd' || out->type == 'f';
}

// *at stands behind an opening brace.
static Status append_field(Formatting *f, const char **at, const char *end) {
    const char *name = *at, *close = memchr(name, '}', (size_t)(end - name));
    Conversion c = {.words = name - 1, .length = (size_t)((close ? close + 1 : end) - name) + 1};
    if (!close) return fail_conversion(f, &c, "tl knows no format");
    const char *colon = memchr(name, ':', (size_t)(close - name));
    Value value = value_absent();
    TRY(find_value(f, &c, name, (size_t)((colon ? colon : close) - name), &value));
    if (!read_spec(colon ? colon + 1 : close, close, value, &c))
        return fail_conversion(f, &c, "tl knows no format");
    *at = close + 1;
    return append_value(f, &c, value);
}

static Status append_fields(Formatting *f, const String *text) {
    const char *at = text->bytes, *end = at + text->length;
    while (at < end) {
        char c = *at++;
        bool doubled = (c == '{' || c == '}') && at < end && *at == c;
        if (doubled) at++;
        if (c == '{' && !doubled)
            TRY(append_field(f, &at, end));
        else
            text_append_char(&f->out, c);
    }
    return STATUS_OK;
}

Status template_call_format(const TemplateArguments *arguments, Value *out) {
    Formatting f = {.values = arguments->items + 1, .named = arguments, .line = arguments->line};
    while (f.count + 1 < arguments->count && !arguments->keywords[f.count + 1]) f.count++;
    Status status = append_fields(&f, string_end(arguments->items[0].as.string));
    *out = template_take_text(&f.out);
    return status;
}
