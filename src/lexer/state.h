// What the lexer's files share: the reading position and the tokens made so far.
#ifndef LEXER_STATE_H
#define LEXER_STATE_H

#include "lexer/lexer.h"

typedef struct OpenBracket {
    TokenKind kind;
    size_t token;
} OpenBracket;

typedef struct Lexer {
    const SourceFile *file;
    const char *at, *end; // the bytes still to read
    Arena *arena;
    DiagnosticList *diagnostics;
    size_t errors_max;
    TokenList tokens;
    Text scratch; // a literal in the making
    VECTOR(OpenBracket) brackets;
    VECTOR(size_t) placeholders; // open `{` of f-strings: how many brackets were open before each
    bool newline_before, space_before;
} Lexer;

// The i-th byte from here, 0 beyond the end.
static inline char lexer_peek(const Lexer *lexer, size_t i) {
    return (size_t)(lexer->end - lexer->at) > i ? lexer->at[i] : '\0';
}
// The size of the letter (or `_`) at `at`, 0 when there is none.
size_t lexer_letter_size(const char *at, const char *end);
SourcePos lexer_position(const Lexer *lexer, const char *at);
// Adds a token that reaches from `begin` to the reading position.
Token *lexer_add(Lexer *lexer, TokenKind kind, const char *begin);
// Reports from `begin` to `end`; the words are printf-like, help may be NULL.
void lexer_fail(Lexer *lexer, Span span, const char *help, const char *format, ...)
    PRINTF_LIKE(4, 5);

void lexer_read_number(Lexer *lexer);
void lexer_read_string(Lexer *lexer);         // at `"`
void lexer_read_raw_string(Lexer *lexer);     // at `r"`
void lexer_begin_format_string(Lexer *lexer); // at `f"`
void lexer_end_placeholder(Lexer *lexer);     // at the `}` or `:` that ends an expression in one

#endif
