// Strings: plain, raw and f-strings. Escapes are resolved here; a newline written as CRLF is "\n".
#include <string.h>

#include "base/utf8.h"
#include "lexer/state.h"

#define KNOWN_ESCAPES "the escapes are \\n \\t \\r \\0 \\\" \\\\ \\uXXXX and \\u{1F999}"

// Makes the scratch text a token's value.
static void add_text(Lexer *lexer, TokenKind kind, const char *begin, bool last) {
    size_t length = lexer->scratch.length;
    Token *token = lexer_add(lexer, kind, begin);
    token->value.text = arena_copy_string(lexer->arena, text_get(&lexer->scratch), length);
    token->length = (uint32_t)length;
    token->last = last;
}

static void fail_unterminated(Lexer *lexer, const char *begin, size_t prefix) {
    lexer->tokens.ends_open = true;
    SourcePos at = lexer_position(lexer, begin);
    const char *help = lexer->placeholders.count > 0
                           ? "it stands in a placeholder of an f-string: was its `}` forgotten?"
                           : NULL;
    lexer_fail(lexer, (Span){at, at + (SourcePos)prefix}, help,
               "unterminated string: this `\"` is never closed");
    lexer_add(lexer, TOKEN_ERROR, begin);
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    char lower = (char)(c | 32);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// At the `\` of \uXXXX or \u{X...}.
static void read_unicode_escape(Lexer *lexer) {
    const char *begin = lexer->at;
    bool braces = lexer_peek(lexer, 2) == '{';
    lexer->at += braces ? 3 : 2;
    uint32_t codepoint = 0;
    size_t digits = 0, most = braces ? 6 : 4;
    for (; digits < most && hex_value(lexer_peek(lexer, 0)) >= 0; digits++, lexer->at++)
        codepoint = codepoint * 16 + (uint32_t)hex_value(*lexer->at);
    bool whole = braces ? digits > 0 && lexer_peek(lexer, 0) == '}' : digits == 4;
    if (whole && braces) lexer->at++;
    Span span = {lexer_position(lexer, begin), lexer_position(lexer, lexer->at)};
    int length = (int)(lexer->at - begin);
    if (!whole)
        lexer_fail(
            lexer, span,
            braces ? "one to six hexadecimal digits stand between the braces: \\u{1F999}"
                   : "four hexadecimal digits follow \\u: \\u00e9; others need braces: \\u{1F999}",
            "incomplete escape `%.*s` in string", length, begin);
    else if (codepoint > 0x10FFFF)
        lexer_fail(lexer, span, "the last code point is \\u{10FFFF}",
                   "the escape `%.*s` is beyond Unicode", length, begin);
    else if (codepoint >= 0xD800 && codepoint <= 0xDFFF)
        lexer_fail(lexer, span, "write the character as one escape: \\u{1F999}",
                   "the escape `%.*s` is half of a surrogate pair, not a character", length, begin);
    else
        text_append_codepoint(&lexer->scratch, codepoint);
}

// At a `\`.
static void read_escape(Lexer *lexer) {
    static const char letters[] = "ntr0\"\\", meanings[] = "\n\t\r\0\"\\";
    char c = lexer_peek(lexer, 1);
    const char *known = c ? strchr(letters, c) : NULL;
    if (known) {
        text_append_char(&lexer->scratch, meanings[known - letters]);
        lexer->at += 2;
        return;
    }
    if (c == 'u') return read_unicode_escape(lexer);
    const char *begin = lexer->at++;
    if (lexer->at == lexer->end) return;
    uint32_t codepoint;
    size_t size = utf8_decode(lexer->at, (size_t)(lexer->end - lexer->at), &codepoint);
    Span span = {lexer_position(lexer, begin), lexer_position(lexer, begin) + 1};
    if (size == 0 || codepoint < 0x20) {
        lexer_fail(lexer, span, KNOWN_ESCAPES "; a backslash is written \\\\",
                   "a backslash in a string must begin an escape");
        return;
    }
    lexer->at += size;
    span.end += (SourcePos)size;
    lexer_fail(lexer, span, KNOWN_ESCAPES "; a backslash is written \\\\",
               "unknown escape `\\%.*s` in string", (int)size, begin + 1);
}

// Takes one character of a string's text that is neither a quote nor an escape.
static void take_character(Lexer *lexer) {
    if (lexer_peek(lexer, 0) == '\r' && lexer_peek(lexer, 1) == '\n') lexer->at++;
    const char *begin = lexer->at;
    uint32_t codepoint;
    size_t size = utf8_decode(begin, (size_t)(lexer->end - begin), &codepoint);
    if (size > 0) {
        text_append(&lexer->scratch, begin, size);
        lexer->at += size;
        return;
    }
    while (lexer->at < lexer->end &&
           utf8_decode(lexer->at, (size_t)(lexer->end - lexer->at), &codepoint) == 0)
        lexer->at++;
    Span span = {lexer_position(lexer, begin), lexer_position(lexer, lexer->at)};
    lexer_fail(lexer, span, "source files are UTF-8", "the byte 0x%02x is not valid UTF-8",
               (unsigned char)*begin);
}

void lexer_read_string(Lexer *lexer) {
    const char *begin = lexer->at++;
    text_clear(&lexer->scratch);
    while (lexer->at < lexer->end && *lexer->at != '"') {
        if (*lexer->at == '\\')
            read_escape(lexer);
        else
            take_character(lexer);
    }
    if (lexer->at == lexer->end) return fail_unterminated(lexer, begin, 1);
    lexer->at++;
    add_text(lexer, TOKEN_STRING, begin, false);
}

void lexer_read_raw_string(Lexer *lexer) {
    const char *begin = lexer->at;
    lexer->at += 2;
    text_clear(&lexer->scratch);
    while (lexer->at < lexer->end && *lexer->at != '"') take_character(lexer);
    if (lexer->at == lexer->end) return fail_unterminated(lexer, begin, 2);
    lexer->at++;
    add_text(lexer, TOKEN_STRING, begin, false);
}

// Reads the text of an f-string up to its closing quote or the next placeholder.
static void read_format_text(Lexer *lexer, const char *begin) {
    TokenKind kind = *begin == 'f' ? TOKEN_FORMAT_STRING : TOKEN_FORMAT_TEXT;
    text_clear(&lexer->scratch);
    while (lexer->at < lexer->end && *lexer->at != '"') {
        char c = *lexer->at;
        if (c == '\\') {
            read_escape(lexer);
        } else if (c != '{' && c != '}') {
            take_character(lexer);
        } else if (lexer_peek(lexer, 1) == c) {
            text_append_char(&lexer->scratch, c);
            lexer->at += 2;
        } else if (c == '{') {
            lexer->at++;
            add_text(lexer, kind, begin, false);
            VECTOR_PUSH(&lexer->placeholders, lexer->brackets.count);
            return;
        } else {
            SourcePos at = lexer_position(lexer, lexer->at++);
            lexer_fail(lexer, (Span){at, at + 1}, "a brace in an f-string's text is written `}}`",
                       "`}` without `{` in f-string");
        }
    }
    if (lexer->at == lexer->end) return fail_unterminated(lexer, begin, 1);
    lexer->at++;
    add_text(lexer, kind, begin, true);
}

void lexer_begin_format_string(Lexer *lexer) {
    const char *begin = lexer->at;
    lexer->at += 2;
    read_format_text(lexer, begin);
}

void lexer_end_placeholder(Lexer *lexer) {
    lexer->brackets.count = lexer->placeholders.items[--lexer->placeholders.count];
    const char *begin = lexer->at++;
    if (*begin == ':') {
        text_clear(&lexer->scratch);
        while (lexer->at < lexer->end && !strchr("{}\"\n", *lexer->at))
            text_append_char(&lexer->scratch, *lexer->at++);
        if (lexer_peek(lexer, 0) != '}') {
            Span span = {lexer_position(lexer, begin), lexer_position(lexer, lexer->at)};
            const char *help = "a placeholder is written {value} or {value:spec}, as {x:.3}";
            if (lexer_peek(lexer, 0) == '{')
                help =
                    "a spec is text: format(\"{:>\" + str(width) + \"}\", x) takes one from values";
            lexer_fail(lexer, span, help, "expected `}` to end the placeholder's format");
            lexer_add(lexer, TOKEN_ERROR, begin);
        } else {
            add_text(lexer, TOKEN_FORMAT_SPEC, begin, false);
            begin = lexer->at++;
        }
    }
    read_format_text(lexer, begin);
}
