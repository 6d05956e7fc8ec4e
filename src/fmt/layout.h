// Where lines of the formatted text break.
#ifndef FMT_LAYOUT_H
#define FMT_LAYOUT_H

#include "fmt/pieces.h"

// Lines, indentation and comments.
void pieces_lay_out(const PieceList *pieces, Text *out);

#endif
