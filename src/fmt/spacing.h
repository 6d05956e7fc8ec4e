// Spaces between tokens of a line.
#ifndef FMT_SPACING_H
#define FMT_SPACING_H

#include "fmt/pieces.h"

// Whether a space stands between two pieces of one line. `before` is the piece before `left` or
// NULL, `bracket` the innermost open bracket's opener, TOKEN_END outside all.
bool space_between(const Piece *before, const Piece *left, const Piece *right, TokenKind bracket);

#endif
