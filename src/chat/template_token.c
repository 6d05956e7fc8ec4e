// The tokens of expressions in templates.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "chat/template_parser.h"

Status template_wrong(const TemplateParser *parser, const char *what) {
    return fail(STATUS_FORMAT, "line %d of the template: %s", parser->line, what);
}

// --- tokens of expressions

bool template_token_is(const TemplateParser *parser, const char *word) {
    const TemplateToken *token = &parser->token;
    return (token->kind == TEMPLATE_TOKEN_WORD || token->kind == TEMPLATE_TOKEN_SIGN) &&
           token->length == strlen(word) && memcmp(token->at, word, token->length) == 0;
}

// What closes a tag: }} or %}, perhaps after a - or +.
static size_t close_length(const char *at, const char *end) {
    size_t sign = at < end && (*at == '-' || *at == '+') ? 1 : 0;
    bool closes = end - at >= 2 + (ptrdiff_t)sign && at[sign + 1] == '}' &&
                  (at[sign] == '}' || at[sign] == '%');
    return closes ? sign + 2 : 0;
}

static size_t sign_length(const char *at, const char *end) {
    static const char *const pairs[] = {"==", "!=", "<=", ">=", "//", "**"};
    for (size_t i = 0; end - at >= 2 && i < sizeof pairs / sizeof *pairs; i++)
        if (memcmp(at, pairs[i], 2) == 0) return 2;
    return 1;
}

// Whether a number goes on at a point or at the sign of its exponent: digits follow.
static bool goes_on(const char *begin, const char *at, const char *end) {
    bool exponent = at > begin && (at[-1] == 'e' || at[-1] == 'E');
    return at + 1 < end && isdigit((unsigned char)at[1]) &&
           (*at == '.' || (exponent && (*at == '-' || *at == '+')));
}

static size_t run_length(const char *begin, const char *end, bool number) {
    const char *at = begin;
    while (at < end &&
           (isalnum((unsigned char)*at) || *at == '_' || (number && goes_on(begin, at, end))))
        at++;
    return (size_t)(at - begin);
}

static Status string_length_at(const TemplateParser *parser, size_t *out) {
    const char *at = parser->at + 1;
    while (at < parser->end && *at != *parser->at)
        at += *at == '\\' && at + 1 < parser->end ? 2 : 1;
    if (at >= parser->end) return template_wrong(parser, "a string does not end");
    *out = (size_t)(at - parser->at) + 1;
    return STATUS_OK;
}

Status template_advance(TemplateParser *parser) {
    while (parser->at < parser->end && isspace((unsigned char)*parser->at))
        parser->line += *parser->at++ == '\n';
    if (parser->at == parser->end) return template_wrong(parser, "the text ends inside a tag");
    TemplateToken *token = &parser->token;
    const char *at = parser->at;
    *token = (TemplateToken){.at = at};
    token->length = parser->braces == 0 ? close_length(at, parser->end) : 0;
    if (token->length > 0) {
        token->kind = TEMPLATE_TOKEN_CLOSE;
    } else if (*at == '"' || *at == '\'') {
        token->kind = TEMPLATE_TOKEN_STRING;
        TRY(string_length_at(parser, &token->length));
        for (size_t i = 0; i < token->length; i++) parser->line += at[i] == '\n';
    } else if (isalnum((unsigned char)*at) || *at == '_') {
        bool number = isdigit((unsigned char)*at);
        token->kind = number ? TEMPLATE_TOKEN_NUMBER : TEMPLATE_TOKEN_WORD;
        token->length = run_length(at, parser->end, number);
    } else {
        token->kind = TEMPLATE_TOKEN_SIGN;
        token->length = sign_length(at, parser->end);
        parser->braces += (*at == '{') - (*at == '}');
    }
    parser->at += token->length;
    return STATUS_OK;
}

Status template_unexpected(const TemplateParser *parser, const char *wanted) {
    const TemplateToken *token = &parser->token;
    return fail(STATUS_FORMAT, "line %d of the template: expected %s, found `%.*s`", parser->line,
                wanted, token->length < 40 ? (int)token->length : 40, token->at);
}

Status template_expect(TemplateParser *parser, const char *sign, const char *wanted) {
    return template_token_is(parser, sign) ? template_advance(parser)
                                           : template_unexpected(parser, wanted);
}

Status template_take_word(TemplateParser *parser, const char *wanted, const char **out) {
    if (parser->token.kind != TEMPLATE_TOKEN_WORD || parser->token.length > TEMPLATE_WORD_MAX)
        return template_unexpected(parser, wanted);
    *out = arena_copy_string(&parser->template->arena, parser->token.at, parser->token.length);
    return template_advance(parser);
}

Status template_take(TemplateParser *parser, const char *word, bool *taken) {
    *taken = template_token_is(parser, word);
    return *taken ? template_advance(parser) : STATUS_OK;
}

// --- strings

// What a backslash and a letter stand for; 0: there is no such escape, both stay.
static char escaped(char letter) {
    static const char letters[] = "n\nt\tr\rb\bf\fv\va\a\\\\''\"\"";
    for (const char *at = letters; *at; at += 2)
        if (*at == letter) return at[1];
    return 0;
}

// \xNN, \uNNNN and \UNNNNNNNN: how many digits; 0 for other letters.
static size_t digit_count(char letter) {
    return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

static bool append_codepoint(const char *at, size_t digits, Text *out) {
    uint32_t codepoint = 0;
    for (size_t i = 0; i < digits; i++) {
        if (!isxdigit((unsigned char)at[i])) return false;
        int value = isdigit((unsigned char)at[i]) ? at[i] - '0' : (at[i] | 32) - 'a' + 10;
        codepoint = codepoint << 4 | (uint32_t)value;
    }
    if (codepoint > 0x10FFFF || (codepoint >= 0xD800 && codepoint < 0xE000)) return false;
    text_append_codepoint(out, codepoint);
    return true;
}

void template_unescape(const TemplateToken *token, Text *out) {
    const char *end = token->at + token->length - 1;
    for (const char *at = token->at + 1; at < end; at++) {
        if (*at != '\\' || at + 1 == end) {
            text_append_char(out, *at);
            continue;
        }
        size_t digits = digit_count(*++at);
        if (digits > 0 && (size_t)(end - at) > digits && append_codepoint(at + 1, digits, out)) {
            at += digits;
        } else if (escaped(*at)) {
            text_append_char(out, escaped(*at));
        } else {
            text_append_char(out, '\\');
            text_append_char(out, *at);
        }
    }
}
