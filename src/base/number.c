// Numbers as text: tries ever more digits until the text reads back as the same number of its
// width.
#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/half.h"
#include "base/memory.h"

// Digits that always suffice for a width.
static const int digits_max[] = {
    [NUMBER_DOUBLE] = 17, [NUMBER_FLOAT] = 9, [NUMBER_HALF] = 5, [NUMBER_BFLOAT] = 4};

double number_shown(double value) {
    return isnan(value) ? (double)NAN : value;
}

double number_round(double value, NumberWidth width) {
    switch (width) {
    case NUMBER_FLOAT: return (double)(float)value;
    case NUMBER_HALF: return (double)half_to_float(half_from_float((float)value));
    case NUMBER_BFLOAT: return (double)bfloat_to_float(bfloat_from_float((float)value));
    default: return value;
    }
}

// Reads a decimal text as a number of the width; floats are rounded once, not by way of a double.
static double read_back(const char *text, NumberWidth width) {
    if (width == NUMBER_DOUBLE) return strtod(text, NULL);
    return number_round((double)strtof(text, NULL), width);
}

// The shortest digits d.ddd and the decimal exponent of a finite, positive value.
static int shortest_digits(double value, NumberWidth width, char digits[20], int *exponent) {
    ASSERT(value > 0 && isfinite(value));
    char text[NUMBER_TEXT_MAX];
    for (int count = 1;; count++) {
        snprintf(text, sizeof text, "%.*e", count - 1, value);
        if (count >= digits_max[width] || read_back(text, width) == value) break;
    }
    const char *mark = strchr(text, 'e');
    ASSERT(mark != NULL); // snprintf's %e writes one
    *exponent = atoi(mark + 1);
    int length = 0;
    for (const char *c = text; c < mark; c++)
        if (*c != '.') digits[length++] = *c;
    ASSERT(length > 0 && length <= digits_max[width]);
    while (length > 1 && digits[length - 1] == '0') length--;
    return length;
}

static int put_fixed(char *out, const char *digits, int length, int exponent) {
    ASSERT(length >= 0 && exponent > -NUMBER_TEXT_MAX);
    int at = 0;
    if (exponent < 0) {
        out[at++] = '0';
        out[at++] = '.';
        for (int i = -1; i > exponent; i--) out[at++] = '0';
        for (int i = 0; i < length; i++) out[at++] = digits[i];
        return at;
    }
    for (int i = 0; i <= exponent || i < length; i++) {
        if (i == exponent + 1) out[at++] = '.';
        out[at++] = i < length ? digits[i] : '0';
    }
    if (length <= exponent + 1) {
        out[at++] = '.';
        out[at++] = '0';
    }
    return at;
}

int number_format_float(double value, NumberWidth width, char out[NUMBER_TEXT_MAX]) {
    if (isnan(value)) return snprintf(out, NUMBER_TEXT_MAX, "nan");
    if (isinf(value)) return snprintf(out, NUMBER_TEXT_MAX, value < 0 ? "-inf" : "inf");
    int at = 0;
    if (signbit(value)) out[at++] = '-';
    value = fabs(value);
    if (value == 0) return at + snprintf(out + at, (size_t)(NUMBER_TEXT_MAX - at), "0.0");
    char digits[20] = "";
    int exponent = 0;
    int length = shortest_digits(value, width, digits, &exponent);
    if (exponent >= -4 && exponent < 16) {
        at += put_fixed(out + at, digits, length, exponent);
        out[at] = '\0';
        ASSERT(at < NUMBER_TEXT_MAX);
        return at;
    }
    out[at++] = digits[0];
    if (length > 1) out[at++] = '.';
    for (int i = 1; i < length; i++) out[at++] = digits[i];
    return at + snprintf(out + at, (size_t)(NUMBER_TEXT_MAX - at), "e%c%02d",
                         exponent < 0 ? '-' : '+', abs(exponent));
}

int number_format_fixed(double value, NumberWidth width, int decimals, char out[NUMBER_TEXT_MAX]) {
    ASSERT(isfinite(value) && fabs(value) < 1e17 && decimals <= 17);
    int at = 0;
    if (signbit(value)) out[at++] = '-';
    value = fabs(value);
    char digits[20] = "";
    int exponent = 0;
    int length = value == 0 ? 0 : shortest_digits(value, width, digits, &exponent);
    bool integral = value != 0 && length <= exponent; // digits end before the point: all of them
    if (integral)
        at += snprintf(out + at, (size_t)(NUMBER_TEXT_MAX - at), "%.1f", value);
    else if (length - 1 - exponent <= decimals)
        at += put_fixed(out + at, digits, length, exponent);
    else
        at += snprintf(out + at, (size_t)(NUMBER_TEXT_MAX - at), "%.*f", decimals, value);
    if (decimals > 0)
        while (out[at - 1] == '0') at--;
    else
        out[at++] = '.';
    ASSERT(at < NUMBER_TEXT_MAX);
    out[at] = '\0';
    return at;
}

Mantissa number_mantissa(double value, NumberWidth width, int decimals_min, int decimals) {
    ASSERT(decimals_min <= 17);
    ASSERT(isfinite(value) && decimals <= 17);
    Mantissa out = {.exponent = 0};
    if (signbit(value)) out.text[out.length++] = '-';
    value = fabs(value);
    char digits[20] = "0";
    int length = value == 0 ? 1 : shortest_digits(value, width, digits, &out.exponent);
    if (length > decimals + 1) {
        char text[NUMBER_TEXT_MAX];
        snprintf(text, sizeof text, "%.*e", decimals, value);
        out.exponent = atoi(strchr(text, 'e') + 1);
        length = 0;
        for (const char *c = text; *c != 'e'; c++)
            if (*c != '.') digits[length++] = *c;
        while (length > 1 && digits[length - 1] == '0') length--;
    }
    out.text[out.length++] = digits[0];
    out.text[out.length++] = '.';
    for (int i = 1; i < length || i <= decimals_min; i++)
        out.text[out.length++] = i < length ? digits[i] : '0';
    ASSERT(out.length < NUMBER_TEXT_MAX);
    out.text[out.length] = '\0';
    return out;
}

int number_format_integer(int64_t value, char out[NUMBER_TEXT_MAX]) {
    char digits[NUMBER_TEXT_MAX];
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    int count = 0, length = 0;
    do digits[count++] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0) out[length++] = '-';
    while (count > 0) out[length++] = digits[--count];
    out[length] = '\0';
    ASSERT(length < NUMBER_TEXT_MAX);
    return length;
}

void number_append_float(Text *text, double value) {
    char digits[NUMBER_TEXT_MAX];
    text_append(text, digits, (size_t)number_format_float(value, NUMBER_DOUBLE, digits));
}

void number_append_integer(Text *text, int64_t value) {
    char digits[NUMBER_TEXT_MAX];
    text_append(text, digits, (size_t)number_format_integer(value, digits));
}

// --- reading

// 10^18 is an int64_t, 19 digits are a uint64_t; 5^27 is the last power that is one.
enum {
    INTEGER_DIGITS = 18,
    DIGITS_MAX = 19,
    EXACT_TENS = 22,
    EXACT_FIVES = 27,
    EXPONENT_DIGITS = 4
};

typedef unsigned __int128 Wide;

// digits * 10^tens, rounded once: a product of integers, or a quotient whose last bit says whether
// something is left of it.
static double scale_exactly(uint64_t digits, int tens) {
    ASSERT(digits > 0 && abs(tens) <= EXACT_FIVES);
    uint64_t fives = 1;
    for (int i = 0; i < abs(tens); i++) fives *= 5;
    if (tens >= 0) return ldexp((double)((Wide)digits * fives), tens);
    int shift = __builtin_clzll(digits), shift_fives = __builtin_clzll(fives);
    Wide dividend = (Wide)(digits << shift) << 63;
    uint64_t divisor = fives << shift_fives; // its highest bit is set: the quotient fits 64 bits
    uint64_t quotient = (uint64_t)(dividend / divisor);
    quotient |= dividend % divisor != 0;
    return ldexp((double)quotient, shift_fives - shift - 63 + tens);
}

static double scale(uint64_t digits, int tens) {
    static const double powers[EXACT_TENS + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (digits > 1ull << 53 || abs(tens) > EXACT_TENS)
        return digits ? scale_exactly(digits, tens) : 0.0;
    return tens < 0 ? (double)digits / powers[-tens] : (double)digits * powers[tens];
}

// The number behind `e`; false when it is not one of a few digits.
static bool read_exponent(const char *at, const char *end, int *out) {
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    if (at == end || end - at > EXPONENT_DIGITS) return false;
    int exponent = 0;
    for (; at < end; at++) {
        unsigned digit = (unsigned)(unsigned char)*at - '0';
        if (digit > 9) return false;
        exponent = exponent * 10 + (int)digit;
    }
    *out = negative ? -exponent : exponent;
    return true;
}

// Adds the digits from `at` on; returns where they end.
static const char *read_digits(const char *at, const char *end, uint64_t *digits) {
    uint64_t sum = *digits;
    for (; at < end; at++) {
        unsigned digit = (unsigned)(unsigned char)*at - '0';
        if (digit > 9) break;
        sum = sum * 10 + digit;
    }
    *digits = sum;
    return at;
}

// Decimal digits, perhaps a point and an exponent: what 64 bits hold, with few zeros behind it.
static NumberKind read_short(const char *bytes, size_t length, int64_t *integer, double *number) {
    const char *at = bytes, *end = bytes + length;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    uint64_t digits = 0;
    const char *first = at;
    at = read_digits(at, end, &digits);
    ptrdiff_t count = at - first;
    if (at == end) {
        if (count == 0 || count > INTEGER_DIGITS) return NUMBER_NONE;
        *integer = negative ? -(int64_t)digits : (int64_t)digits;
        return NUMBER_IS_INTEGER;
    }
    ptrdiff_t decimals = 0, zeros = 0;
    if (*at == '.') {
        first = ++at;
        while (digits == 0 && at < end && *at == '0') at++, zeros++;
        at = read_digits(at, end, &digits);
        decimals = at - first;
    }
    count += decimals;
    int exponent = 0;
    if (count == 0 || count - zeros > DIGITS_MAX) return NUMBER_NONE;
    if (at < end && ((*at | 0x20) != 'e' || !read_exponent(at + 1, end, &exponent)))
        return NUMBER_NONE;
    ptrdiff_t tens = exponent - decimals;
    if (tens < -EXACT_FIVES || tens > EXACT_FIVES) return NUMBER_NONE;
    double magnitude = scale(digits, (int)tens);
    *number = negative ? -magnitude : magnitude;
    return NUMBER_IS_FLOAT;
}

static NumberKind read_terminated(const char *text, int64_t *integer, double *number) {
    char *end;
    errno = 0;
    long long whole = strtoll(text, &end, 10);
    *integer = whole;
    if (!*end && errno == 0) return NUMBER_IS_INTEGER;
    *number = strtod(text, &end);
    return *end ? NUMBER_NONE : NUMBER_IS_FLOAT;
}

static NumberKind read_word(const char *bytes, size_t length, double *number) {
    bool negative = length == 4 && *bytes == '-';
    if (length == 3 && memcmp(bytes, "nan", 3) == 0)
        *number = (double)NAN;
    else if (length == 3u + negative && memcmp(bytes + negative, "inf", 3) == 0)
        *number = negative ? -(double)INFINITY : (double)INFINITY;
    else
        return NUMBER_NONE;
    return NUMBER_IS_FLOAT;
}

NumberKind number_read(const char *bytes, size_t length, int64_t *integer, double *number) {
    NumberKind kind = read_short(bytes, length, integer, number);
    if (LIKELY(kind != NUMBER_NONE)) return kind;
    bool digits = false;
    for (size_t i = 0; i < length; i++) {
        if (!strchr("0123456789+-.eE", bytes[i]) || !bytes[i])
            return read_word(bytes, length, number);
        digits = digits || (bytes[i] >= '0' && bytes[i] <= '9');
    }
    if (!digits) return NUMBER_NONE;
    SCOPED_MEMORY char *text = memory_copy_string(bytes, length);
    return read_terminated(text, integer, number);
}

bool number_read_quantity(const char *text, const char *const units[], const double factors[],
                          double *out) {
    char *unit;
    errno = 0;
    double number = strtod(text, &unit);
    if (unit == text || errno || !(number > 0)) return false;
    while (*unit == ' ') unit++;
    for (int i = 0; units[i]; i++) {
        if (strcasecmp(unit, units[i]) != 0) continue;
        *out = number * factors[i];
        ASSERT(factors[i] > 0);
        return *out < 1e18;
    }
    return false;
}

bool number_read_bytes(const char *text, uint64_t *out) {
    static const char *const units[] = {"", "B", "KB", "MB", "GB", "TB", NULL};
    static const double factors[] = {1, 1, 1024, 1024.0 * 1024, 0x1p30, 0x1p40};
    double bytes;
    if (!number_read_quantity(text, units, factors, &bytes)) return false;
    *out = (uint64_t)bytes;
    return *out > 0;
}
