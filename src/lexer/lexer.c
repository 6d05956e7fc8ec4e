// The lexer's loop: white space, comments, names, symbols, brackets and what cannot be read.
#include "lexer/lexer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "lexer/state.h"

static const char *const spellings[TOKEN_KIND_COUNT] = {
#define KEYWORD(kind, spelling) [TOKEN_##kind] = spelling,
#define SYMBOL(kind, spelling) [TOKEN_##kind] = spelling,
#include "lexer/tokens.def"
#undef KEYWORD
#undef SYMBOL
};

const char *token_spelling(TokenKind kind) {
    ASSERT((unsigned)kind < TOKEN_KIND_COUNT);
    return spellings[kind];
}

bool token_is_word(const Token *token) {
    return token->kind == TOKEN_NAME || (token->kind >= TOKEN_FN && token->kind <= TOKEN_AS);
}

SourcePos lexer_position(const Lexer *lexer, const char *at) {
    ASSERT(at >= lexer->file->text && at <= lexer->file->text + lexer->file->length);
    return lexer->file->base + (SourcePos)(at - lexer->file->text);
}

Token *lexer_add(Lexer *lexer, TokenKind kind, const char *begin) {
    ASSERT(begin <= lexer->at && (unsigned)kind < TOKEN_KIND_COUNT);
    Token token = {.kind = (uint8_t)kind,
                   .newline_before = lexer->newline_before,
                   .space_before = lexer->space_before,
                   .span = {lexer_position(lexer, begin), lexer_position(lexer, lexer->at)}};
    VECTOR_PUSH(&lexer->tokens, token);
    lexer->newline_before = lexer->space_before = false;
    return &lexer->tokens.items[lexer->tokens.count - 1];
}

void lexer_fail(Lexer *lexer, Span span, const char *help, const char *format, ...) {
    if (lexer->diagnostics->error_count >= lexer->errors_max) return;
    SCOPED_TEXT(message);
    va_list arguments;
    va_start(arguments, format);
    text_format_v(&message, format, arguments);
    va_end(arguments);
    diagnostic_list_add(lexer->diagnostics, &(Diagnostic){.kind = status_word(STATUS_SYNTAX),
                                                          .message = text_get(&message),
                                                          .help = help,
                                                          .span = span});
}

static void skip_line_comment(Lexer *lexer) {
    const char *newline = memchr(lexer->at, '\n', (size_t)(lexer->end - lexer->at));
    lexer->at = newline ? newline : lexer->end;
}

static void skip_block_comment(Lexer *lexer) {
    const char *begin = lexer->at;
    size_t depth = 0;
    while (lexer->at < lexer->end) {
        char c = lexer_peek(lexer, 0), next = lexer_peek(lexer, 1);
        if (c == '/' && next == '*') {
            depth++;
            lexer->at += 2;
        } else if (c == '*' && next == '/') {
            lexer->at += 2;
            if (--depth == 0) return;
        } else {
            if (c == '\n') lexer->newline_before = true;
            lexer->at++;
        }
    }
    lexer->tokens.ends_open = true;
    SourcePos at = lexer_position(lexer, begin);
    lexer_fail(lexer, (Span){at, at + 2}, "comments nest: each `/*` inside needs its own `*/`",
               "unterminated comment: this `/*` is never closed");
}

static void skip_space(Lexer *lexer) {
    for (const char *begin = lexer->at; lexer->at < lexer->end; begin = lexer->at) {
        char c = *lexer->at, next = lexer_peek(lexer, 1);
        if (c == '\n') lexer->newline_before = true;
        if (c == '\n' || c == ' ' || c == '\t' || c == '\r')
            lexer->at++;
        else if (c == '/' && next == '/')
            skip_line_comment(lexer);
        else if (c == '/' && next == '*')
            skip_block_comment(lexer);
        if (lexer->at == begin) return;
        lexer->space_before = true;
    }
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

size_t lexer_letter_size(const char *at, const char *end) {
    uint32_t codepoint;
    size_t size = utf8_decode(at, (size_t)(end - at), &codepoint);
    return size > 0 && utf8_is_letter(codepoint) ? size : 0;
}

// The primes of d' and d''. Where a letter follows, a text in single quotes was meant: f'x'.
static size_t primes_size(const Lexer *lexer) {
    size_t size = 0;
    while (lexer_peek(lexer, size) == '\'') size++;
    const char *behind = lexer->at + size;
    bool ends = lexer_letter_size(behind, lexer->end) == 0 && !is_digit(lexer_peek(lexer, size));
    return ends ? size : 0;
}

static void read_word(Lexer *lexer) {
    const char *begin = lexer->at;
    for (size_t size;
         (size = lexer_letter_size(lexer->at, lexer->end)) > 0 || is_digit(lexer_peek(lexer, 0));)
        lexer->at += size > 0 ? size : 1;
    size_t length = (size_t)(lexer->at - begin);
    TokenKind kind = TOKEN_NAME;
    for (int k = TOKEN_FN; k <= TOKEN_AS; k++)
        if (strlen(spellings[k]) == length && memcmp(spellings[k], begin, length) == 0)
            kind = (TokenKind)k;
    if (kind == TOKEN_NAME) lexer->at += primes_size(lexer);
    lexer_add(lexer, kind, begin);
}

// Characters that people write by habit or paste from a formatted text.
static const struct {
    uint32_t codepoint;
    const char *name; // NULL: shown as itself
    const char *help;
} mistakes[] = {
    {'#', NULL, "a comment begins with `//`"},
    {'&', NULL, "`and` and `&&` join conditions; bit_and(a, b) works on bits"},
    {'^', NULL, "powers are written `**`; bit_xor(a, b) works on bits"},
    {'\'', NULL, "strings are written with double quotes"},
    {'`', NULL, "strings are written with double quotes"},
    {'\\', NULL, "a line continues by itself inside brackets and after an operator"},
    {0x201C, NULL, "strings are written with plain double quotes, `\"`"},
    {0x201D, NULL, "strings are written with plain double quotes, `\"`"},
    {0x2018, NULL, "strings are written with plain double quotes, `\"`"},
    {0x2019, NULL, "strings are written with plain double quotes, `\"`"},
    {0x00D7, NULL, "multiplication is written `*`"},
    {0x00B7, NULL, "multiplication is written `*`"},
    {0x00F7, NULL, "division is written `/`"},
    {0x2212, NULL, "a minus is written `-`"},
    {0x2013, NULL, "a minus is written `-`"},
    {0x2014, NULL, "a minus is written `-`"},
    {0x2264, NULL, "write `<=`"},
    {0x2265, NULL, "write `>=`"},
    {0x2260, NULL, "write `!=`"},
    {0x2192, NULL, "write `->`"},
    {0x00A0, "no-break space", "replace it by an ordinary space"},
    {0x202F, "narrow no-break space", "replace it by an ordinary space"},
    {0x2009, "thin space", "replace it by an ordinary space"},
    {0x3000, "ideographic space", "replace it by an ordinary space"},
    {0x200B, "zero width space", "delete it"},
    {0x200D, "zero width joiner", "delete it"},
    {0xFEFF, "byte order mark", "delete it: only the start of a file may have one"},
};

static bool is_odd_quote(uint32_t codepoint) {
    return codepoint == '\'' || codepoint == '`' || (codepoint >= 0x2018 && codepoint <= 0x201D);
}

// Moves behind the mistake: a run of one character, a text in quotes of another kind (up to the
// next such quote in the line), or the line that a `#` was meant to comment out.
static void skip_mistake(Lexer *lexer, uint32_t codepoint, size_t size) {
    ASSERT(size > 0 && size <= (size_t)(lexer->end - lexer->at));
    const char *begin = lexer->at;
    if (codepoint == '#') {
        skip_line_comment(lexer);
        return;
    }
    lexer->at += size;
    while ((size_t)(lexer->end - lexer->at) >= size && memcmp(lexer->at, begin, size) == 0)
        lexer->at += size;
    if (!is_odd_quote(codepoint) || lexer->at != begin + size) return;
    for (const char *at = lexer->at; at < lexer->end && *at != '\n';) {
        size_t next = utf8_decode(at, (size_t)(lexer->end - at), &codepoint);
        if (next == 0) return;
        at += next;
        if (!is_odd_quote(codepoint)) continue;
        lexer->at = at;
        return;
    }
}

// A run of bytes that are no UTF-8 is one mistake.
static void read_mistake(Lexer *lexer) {
    const char *begin = lexer->at;
    uint32_t codepoint = 0;
    size_t size = utf8_decode(begin, (size_t)(lexer->end - begin), &codepoint);
    if (size == 0) {
        while (lexer->at < lexer->end &&
               utf8_decode(lexer->at, (size_t)(lexer->end - lexer->at), &codepoint) == 0)
            lexer->at++;
        Token *token = lexer_add(lexer, TOKEN_ERROR, begin);
        lexer_fail(lexer, token->span, "source files are UTF-8",
                   "the byte 0x%02x is not valid UTF-8", (unsigned char)begin[0]);
        return;
    }
    const char *name = NULL, *help = NULL;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        if (mistakes[i].codepoint != codepoint) continue;
        name = mistakes[i].name;
        help = mistakes[i].help;
    }
    skip_mistake(lexer, codepoint, size);
    Token *token = lexer_add(lexer, TOKEN_ERROR, begin);
    if (name)
        lexer_fail(lexer, token->span, help, "unexpected character U+%04X (%s)",
                   (unsigned)codepoint, name);
    else if (codepoint < 0x20 || (codepoint >= 0x7F && codepoint < 0xA0))
        lexer_fail(lexer, token->span, help, "unexpected control character U+%04X",
                   (unsigned)codepoint);
    else
        lexer_fail(lexer, token->span, help, "unexpected character `%.*s` (U+%04X)", (int)size,
                   begin, (unsigned)codepoint);
}

static TokenKind closer_of(TokenKind opener) {
    return opener == TOKEN_LEFT_PAREN     ? TOKEN_RIGHT_PAREN
           : opener == TOKEN_LEFT_BRACKET ? TOKEN_RIGHT_BRACKET
                                          : TOKEN_RIGHT_BRACE;
}

static void note_bracket(Lexer *lexer, TokenKind kind) {
    size_t token = lexer->tokens.count - 1;
    if (kind == TOKEN_LEFT_PAREN || kind == TOKEN_LEFT_BRACKET || kind == TOKEN_LEFT_BRACE) {
        OpenBracket open = {kind, token};
        VECTOR_PUSH(&lexer->brackets, open);
    } else if (lexer->brackets.count > 0) {
        OpenBracket open = lexer->brackets.items[lexer->brackets.count - 1];
        ASSERT(open.token < token);
        if (closer_of(open.kind) != kind) return;
        lexer->tokens.items[open.token].value.partner = token;
        lexer->brackets.count--;
    }
}

static bool read_symbol(Lexer *lexer) {
    size_t left = (size_t)(lexer->end - lexer->at);
    for (int k = TOKEN_ELLIPSIS; k < TOKEN_KIND_COUNT; k++) {
        if (spellings[k][0] != *lexer->at) continue;
        size_t length = strlen(spellings[k]);
        if (length > left || memcmp(spellings[k], lexer->at, length) != 0) continue;
        const char *begin = lexer->at;
        lexer->at += length;
        lexer_add(lexer, (TokenKind)k, begin);
        if (k >= TOKEN_LEFT_PAREN && k <= TOKEN_RIGHT_BRACE) note_bracket(lexer, (TokenKind)k);
        return true;
    }
    return false;
}

// Whether `}` or `:` here ends the expression of an f-string's placeholder. A `}` does so even when
// a `(` inside is still open: that keeps one mistake from swallowing the rest of the file.
static bool ends_placeholder(const Lexer *lexer) {
    if (lexer->placeholders.count == 0) return false;
    size_t before = lexer->placeholders.items[lexer->placeholders.count - 1];
    size_t open = lexer->brackets.count;
    if (*lexer->at == '}')
        return open <= before || lexer->brackets.items[open - 1].kind != TOKEN_LEFT_BRACE;
    return *lexer->at == ':' && lexer_peek(lexer, 1) != ':' && open <= before;
}

// `.5` is a number unless the point stands right behind something that can have a field.
static bool begins_number(const Lexer *lexer) {
    if (is_digit(lexer_peek(lexer, 0))) return true;
    if (lexer_peek(lexer, 0) != '.' || !is_digit(lexer_peek(lexer, 1))) return false;
    if (lexer->tokens.count == 0 || lexer->space_before) return true;
    const Token *before = &lexer->tokens.items[lexer->tokens.count - 1];
    return before->kind != TOKEN_NAME && before->kind != TOKEN_INT &&
           before->kind != TOKEN_RIGHT_PAREN && before->kind != TOKEN_RIGHT_BRACKET;
}

static void read_token(Lexer *lexer) {
    char c = *lexer->at, next = lexer_peek(lexer, 1);
    if (ends_placeholder(lexer))
        lexer_end_placeholder(lexer);
    else if (c == '"')
        lexer_read_string(lexer);
    else if (c == 'r' && next == '"')
        lexer_read_raw_string(lexer);
    else if (c == 'f' && next == '"')
        lexer_begin_format_string(lexer);
    else if (begins_number(lexer))
        lexer_read_number(lexer);
    else if (lexer_letter_size(lexer->at, lexer->end) > 0)
        read_word(lexer);
    else if (!read_symbol(lexer))
        read_mistake(lexer);
}

TokenList lexer_read(const SourceFile *file, Arena *arena, DiagnosticList *diagnostics,
                     size_t errors_max) {
    Lexer lexer = {.file = file,
                   .at = file->text,
                   .end = file->text + file->length,
                   .arena = arena,
                   .diagnostics = diagnostics,
                   .errors_max = errors_max,
                   .newline_before = true};
    if (file->length >= 3 && memcmp(lexer.at, "\xEF\xBB\xBF", 3) == 0) lexer.at += 3;
    if (lexer_peek(&lexer, 0) == '#' && lexer_peek(&lexer, 1) == '!') skip_line_comment(&lexer);
    for (skip_space(&lexer); lexer.at < lexer.end; skip_space(&lexer)) read_token(&lexer);
    if (lexer.brackets.count > 0 || lexer.placeholders.count > 0) lexer.tokens.ends_open = true;
    lexer_add(&lexer, TOKEN_END, lexer.at);
    text_free(&lexer.scratch);
    VECTOR_FREE(&lexer.brackets);
    VECTOR_FREE(&lexer.placeholders);
    return lexer.tokens;
}
