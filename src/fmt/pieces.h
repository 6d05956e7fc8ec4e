// What the formatter's files share: a program as a row of pieces, tokens and comments, each with
// what was before it in the source and the part it plays.
#ifndef FMT_PIECES_H
#define FMT_PIECES_H

#include "lexer/lexer.h"
#include "parser/ast.h"

typedef enum Role {
    ROLE_PLAIN,
    ROLE_BINARY,    // an operator between two operands
    ROLE_CALL,      // the parenthesis of a call's arguments
    ROLE_NAMED,     // the `=` behind an argument's name
    ROLE_ARROW,     // the `<` of `<-`
    ROLE_ARROW_END, // and its `-`
    ROLE_PROJECTION // the word of `max=`
} Role;

typedef enum PieceKind { PIECE_TOKEN, PIECE_LINE_COMMENT, PIECE_BLOCK_COMMENT } PieceKind;

typedef struct Piece {
    PieceKind kind;
    TokenKind token; // of PIECE_TOKEN; a whole f-string is one piece of TOKEN_FORMAT_STRING
    Role role;
    bool dictionary;     // the brace begins or ends a dictionary
    bool space_before;   // in the source
    int newlines_before; // in the source, at most 2
    int column;          // in the source, where the piece begins
    const char *text;    // in the source
    size_t length;
} Piece;

typedef struct PieceList {
    Piece *items;
    size_t count, capacity;
} PieceList;

// tokens: of the same file as the tree. Free the result with VECTOR_FREE.
PieceList pieces_read(const SourceFile *file, const TokenList *tokens, Node *top);

static inline bool piece_is(const Piece *piece, TokenKind kind) {
    return piece->kind == PIECE_TOKEN && piece->token == kind;
}
static inline bool piece_opens(const Piece *piece) {
    return piece_is(piece, TOKEN_LEFT_PAREN) || piece_is(piece, TOKEN_LEFT_BRACKET) ||
           piece_is(piece, TOKEN_LEFT_BRACE);
}
static inline bool piece_closes(const Piece *piece) {
    return piece_is(piece, TOKEN_RIGHT_PAREN) || piece_is(piece, TOKEN_RIGHT_BRACKET) ||
           piece_is(piece, TOKEN_RIGHT_BRACE);
}
static inline bool piece_is_symbol(const Piece *piece) {
    return piece->kind == PIECE_TOKEN && piece->token >= TOKEN_ELLIPSIS;
}

#endif
