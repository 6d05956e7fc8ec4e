// From source text to tokens. Knows spelling only: whether a newline ends a statement, and whether
// a word such as `tensor` begins a declaration, is decided by the parser.
#ifndef LEXER_LEXER_H
#define LEXER_LEXER_H

#include "base/diagnostic.h"
#include "base/memory.h"
#include "base/source.h"

typedef enum TokenKind {
    TOKEN_END,
    TOKEN_ERROR, // something unreadable, already reported
    TOKEN_NAME,
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_STRING,
    // f"a{x:.3}b" is STRING(a) x SPEC(.3) TEXT(b): a text, then expression, spec (or none) and text
    // until a text that is the last.
    TOKEN_FORMAT_STRING,
    TOKEN_FORMAT_TEXT,
    TOKEN_FORMAT_SPEC,
#define KEYWORD(kind, spelling) TOKEN_##kind,
#define SYMBOL(kind, spelling) TOKEN_##kind,
#include "lexer/tokens.def"
#undef KEYWORD
#undef SYMBOL
    TOKEN_KIND_COUNT
} TokenKind;

enum { TOKEN_NO_PARTNER = 0 }; // token 0 opens a bracket only if its partner comes later

typedef struct Token {
    uint8_t kind;        // TokenKind
    bool newline_before; // the first token of a line
    bool space_before;   // white space, comment or newline stands before it
    bool last;           // FORMAT_STRING, FORMAT_TEXT: the f-string ends with it
    bool too_large;      // INT: 2^63, which fits only behind a minus; the value is INT64_MIN
    uint32_t length;     // STRING, FORMAT_*: bytes of text
    Span span;
    union {
        int64_t integer;
        double number;
        const char *text; // STRING, FORMAT_*: escapes resolved, NUL-terminated, in the arena
        size_t partner;   // an opening bracket: the token that closes it, or TOKEN_NO_PARTNER
    } value;
} Token;

typedef struct TokenList {
    Token *items; // the last one is TOKEN_END
    size_t count, capacity;
    bool ends_open; // the text ends inside a bracket, string or comment
} TokenList;

// Reads the whole text. Unreadable things become TOKEN_ERROR and a diagnostic, at most errors_max
// of them. Free the result with VECTOR_FREE; strings live in the arena.
TokenList lexer_read(const SourceFile *file, Arena *arena, DiagnosticList *diagnostics,
                     size_t errors_max);
// The spelling of a keyword or symbol; NULL for the other kinds.
const char *token_spelling(TokenKind kind);
// True for names and reserved words.
bool token_is_word(const Token *token);

#endif
