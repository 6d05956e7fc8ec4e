// Format specs and texts with placeholders.
#include "value/format.h"
#include "value/convert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/placeholder.h"
#include "base/utf8.h"
#include "device/foretell.h"
#include "value/builtin.h"
#include "value/print.h"

enum { WIDTH_MAX = 10000, PRECISION_MAX = 100 };

typedef struct Spec {
    const char *text; // for messages
    uint32_t fill;
    char align; // < > ^, or 0: numbers right, the rest left
    char sign;  // + or space, or 0
    bool prefix, zero, comma;
    int width;
    int precision; // -1: none
    char type;     // 0: as print shows the value
} Spec;

// Reads digits at *at into *number. STATUS_FORMAT when they pass `most`.
static Status read_number(const char **at, int most, const Spec *spec, const char *what,
                          int *number) {
    ASSERT(most > 0 && most < INT32_MAX / 10);
    *number = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        *number = *number * 10 + (**at - '0');
        if (*number > most)
            return fail(STATUS_FORMAT, "the %s in {:%s} is over %d", what, spec->text, most);
    }
    return STATUS_OK;
}

static const char *read_alignment(const char *at, Spec *spec) {
    uint32_t first = 0;
    size_t size = utf8_decode(at, strlen(at), &first);
    if (size && placeholder_align((unsigned char)at[size])) {
        spec->fill = first;
        spec->align = at[size];
        return at + size + 1;
    }
    if (placeholder_align((unsigned char)*at)) spec->align = *at++;
    return at;
}

static Status parse_spec(const char *text, Spec *spec) {
    *spec = (Spec){.text = text, .fill = ' ', .precision = -1};
    const char *at = read_alignment(text, spec);
    if (*at == '+' || *at == ' ')
        spec->sign = *at++;
    else if (*at == '-')
        at++;
    if (*at == '#') {
        spec->prefix = true;
        at++;
    }
    if (*at == '0') {
        spec->zero = true;
        at++;
    }
    TRY(read_number(&at, WIDTH_MAX, spec, "width", &spec->width));
    if (*at == ',') {
        spec->comma = true;
        at++;
    }
    if (*at == '.') {
        at++;
        if (*at < '0' || *at > '9')
            return fail(STATUS_FORMAT, "{:%s} has no digits after the point", text);
        TRY(read_number(&at, PRECISION_MAX, spec, "precision", &spec->precision));
    }
    if (*at && strchr("dxXobeEfFgG%s?", *at)) spec->type = *at++;
    if (!*at) return STATUS_OK;
    fail(STATUS_FORMAT, "{:%s} is not a format: `%s` is not understood", text, at);
    return fail_help(
        "a format is {:[fill and < > ^][+][#][0][width][,][.precision][d x o b e f g %% s ?]}, "
        "as {:>8} {:.3} {:05} {:e}");
}

static const char *base_prefix(const Spec *spec) {
    switch (spec->prefix ? spec->type : 0) {
    case 'x': return "0x";
    case 'X': return "0X";
    case 'o': return "0o";
    case 'b': return "0b";
    default: return "";
    }
}

// The text of a number without sign, its digits grouped when asked, zeros filled in to the width.
static void append_digits(const Spec *spec, bool negative, const char *digits, Text *out) {
    size_t begin = out->length, count = strlen(digits);
    ASSERT(count > 0);
    bool grouped = spec->comma || spec->zero;
    size_t whole = grouped ? strspn(digits, "0123456789abcdefABCDEF") : count;
    if (spec->comma && strspn(digits, "0123456789") == 0) whole = 0;
    if (negative || spec->sign == '+' || spec->sign == ' ')
        text_append_char(out, negative ? '-' : spec->sign);
    text_append_string(out, base_prefix(spec));
    size_t commas = spec->comma && whole ? (whole - 1) / 3 : 0;
    size_t length = out->length - begin + count + commas;
    if (spec->zero && !spec->align && (size_t)spec->width > length && whole)
        text_append_repeated(out, '0', (size_t)spec->width - length);
    for (size_t i = 0; commas && i < whole; i++) {
        if (i > 0 && (whole - i) % 3 == 0) text_append_char(out, ',');
        text_append_char(out, digits[i]);
    }
    text_append(out, digits + (commas ? whole : 0), count - (commas ? whole : 0));
}

static void format_integer(const Spec *spec, int64_t value, Text *out) {
    char digits[72];
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    unsigned base = spec->type == 'x' || spec->type == 'X' ? 16
                    : spec->type == 'o'                    ? 8
                    : spec->type == 'b'                    ? 2
                                                           : 10;
    const char *letters = spec->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = letters[magnitude % base];
        magnitude /= base;
    } while (magnitude);
    append_digits(spec, value < 0, digits + at, out);
}

static void format_float(const Spec *spec, double value, Text *out) {
    char digits[512]; // %f of the largest double has 309 digits before the point
    bool negative = signbit(value) && !isnan(value);
    double magnitude = fabs(value);
    int precision = spec->precision;
    char type = spec->type;
    if (isnan(value) || isinf(value)) {
        snprintf(digits, sizeof digits, "%s", isnan(value) ? "nan" : "inf");
    } else if (type == '%') {
        snprintf(digits, sizeof digits, "%.*f%%", precision < 0 ? 6 : precision, magnitude * 100.0);
    } else if (type == 'e' || type == 'E') {
        snprintf(digits, sizeof digits, type == 'e' ? "%.*e" : "%.*E",
                 precision < 0 ? 6 : precision, magnitude);
    } else if (type == 'g' || type == 'G') {
        snprintf(digits, sizeof digits, type == 'g' ? "%.*g" : "%.*G",
                 precision < 0 ? 6 : precision, magnitude);
    } else if (type == 'f' || type == 'F' || precision >= 0) {
        snprintf(digits, sizeof digits, "%.*f", precision < 0 ? 6 : precision, magnitude);
    } else {
        char shortest[NUMBER_TEXT_MAX];
        number_format_float(magnitude, NUMBER_DOUBLE, shortest);
        snprintf(digits, sizeof digits, "%s", shortest);
    }
    ASSERT(strlen(digits) < sizeof digits - 1); // nothing was cut off
    append_digits(spec, negative, digits, out);
}

static void pad(const Spec *spec, bool number, const Text *body, Text *out) {
    ASSERT(spec->width >= 0);
    size_t length = utf8_count(text_get(body), body->length);
    size_t missing = (size_t)spec->width > length ? (size_t)spec->width - length : 0;
    char align = spec->align ? spec->align : number ? '>' : '<';
    size_t before = align == '>' ? missing : align == '^' ? missing / 2 : 0;
    for (size_t i = 0; i < before; i++) text_append_codepoint(out, spec->fill);
    text_append(out, text_get(body), body->length);
    for (size_t i = before; i < missing; i++) text_append_codepoint(out, spec->fill);
}

static Status wrong_value(const Spec *spec, const char *wanted, Value value) {
    return fail(STATUS_FORMAT, "{:%s} is for %s, but the value is %s", spec->text, wanted,
                value_text(value).text);
}

// A rank-0 tensor becomes the number it holds; other values stay. It is shown, and decides nothing.
static Status read_shown_number(Value *value) {
    TRY(value_read_number(value));
    *value = value_guess(*value);
    return STATUS_OK;
}

static Status format_number(const Spec *spec, Value value, Text *out) {
    bool integer_type = spec->type && strchr("dxXob", spec->type);
    bool float_type = (spec->type && strchr("eEfFgG%", spec->type)) || spec->precision >= 0;
    if (integer_type && value.kind == VALUE_FLOAT) {
        if (!(value.as.number == trunc(value.as.number) && fabs(value.as.number) < 9.2e18))
            return wrong_value(spec, "an integer", value);
        value = value_int((int64_t)value.as.number);
    }
    if (integer_type && spec->precision >= 0)
        return fail(STATUS_FORMAT, "{:%s}: an integer has no precision", spec->text);
    if (value.kind == VALUE_INT && !float_type)
        format_integer(spec, value.as.integer, out);
    else
        format_float(spec, value.kind == VALUE_INT ? (double)value.as.integer : value.as.number,
                     out);
    return STATUS_OK;
}

static Status format_other(const Spec *spec, Value value, Text *out) {
    bool quoted = spec->type == '?';
    if (spec->type && spec->type != 's' && !quoted) return wrong_value(spec, "a number", value);
    if (spec->sign || spec->comma || spec->zero) return wrong_value(spec, "a number", value);
    if (spec->precision >= 0 && value.kind != VALUE_STRING)
        return wrong_value(spec, "a number or a string", value);
    if (spec->precision >= 0 && spec->precision < string_length(value.as.string))
        value = string_slice(value.as.string, 0, spec->precision);
    return value_print(value, quoted, out);
}

Status format_value(Value value, const char *spec_text, Text *out) {
    if (!spec_text || !*spec_text) return value_print(value, false, out);
    Spec spec;
    TRY(parse_spec(spec_text, &spec));
    bool plain = !spec.type && spec.precision < 0 && !spec.sign && !spec.comma && !spec.zero;
    bool number = value_is_number(value);
    if (number && !plain && spec.type != 's') TRY(read_shown_number(&value));
    bool numeric = value.kind == VALUE_INT || value.kind == VALUE_FLOAT;
    if (spec.type == 's' && numeric) return wrong_value(&spec, "a string", value);
    if (numeric && spec.width == 0) return format_number(&spec, value, out);
    SCOPED_TEXT(body);
    Status status =
        numeric ? format_number(&spec, value, &body) : format_other(&spec, value, &body);
    if (status == STATUS_OK) pad(&spec, number, &body, out);
    return status;
}

static Status format_placeholder(const char *text, size_t size, Value value, Text *out) {
    ASSERT(size >= 2 && text[0] == '{' && text[size - 1] == '}');
    char spec[64] = "";
    size_t length = size == 2 ? 0 : size - 3;
    if (length >= sizeof spec)
        return fail(STATUS_FORMAT, "the format {:%.20s...} is too long", text + 2);
    memcpy(spec, text + 2, length);
    spec[length] = '\0';
    return format_value(value, spec, out);
}

Status format_values(const String *text, const Value *values, size_t count, Text *out) {
    ASSERT(text->bytes[text->length] == '\0');
    const char *bytes = text->bytes;
    size_t length = text->length, used = 0;
    TRY(placeholders_check(bytes, length, count));
    for (size_t i = 0; i < length; i++) {
        bool twice = i + 1 < length && bytes[i + 1] == bytes[i];
        size_t size = bytes[i] == '{' && !twice ? placeholder_length(bytes + i, length - i) : 0;
        if (size) {
            ASSERT(used < count); // placeholders_check counted the same ones
            TRY(format_placeholder(bytes + i, size, values[used++], out));
            i += size - 1;
            continue;
        }
        text_append_char(out, bytes[i]);
        if (twice && (bytes[i] == '{' || bytes[i] == '}')) i++;
    }
    return STATUS_OK;
}
