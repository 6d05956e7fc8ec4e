// Where a space stands between two pieces of a line. Where the tree says too little to know better,
// the author's space is kept.
#include "fmt/spacing.h"
#include "fmt/pieces.h"

static bool ends_with_point(const Piece *piece) {
    return piece_is(piece, TOKEN_FLOAT) && piece->text[piece->length - 1] == '.';
}

static bool is_prefix(const Piece *piece) {
    return piece_is(piece, TOKEN_BANG) ||
           ((piece_is(piece, TOKEN_MINUS) || piece_is(piece, TOKEN_STAR)) &&
            piece->role == ROLE_PLAIN);
}

static bool is_range(const Piece *piece) {
    return piece_is(piece, TOKEN_DOT_DOT) || piece_is(piece, TOKEN_DOT_DOT_EQUAL);
}

// A `<` or `>` of type arguments.
static bool is_angle(const Piece *piece) {
    return (piece_is(piece, TOKEN_LESS) || piece_is(piece, TOKEN_GREATER)) &&
           piece->role == ROLE_PLAIN;
}

static bool is_name(const Piece *piece, const char *word) {
    return piece_is(piece, TOKEN_NAME) && piece->length == strlen(word) &&
           memcmp(piece->text, word, piece->length) == 0;
}

// What always stands between two spaces: assignments, arrows, the bar of patterns.
static bool is_separator(const Piece *piece) {
    if (piece->role == ROLE_BINARY) return true;
    switch (piece->token) {
    case TOKEN_EQUAL:
    case TOKEN_COLON_EQUAL:
    case TOKEN_ARROW:
    case TOKEN_FAT_ARROW:
    case TOKEN_BAR: return piece->role != ROLE_NAMED;
    default: return false;
    }
}

static bool space_at_comment(const Piece *left, const Piece *right) {
    if (right->kind != PIECE_TOKEN) return !piece_opens(left) || piece_is(left, TOKEN_LEFT_BRACE);
    return !piece_is(right, TOKEN_RIGHT_PAREN) && !piece_is(right, TOKEN_RIGHT_BRACKET) &&
           !piece_is(right, TOKEN_COMMA) && !piece_is(right, TOKEN_SEMICOLON);
}

static bool space_at_brace(const Piece *left, const Piece *right) {
    if (piece_is(left, TOKEN_LEFT_BRACE) && piece_is(right, TOKEN_RIGHT_BRACE)) return false;
    const Piece *brace = piece_is(left, TOKEN_LEFT_BRACE) ? left : right;
    return !brace->dictionary;
}

static bool space_before_paren(const Piece *before, const Piece *left, const Piece *right) {
    if (right->role == ROLE_CALL || piece_is(left, TOKEN_FN)) return false;
    if ((before && piece_is(before, TOKEN_FN)) || is_angle(left)) return false;
    if (is_separator(left)) return true;
    bool word = left->token >= TOKEN_FN && left->token <= TOKEN_AS;
    return word || piece_is(left, TOKEN_COLON) || right->space_before;
}

static bool space_before_bracket(const Piece *left) {
    if (piece_is(left, TOKEN_NAME)) return is_name(left, "of");
    return !piece_closes(left) && !piece_is(left, TOKEN_STRING) &&
           !piece_is(left, TOKEN_FORMAT_STRING);
}

// `:` and `::`, `.` and ranges; false through `known` when neither is such a piece.
static bool space_at_points(const Piece *left, const Piece *right, TokenKind bracket, bool *known) {
    *known = true;
    if (piece_is(left, TOKEN_COLON_COLON)) return left->role == ROLE_BINARY;
    if (piece_is(right, TOKEN_COLON_COLON)) return right->role == ROLE_BINARY;    // behind a weight
    if (piece_is(left, TOKEN_COLON) && piece_is(right, TOKEN_COLON)) return true; // `::` is another
    if (piece_is(left, TOKEN_COLON) || piece_is(right, TOKEN_COLON))
        return bracket != TOKEN_LEFT_BRACKET && !piece_is(right, TOKEN_COLON);
    if (piece_is(left, TOKEN_DOT)) return false;
    if (piece_is(right, TOKEN_DOT)) return ends_with_point(left);
    if (is_range(left)) return right->text[0] == '.';
    if (is_range(right)) return ends_with_point(left);
    if (piece_is(right, TOKEN_QUESTION)) return false;
    *known = false;
    return false;
}

bool space_between(const Piece *before, const Piece *left, const Piece *right, TokenKind bracket) {
    if (left->kind != PIECE_TOKEN || right->kind != PIECE_TOKEN)
        return space_at_comment(left, right);
    if (piece_is(right, TOKEN_COMMA) || piece_is(right, TOKEN_SEMICOLON)) return false;
    if (piece_is(left, TOKEN_LEFT_PAREN) || piece_is(left, TOKEN_LEFT_BRACKET)) return false;
    if (piece_is(right, TOKEN_RIGHT_PAREN) || piece_is(right, TOKEN_RIGHT_BRACKET)) return false;
    if (piece_is(left, TOKEN_LEFT_BRACE) || piece_is(right, TOKEN_RIGHT_BRACE))
        return space_at_brace(left, right);
    if (piece_is(left, TOKEN_COMMA) || piece_is(left, TOKEN_SEMICOLON)) return true;
    bool known;
    bool space = space_at_points(left, right, bracket, &known);
    if (known) return space;
    if (left->role == ROLE_NAMED || right->role == ROLE_NAMED) return false;
    if (left->role == ROLE_ARROW || left->role == ROLE_PROJECTION) return false;
    if (right->role == ROLE_ARROW || left->role == ROLE_ARROW_END) return true;
    if (is_prefix(left)) return is_prefix(right);
    if (is_separator(left)) return true;
    if (is_angle(right) || piece_is(left, TOKEN_LESS)) return false;
    if (piece_is(right, TOKEN_LEFT_PAREN)) return space_before_paren(before, left, right);
    if (piece_is(right, TOKEN_LEFT_BRACKET)) return space_before_bracket(left);
    return true;
}
