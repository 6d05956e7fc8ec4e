// Numbers: decimal, hexadecimal and binary integers, floats. Underscores may stand between digits.
#include <stdlib.h>
#include <string.h>

#include "lexer/state.h"

static bool is_digit_of(char c, int base) {
    if (base == 16 && ((c | 32) >= 'a' && (c | 32) <= 'f')) return true;
    return c >= '0' && c < '0' + (base < 10 ? base : 10);
}

static int digit_value(char c) {
    return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

static bool letter_follows(const Lexer *lexer, size_t offset) {
    size_t left = (size_t)(lexer->end - lexer->at);
    return offset < left && lexer_letter_size(lexer->at + offset, lexer->end) > 0;
}

// Copies digits to the scratch text, leaving out the underscores.
static void take_digits(Lexer *lexer, int base) {
    for (;; lexer->at++) {
        char c = lexer_peek(lexer, 0);
        if (is_digit_of(c, base))
            text_append_char(&lexer->scratch, c);
        else if (c != '_')
            return;
    }
}

// A number that runs into letters or a second point is one malformed word, not two tokens.
static void fail_malformed(Lexer *lexer, const char *begin) {
    for (;;) {
        size_t letter = lexer_letter_size(lexer->at, lexer->end);
        bool digit = is_digit_of(lexer_peek(lexer, 0), 10);
        bool point = lexer_peek(lexer, 0) == '.' && is_digit_of(lexer_peek(lexer, 1), 10);
        if (letter == 0 && !digit && !point) break;
        lexer->at += letter > 0 ? letter : 1;
    }
    Token *token = lexer_add(lexer, TOKEN_ERROR, begin);
    size_t length = (size_t)(lexer->at - begin);
    if (length <= 60)
        lexer_fail(lexer, token->span, NULL, "malformed number `%.*s`", (int)length, begin);
    else
        lexer_fail(lexer, token->span, NULL, "malformed number `%.40s...`", begin);
}

static void add_integer(Lexer *lexer, const char *begin, int base) {
    uint64_t value = 0;
    bool fits = true;
    for (size_t i = 0; i < lexer->scratch.length; i++) {
        uint64_t digit = (uint64_t)digit_value(lexer->scratch.bytes[i]);
        fits = fits && !__builtin_mul_overflow(value, (uint64_t)base, &value) &&
               !__builtin_add_overflow(value, digit, &value);
    }
    Token *token = lexer_add(lexer, TOKEN_INT, begin);
    if (fits && value <= INT64_MAX) {
        token->value.integer = (int64_t)value;
    } else if (fits && base == 10 && value == (uint64_t)INT64_MAX + 1) {
        token->value.integer = INT64_MIN;
        token->too_large = true;
    } else {
        size_t length = (size_t)(lexer->at - begin);
        lexer_fail(lexer, token->span, "write it as a float, with a point or an exponent",
                   "the integer %.*s%s does not fit in 64 bits; the largest is %lld",
                   (int)(length < 60 ? length : 40), begin, length < 60 ? "" : "...",
                   (long long)INT64_MAX);
    }
}

static void read_based_integer(Lexer *lexer, int base) {
    const char *begin = lexer->at;
    lexer->at += 2;
    take_digits(lexer, base);
    char c = lexer_peek(lexer, 0);
    if (lexer->scratch.length == 0 || letter_follows(lexer, 0) || is_digit_of(c, 10))
        fail_malformed(lexer, begin);
    else
        add_integer(lexer, begin, base);
}

// True when the `.` here belongs to the number: no second point, letter or `_` follows it.
static bool takes_point(const Lexer *lexer) {
    return lexer_peek(lexer, 0) == '.' && lexer_peek(lexer, 1) != '.' && !letter_follows(lexer, 1);
}

static bool takes_exponent(const Lexer *lexer) {
    char c = lexer_peek(lexer, 0), sign = lexer_peek(lexer, 1);
    size_t digit = sign == '+' || sign == '-' ? 2 : 1;
    return (c == 'e' || c == 'E') && is_digit_of(lexer_peek(lexer, digit), 10);
}

static bool follows_point(const Lexer *lexer) {
    size_t count = lexer->tokens.count;
    return count > 0 && lexer->tokens.items[count - 1].kind == TOKEN_DOT && !lexer->space_before;
}

void lexer_read_number(Lexer *lexer) {
    const char *begin = lexer->at;
    char next = (char)(lexer_peek(lexer, 1) | 32);
    text_clear(&lexer->scratch);
    if (follows_point(lexer)) { // x.3.weight: the 3 is a field, the second point is not its own
        take_digits(lexer, 10);
        if (letter_follows(lexer, 0))
            fail_malformed(lexer, begin);
        else
            add_integer(lexer, begin, 10);
        return;
    }
    if (*begin == '0' && next == 'x') return read_based_integer(lexer, 16);
    if (*begin == '0' && next == 'b') return read_based_integer(lexer, 2);
    bool is_float = false;
    take_digits(lexer, 10);
    if (takes_point(lexer)) {
        is_float = true;
        text_append_char(&lexer->scratch, *lexer->at++);
        take_digits(lexer, 10);
    }
    if (takes_exponent(lexer)) {
        is_float = true;
        text_append_char(&lexer->scratch, *lexer->at++);
        if (!is_digit_of(*lexer->at, 10)) text_append_char(&lexer->scratch, *lexer->at++);
        take_digits(lexer, 10);
    }
    bool second_point =
        is_float && lexer_peek(lexer, 0) == '.' && is_digit_of(lexer_peek(lexer, 1), 10);
    if (letter_follows(lexer, 0) || second_point) return fail_malformed(lexer, begin);
    if (!is_float) return add_integer(lexer, begin, 10);
    lexer_add(lexer, TOKEN_FLOAT, begin)->value.number = strtod(text_get(&lexer->scratch), NULL);
}
