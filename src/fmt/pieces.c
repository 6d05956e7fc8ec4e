// A program's tokens and comments as pieces, with the parts that only the tree knows.
#include "fmt/pieces.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "parser/walk.h"

typedef struct Marks {
    const TokenList *tokens;
    uint8_t *roles;   // Role of each token
    bool *dictionary; // of each token: a brace of a dictionary
} Marks;

// The first token that begins at or after a place.
static size_t token_at(const TokenList *tokens, SourcePos at) {
    size_t low = 0, high = tokens->count - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (tokens->items[middle].span.begin < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void mark(Marks *marks, SourcePos at, Role role) {
    marks->roles[token_at(marks->tokens, at)] = (uint8_t)role;
}

static void mark_arguments(Marks *marks, const Argument *arguments, size_t count, Span span) {
    mark(marks, span.begin, ROLE_CALL);
    for (size_t i = 0; i < count; i++)
        if (arguments[i].name.text) mark(marks, arguments[i].name.span.end, ROLE_NAMED);
}

static void mark_dictionary(Marks *marks, SourcePos at) {
    size_t opener = token_at(marks->tokens, at);
    marks->dictionary[opener] = true;
    marks->dictionary[marks->tokens->items[opener].value.partner] = true;
}

// The names of an entity type stand as the keys of a dictionary do: {alice, bob}.
static void mark_entity(Marks *marks, const Node *node) {
    if (!node->as.entity.closed) return;
    size_t equal = token_at(marks->tokens, node->as.entity.name.span.end);
    mark_dictionary(marks, marks->tokens->items[equal + 1].span.begin);
}

static void mark_node(void *context, Node *node) {
    Marks *marks = context;
    switch (node->kind) {
    case NODE_BINARY:
    case NODE_LOGICAL:
    case NODE_ASSIGN:
        if (node->kind == NODE_ASSIGN && node->as.assign.projection != PROJECTION_NONE)
            mark(marks, node->op_span.begin, ROLE_PROJECTION);
        else if (node->op_span.end > node->op_span.begin && // factors side by side have none
                 !(node->kind == NODE_ASSIGN && node->as.assign.arrow))
            mark(marks, node->op_span.begin, ROLE_BINARY);
        break;
    case NODE_FACT:
    case NODE_DRAWN:
    case NODE_RULE:
        if (node->as.clause->weight) mark(marks, node->op_span.begin, ROLE_BINARY);
        break;
    case NODE_ENTITY: mark_entity(marks, node); break;
    case NODE_DICT: mark_dictionary(marks, node->span.begin); break;
    case NODE_CALL:
        mark_arguments(marks, node->as.call.arguments, node->as.call.count,
                       node->as.call.arguments_span);
        break;
    case NODE_METHOD_CALL:
        mark_arguments(marks, node->as.method.arguments, node->as.method.count,
                       node->as.method.arguments_span);
        break;
    default: break;
    }
}

static void mark_arrows(Marks *marks) {
    const Token *items = marks->tokens->items;
    for (size_t i = 0; i + 1 < marks->tokens->count; i++) {
        bool arrow = items[i].kind == TOKEN_LESS && marks->roles[i] == ROLE_PLAIN &&
                     items[i + 1].kind == TOKEN_MINUS && !items[i + 1].space_before;
        if (!arrow) continue;
        marks->roles[i] = ROLE_ARROW;
        marks->roles[i + 1] = ROLE_ARROW_END;
    }
}

// --- from the source to the pieces

typedef struct Reader {
    const char *at, *end; // the bytes still to read
    const char *measured; // the place in the line of `at` whose column is known
    int column;
    PieceList pieces;
    int newlines;
    bool space;
} Reader;

// Moves the known column on to the reading position.
static int reader_column(Reader *reader) {
    uint32_t codepoint;
    for (size_t size; reader->measured < reader->at; reader->measured += size) {
        size = utf8_decode(reader->measured, (size_t)(reader->at - reader->measured), &codepoint);
        reader->column += size > 0 ? utf8_width(codepoint) : 1;
        if (size == 0) size = 1;
    }
    return reader->column;
}

static void reader_begin_line(Reader *reader, const char *at) {
    reader->measured = at;
    reader->column = 0;
}

// Adds the piece that reaches from the reading position to `end`.
static Piece *piece_add(Reader *reader, PieceKind kind, const char *end) {
    Piece piece = {.kind = kind,
                   .space_before = reader->space || reader->newlines > 0,
                   .newlines_before = reader->newlines < 2 ? reader->newlines : 2,
                   .column = reader_column(reader),
                   .text = reader->at,
                   .length = (size_t)(end - reader->at)};
    for (; reader->at < end; reader->at++)
        if (*reader->at == '\n') reader_begin_line(reader, reader->at + 1);
    VECTOR_PUSH(&reader->pieces, piece);
    reader->newlines = 0;
    reader->space = false;
    return &reader->pieces.items[reader->pieces.count - 1];
}

static void read_line_comment(Reader *reader) {
    const char *end = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
    if (!end) end = reader->end;
    while (end > reader->at && end[-1] == '\r') end--;
    piece_add(reader, PIECE_LINE_COMMENT, end);
}

static void read_block_comment(Reader *reader) {
    const char *at = reader->at;
    size_t depth = 0;
    do {
        if (at[0] == '/' && at[1] == '*')
            depth++, at += 2;
        else if (at[0] == '*' && at[1] == '/')
            depth--, at += 2;
        else
            at++;
    } while (depth > 0);
    piece_add(reader, PIECE_BLOCK_COMMENT, at);
}

// Reads white space and comments up to a token.
static void read_gap(Reader *reader, const char *token) {
    while (reader->at < token) {
        char c = *reader->at;
        if (c == '/' && reader->at[1] == '/') {
            read_line_comment(reader);
        } else if (c == '/' && reader->at[1] == '*') {
            read_block_comment(reader);
        } else {
            reader->space = true;
            reader->at++;
            if (c != '\n') continue;
            reader->newlines++;
            reader_begin_line(reader, reader->at);
        }
    }
}

// The last token of the f-string that begins with token `first`.
static size_t format_string_end(const TokenList *tokens, size_t first) {
    size_t depth = 0;
    for (size_t i = first;; i++) {
        const Token *token = &tokens->items[i];
        if (token->kind == TOKEN_FORMAT_STRING) depth++;
        bool text = token->kind == TOKEN_FORMAT_STRING || token->kind == TOKEN_FORMAT_TEXT;
        if (text && token->last && --depth == 0) return i;
    }
}

static void read_tokens(Reader *reader, const SourceFile *file, const Marks *marks) {
    const Token *items = marks->tokens->items;
    for (size_t i = 0; items[i].kind != TOKEN_END; i++) {
        size_t first = i;
        read_gap(reader, file->text + (items[first].span.begin - file->base));
        if (items[i].kind == TOKEN_FORMAT_STRING) i = format_string_end(marks->tokens, i);
        const char *end = file->text + (items[i].span.end - file->base);
        Piece *piece = piece_add(reader, PIECE_TOKEN, end);
        piece->token = (TokenKind)items[first].kind;
        piece->role = (Role)marks->roles[first];
        piece->dictionary = marks->dictionary[first];
    }
    read_gap(reader, reader->end);
}

PieceList pieces_read(const SourceFile *file, const TokenList *tokens, Node *top) {
    Marks marks = {.tokens = tokens,
                   .roles = memory_allocate_zeroed(tokens->count, sizeof *marks.roles),
                   .dictionary = memory_allocate_zeroed(tokens->count, sizeof *marks.dictionary)};
    walk_node(&(Walker){.context = &marks, .node = mark_node}, top);
    mark_arrows(&marks);
    Reader reader = {.at = file->text, .end = file->text + file->length};
    if (file->length >= 3 && memcmp(reader.at, "\xEF\xBB\xBF", 3) == 0) reader.at += 3;
    reader_begin_line(&reader, reader.at);
    if (reader.end - reader.at >= 2 && reader.at[0] == '#' && reader.at[1] == '!')
        read_line_comment(&reader);
    read_tokens(&reader, file, &marks);
    free(marks.roles);
    free(marks.dictionary);
    return reader.pieces;
}
