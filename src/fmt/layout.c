// Lines: how far each is indented, where blank ones stay, and how comments behind code line up.
//
// Inside a brace lines are indented by one step more than the line of the brace. Inside a
// parenthesis or bracket that ends its line they are, too; otherwise they line up behind it. A line
// that continues a statement outside brackets is indented by one step.
#include <stdlib.h>

#include "base/utf8.h"
#include "fmt/layout.h"
#include "fmt/pieces.h"
#include "fmt/spacing.h"

enum { STEP = 4 };

typedef struct Bracket {
    TokenKind kind;
    int line_indent;   // of the line that the opener stands in
    int inside_indent; // of the lines inside
} Bracket;

typedef struct Line {
    size_t begin, end;    // of its code, in the code's text
    int width;            // of its last physical line
    const Piece *comment; // behind the code, or NULL
    bool blank_before;
    bool several; // holds a string or comment over several lines
} Line;

typedef struct Layout {
    const PieceList *pieces;
    Text code;
    VECTOR(Line) lines;
    VECTOR(Bracket) brackets;
    const Piece *token, *before; // the last two tokens written
    size_t next_token;           // the first token at or after the piece last asked about
    int line_indent, column;
    int closed_indent; // of the line that the last closed bracket was opened in
} Layout;

// A line cannot end a statement behind such a token.
static bool continues_after(const Piece *piece) {
    if (!piece || piece->kind != PIECE_TOKEN || piece_closes(piece) || piece_opens(piece))
        return false;
    switch (piece->token) {
    case TOKEN_AND:
    case TOKEN_OR:
    case TOKEN_NOT:
    case TOKEN_IN:
    case TOKEN_AS: return true;
    case TOKEN_COMMA:
    case TOKEN_SEMICOLON:
    case TOKEN_QUESTION: return false;
    case TOKEN_LESS:
    case TOKEN_GREATER: return piece->role != ROLE_PLAIN;
    default: return piece_is_symbol(piece);
    }
}

// A line that begins with such a token goes on with the statement above.
static bool continues_at(const Piece *piece) {
    switch (piece->token) {
    case TOKEN_AND:
    case TOKEN_OR:
    case TOKEN_IN:
    case TOKEN_AS: return true;
    case TOKEN_MINUS: return piece->role != ROLE_PLAIN;
    case TOKEN_BANG:
    case TOKEN_COMMA:
    case TOKEN_SEMICOLON:
    case TOKEN_ELLIPSIS:
    case TOKEN_DOT_DOT: return false;
    default: return piece_is_symbol(piece) && !piece_opens(piece) && !piece_closes(piece);
    }
}

static int inside_indent(const Layout *layout) {
    size_t count = layout->brackets.count;
    return count > 0 ? layout->brackets.items[count - 1].inside_indent : 0;
}

static TokenKind innermost(const Layout *layout) {
    size_t count = layout->brackets.count;
    return count > 0 ? layout->brackets.items[count - 1].kind : TOKEN_END;
}

static int indent_of_token(const Layout *layout, const Piece *piece) {
    size_t count = layout->brackets.count;
    if (piece_closes(piece) && count > 0) return layout->brackets.items[count - 1].line_indent;
    bool follows = layout->token && piece_is(layout->token, TOKEN_RIGHT_BRACE) &&
                   (piece_is(piece, TOKEN_ELSE) || piece_is(piece, TOKEN_CATCH));
    if (follows) return layout->closed_indent;
    TokenKind bracket = innermost(layout);
    bool continues = bracket != TOKEN_LEFT_PAREN && bracket != TOKEN_LEFT_BRACKET &&
                     (continues_after(layout->token) || continues_at(piece));
    return inside_indent(layout) + (continues ? STEP : 0);
}

// A comment goes with the line below it, except that it is never outside with a closing bracket.
static int indent_of(Layout *layout, size_t index) {
    const PieceList *pieces = layout->pieces;
    if (layout->next_token < index) layout->next_token = index;
    while (layout->next_token < pieces->count &&
           pieces->items[layout->next_token].kind != PIECE_TOKEN)
        layout->next_token++;
    if (layout->next_token == pieces->count) return inside_indent(layout);
    const Piece *token = &pieces->items[layout->next_token];
    bool comment = layout->next_token != index;
    return comment && piece_closes(token) ? inside_indent(layout) : indent_of_token(layout, token);
}

static void begin_line(Layout *layout, size_t index) {
    const Piece *piece = &layout->pieces->items[index];
    const Piece *above = index > 0 ? piece - 1 : NULL;
    layout->line_indent = layout->column = indent_of(layout, index);
    Line line = {.begin = layout->code.length};
    line.blank_before =
        above && piece->newlines_before > 1 && !piece_opens(above) && !piece_closes(piece);
    text_append_repeated(&layout->code, ' ', (size_t)layout->line_indent);
    VECTOR_PUSH(&layout->lines, line);
}

static Line *current_line(Layout *layout) {
    return &layout->lines.items[layout->lines.count - 1];
}

static int width_of(const char *bytes, size_t length) {
    int width = 0;
    uint32_t codepoint;
    for (size_t at = 0, size; at < length; at += size) {
        size = utf8_decode(bytes + at, length - at, &codepoint);
        width += size > 0 ? utf8_width(codepoint) : 1;
        if (size == 0) size = 1;
    }
    return width;
}

// The end of a line without the carriage return of its newline. Of a comment's line all go; a
// string that has several before a newline has one as a character, and keeps them.
static const char *line_stop(const Piece *piece, const char *begin, const char *newline) {
    const char *stop = newline;
    while (stop > begin && stop[-1] == '\r') stop--;
    return piece->kind == PIECE_TOKEN && newline - stop > 1 ? newline : stop;
}

// Writes a piece's bytes, with newlines as one byte; the lines of a comment move with its first
// one, by `shift` columns.
static void write_bytes(Layout *layout, const Piece *piece, int shift) {
    const char *at = piece->text, *end = at + piece->length;
    for (;;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? line_stop(piece, at, newline) : end;
        text_append(&layout->code, at, (size_t)(stop - at));
        layout->column += width_of(at, (size_t)(stop - at));
        if (!newline) return;
        text_append_char(&layout->code, '\n');
        layout->column = 0;
        current_line(layout)->several = true;
        at = newline + 1;
        size_t blanks = 0;
        while (at + blanks < end && at[blanks] == ' ') blanks++;
        int moved = (int)blanks + shift;
        bool empty = at[blanks] == '\n' || at[blanks] == '\r' || at[blanks] == '\t';
        if (shift == 0 || empty) continue;
        at += blanks;
        text_append_repeated(&layout->code, ' ', moved > 0 ? (size_t)moved : 0);
        layout->column = moved > 0 ? moved : 0;
    }
}

static void note_brackets(Layout *layout, size_t index) {
    const Piece *piece = &layout->pieces->items[index];
    if (piece_closes(piece) && layout->brackets.count > 0) {
        layout->closed_indent = layout->brackets.items[layout->brackets.count - 1].line_indent;
        layout->brackets.count--;
        layout->line_indent = layout->closed_indent; // what opens behind it belongs to its line
    }
    if (!piece_opens(piece)) return;
    const Piece *next = index + 1 < layout->pieces->count ? piece + 1 : NULL;
    bool ends_line = !next || next->newlines_before > 0 || next->kind == PIECE_LINE_COMMENT;
    Bracket bracket = {.kind = piece->token, .line_indent = layout->line_indent};
    bracket.inside_indent =
        ends_line || piece->token == TOKEN_LEFT_BRACE ? layout->line_indent + STEP : layout->column;
    VECTOR_PUSH(&layout->brackets, bracket);
}

static void write_piece(Layout *layout, size_t index) {
    const Piece *piece = &layout->pieces->items[index];
    bool begins = index == 0 || piece->newlines_before > 0;
    if (begins) begin_line(layout, index);
    if (!begins && piece->kind == PIECE_LINE_COMMENT) {
        current_line(layout)->comment = piece;
        return;
    }
    if (!begins && space_between(layout->before, piece - 1, piece, innermost(layout))) {
        text_append_char(&layout->code, ' ');
        layout->column++;
    }
    bool own_line = begins && piece->kind == PIECE_BLOCK_COMMENT;
    write_bytes(layout, piece, own_line ? layout->line_indent - piece->column : 0);
    current_line(layout)->end = layout->code.length;
    current_line(layout)->width = layout->column;
    note_brackets(layout, index);
    if (piece->kind != PIECE_TOKEN) return;
    layout->before = layout->token;
    layout->token = piece;
}

// Comments behind consecutive lines that lined up in the source still do.
static bool lines_up(const Line *above, const Line *below) {
    return above->comment && below->comment && !below->blank_before && !above->several &&
           !below->several && above->comment->column == below->comment->column;
}

// The column of the comments of the run that begins with line `first`; its end through `end`.
static int comment_column(const Layout *layout, size_t first, size_t *end) {
    const Line *lines = layout->lines.items;
    int width = lines[first].width;
    for (*end = first + 1; *end < layout->lines.count; ++*end) {
        if (!lines_up(&lines[*end - 1], &lines[*end])) break;
        if (lines[*end].width > width) width = lines[*end].width;
    }
    return width + 1;
}

static void write_lines(const Layout *layout, Text *out) {
    size_t run_end = 0;
    int column = 0;
    for (size_t i = 0; i < layout->lines.count; i++) {
        const Line *line = &layout->lines.items[i];
        if (line->blank_before) text_append_char(out, '\n');
        text_append(out, layout->code.bytes + line->begin, line->end - line->begin);
        if (line->comment) {
            if (i >= run_end) column = comment_column(layout, i, &run_end);
            text_append_repeated(out, ' ', (size_t)(column - line->width));
            text_append(out, line->comment->text, line->comment->length);
        }
        text_append_char(out, '\n');
    }
}

void pieces_lay_out(const PieceList *pieces, Text *out) {
    Layout layout = {.pieces = pieces};
    for (size_t i = 0; i < pieces->count; i++) write_piece(&layout, i);
    write_lines(&layout, out);
    text_free(&layout.code);
    VECTOR_FREE(&layout.lines);
    VECTOR_FREE(&layout.brackets);
}
