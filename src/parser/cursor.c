// The cursor over the tokens, brackets and their context, and the making of nodes.
#include <stdlib.h>
#include <string.h>

#include "parser/state.h"

void *parser_grow(Parser *parser, void *items, size_t count, size_t item_bytes) {
    enum { FIRST_CAPACITY = 4 };
    bool full = count == 0 || (count >= FIRST_CAPACITY && (count & (count - 1)) == 0);
    if (!full) return items;
    size_t capacity = count == 0 ? FIRST_CAPACITY : count * 2;
    ASSERT(capacity > count);
    void *grown = arena_allocate(parser->arena, capacity * item_bytes);
    if (count > 0) memcpy(grown, items, count * item_bytes);
    return grown;
}

const Token *parser_ahead(const Parser *parser, size_t count) {
    ASSERT(parser->at < parser->tokens.count);
    size_t last = parser->tokens.count - 1;
    return &parser->tokens.items[last - parser->at < count ? last : parser->at + count];
}

const Token *parser_next(Parser *parser) {
    ASSERT(parser->at < parser->tokens.count);
    const Token *token = parser_peek(parser);
    if (token->kind != TOKEN_END) parser->at++;
    return token;
}

bool parser_accept(Parser *parser, TokenKind kind) {
    if (!parser_is(parser, kind)) return false;
    parser_next(parser);
    return true;
}

bool parser_at_new_line(const Parser *parser) {
    return parser_peek(parser)->newline_before && !parser->context.newlines_free;
}

const char parser_division_help[] =
    "`//` begins a comment; floor_div(a, b) is a quotient rounded down";

static const char *text_behind(const Parser *parser) {
    const char *at = parser->file->text + (parser_end(parser) - parser->file->base);
    while (*at == ' ' || *at == '\t') at++;
    return at[0] == '/' && at[1] == '/' ? at + 2 : NULL;
}

bool parser_at_comment(const Parser *parser) {
    return text_behind(parser) != NULL;
}

bool parser_at_division(const Parser *parser) {
    const char *at = text_behind(parser);
    if (!at || *at == '=') return at != NULL;
    while (*at == ' ') at++;
    const char *digits = at;
    while ((*at >= '0' && *at <= '9') || *at == '.' || *at == '_') at++;
    while (*at == ' ' || *at == '\r') at++;
    return at > digits && (*at == '\n' || *at == '\0');
}

bool parser_at_statement_end(const Parser *parser) {
    return parser_at_new_line(parser) || parser_is(parser, TOKEN_END) ||
           parser_is(parser, TOKEN_SEMICOLON) || parser_is(parser, TOKEN_RIGHT_BRACE);
}

bool parser_is_name(const Token *token, const char *word) {
    if (token->kind != TOKEN_NAME) return false;
    ASSERT(token->span.begin <= token->span.end);
    size_t length;
    const char *text = source_text(token->span, &length);
    return strlen(word) == length && memcmp(word, text, length) == 0;
}

SourcePos parser_begin(const Parser *parser) {
    return parser_peek(parser)->span.begin;
}

SourcePos parser_skip(Parser *parser) {
    return parser_next(parser)->span.begin;
}

SourcePos parser_end(const Parser *parser) {
    return parser->at > 0 ? parser->tokens.items[parser->at - 1].span.end : parser->file->base;
}

Word parser_word(Parser *parser, const Token *token) {
    size_t length = token->span.end - token->span.begin;
    const char *text = parser->file->text + (token->span.begin - parser->file->base);
    ASSERT(token->span.begin >= parser->file->base &&
           token->span.end - parser->file->base <= parser->file->length);
    return (Word){.text = arena_copy_string(parser->arena, text, length),
                  .length = (uint32_t)length,
                  .span = token->span};
}

Word parser_string_word(const Token *token) {
    ASSERT(token->value.text != NULL);
    return (Word){.text = token->value.text, .length = token->length, .span = token->span};
}

bool parser_at_learnable(const Parser *parser) {
    return parser_is_name(parser_peek(parser), "learnable") && !parser_at_new_line(parser);
}

bool parser_take_learnable(Parser *parser) {
    bool here = parser_at_learnable(parser);
    if (here) parser_next(parser);
    return here;
}

bool parser_take_name(Parser *parser, const char *what, Word *out) {
    const Token *token = parser_peek(parser);
    if (token->kind != TOKEN_NAME && token_is_word(token) && !parser_at_new_line(parser)) {
        const char *help = parser_say(parser, "`%s` is a reserved word; choose another name",
                                      token_spelling((TokenKind)token->kind));
        return parser_fail_expected_help(parser, what, help) != NULL;
    }
    if (token->kind != TOKEN_NAME) return parser_fail_expected(parser, what) != NULL;
    const Token *name = parser_next(parser);
    *out = parser_word(parser, name);
    return parser_take_primed(parser, name);
}

bool parser_take_word(Parser *parser, const char *what, Word *out) {
    if (!token_is_word(parser_peek(parser))) return parser_fail_expected(parser, what) != NULL;
    *out = parser_word(parser, parser_next(parser));
    return true;
}

bool token_begins_statement(const Token *token) {
    switch (token->kind) {
    case TOKEN_FN:
    case TOKEN_LET:
    case TOKEN_WHILE:
    case TOKEN_LOOP:
    case TOKEN_FOR:
    case TOKEN_BREAK:
    case TOKEN_CONTINUE:
    case TOKEN_RETURN: return true;
    default: return false;
    }
}

Context parser_open_bracket(Parser *parser) {
    Context outer = parser->context;
    ASSERT(parser_is(parser, TOKEN_LEFT_PAREN) || parser_is(parser, TOKEN_LEFT_BRACKET) ||
           parser_is(parser, TOKEN_LEFT_BRACE));
    size_t token = parser->at;
    bool brace = parser_is(parser, TOKEN_LEFT_BRACE);
    VECTOR_PUSH(&parser->open, token);
    parser_next(parser);
    parser->context.newlines_free = !brace;
    parser->context.in_head = parser->context.in_subscript = false;
    if (brace) parser->context.in_equation = parser->context.in_program = false;
    parser->context.open_count = parser->open.count;
    return outer;
}

bool parser_at_closer(const Parser *parser) {
    const Token *token = parser_peek(parser);
    return token->kind == TOKEN_RIGHT_PAREN || token->kind == TOKEN_RIGHT_BRACKET ||
           token->kind == TOKEN_RIGHT_BRACE || token->kind == TOKEN_END;
}

// What was likely meant where a bracket is not closed.
const char *parser_factor_help(const Parser *parser) {
    const Token *token = parser_peek(parser);
    bool factor = token->kind == TOKEN_NAME && !token->newline_before && parser->at > 0 &&
                  parser->tokens.items[parser->at - 1].kind == TOKEN_RIGHT_BRACKET &&
                  parser_ahead(parser, 1)->kind == TOKEN_LEFT_BRACKET;
    return factor ? "a tensor equation of one number is written s <- A[i] B[i]" : NULL;
}

static const char *closing_help(const Parser *parser, const Token *token) {
    if (token->kind == TOKEN_IF && !token->newline_before)
        return "a choice is written if c { a } else { b }";
    if (parser_factor_help(parser)) return parser_factor_help(parser);
    return parser_at_comment(parser) ? parser_division_help : parser_foreign_help(parser);
}

bool parser_close_bracket(Parser *parser, const Context *outer, const char *what) {
    ASSERT(parser->open.count > 0);
    const Token *opener = &parser->tokens.items[parser->open.items[parser->open.count - 1]];
    TokenKind closer = (TokenKind)(opener->kind + 1); // tokens.def lists them in pairs
    ASSERT(closer == TOKEN_RIGHT_PAREN || closer == TOKEN_RIGHT_BRACKET ||
           closer == TOKEN_RIGHT_BRACE);
    if (!parser_is(parser, closer)) {
        const Token *token = parser_peek(parser);
        bool separated = !parser_at_closer(parser) && !token_begins_statement(token) &&
                         token->kind != TOKEN_COMMA; // which one thing alone has not
        const char *wanted =
            separated ? parser_say(parser, "`,` or `%s` in this %s", token_spelling(closer), what)
                      : parser_say(parser, "`%s` to close the %s", token_spelling(closer), what);
        bool at_end = token->kind == TOKEN_END;
        FAIL(parser, .span = at_end ? (Span){parser_end(parser), parser_end(parser)} : token->span,
             .message = parser_say(parser, "expected %s, found %s", wanted,
                                   parser_describe(parser, token)),
             .help = closing_help(parser, token),
             .notes[0].text = parser_say(parser, "this %s was opened here", what),
             .notes[0].span = opener->span);
        return false;
    }
    parser_next(parser);
    ASSERT(parser->open.count > 0);
    parser->open.count--;
    parser->context = *outer;
    return true;
}

bool parser_enter(Parser *parser) {
    if (++parser->context.nesting <= NESTING_MAX) return true;
    parser_stop(parser, parser_peek(parser)->span,
                parser_say(parser, "nested too deeply: more than %d levels", NESTING_MAX));
    return false;
}

void parser_leave(Parser *parser) {
    ASSERT(parser->context.nesting > 0);
    parser->context.nesting--;
}

Node *node_finish(const Parser *parser, Node *node) {
    ASSERT(parser_end(parser) >= node->span.begin);
    node->span.end = parser_end(parser);
    return node;
}

Node *node_new(Parser *parser, NodeKind kind, SourcePos begin) {
    Node *node = arena_allocate(parser->arena, sizeof *node);
    node->kind = kind;
    node->op = OPERATOR_NONE;
    node->span = (Span){begin, parser_end(parser)};
    node->height = 1;
    return node;
}

bool node_adopt(Parser *parser, Node *parent, const Node *child) {
    ASSERT(parent->height > 0);
    ASSERT(!child || child->height > 0);
    if (child && child->height >= parent->height) parent->height = child->height + 1;
    if (parent->height <= TREE_HEIGHT_MAX) return true;
    parser_stop(parser, parent->span,
                parser_say(parser, "too long a chain: more than %d links", TREE_HEIGHT_MAX));
    return false;
}
