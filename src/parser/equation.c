// What is written only in tensor equations: `<-` and max= min= avg= behind a left side, factors
// side by side, dotted indexes and primes. Whether `x[i] = e` is one is found by check.
#include "parser/state.h"

static const struct {
    const char *word;
    Projection projection;
} projections[] = {{"max", PROJECTION_MAX}, {"min", PROJECTION_MIN}, {"avg", PROJECTION_AVG}};

static Projection projection_at(const Parser *parser) {
    const Token *next = parser_ahead(parser, 1);
    if (next->kind != TOKEN_EQUAL || next->space_before) return PROJECTION_NONE;
    for (size_t i = 0; i < sizeof projections / sizeof *projections; i++)
        if (parser_is_name(parser_peek(parser), projections[i].word))
            return projections[i].projection;
    return PROJECTION_NONE;
}

static bool at_arrow(const Parser *parser) {
    const Token *next = parser_ahead(parser, 1);
    return parser_is(parser, TOKEN_LESS) && next->kind == TOKEN_MINUS && !next->space_before;
}

bool parser_at_equation(const Parser *parser, const Node *left) {
    bool indexed = left->kind == NODE_INDEX && left->as.index.object->kind == NODE_NAME;
    if (at_arrow(parser)) return indexed || left->kind == NODE_NAME;
    return indexed && !parser_at_new_line(parser) && projection_at(parser) != PROJECTION_NONE;
}

// A `?` behind a name, a field or an element that ends its expression; else it is the choice of
// another language.
bool parser_at_ask(const Parser *parser, const Node *left) {
    bool fits = left->kind == NODE_INDEX || left->kind == NODE_FIELD || left->kind == NODE_NAME;
    const Token *behind = parser_ahead(parser, 1);
    switch (behind->kind) {
    case TOKEN_END:
    case TOKEN_SEMICOLON:
    case TOKEN_COMMA:
    case TOKEN_RIGHT_PAREN:
    case TOKEN_RIGHT_BRACKET:
    case TOKEN_RIGHT_BRACE: return fits;
    default: return fits && behind->newline_before;
    }
}

Node *parse_ask(Parser *parser, Node *value, SourcePos begin) {
    Node *node = node_new(parser, NODE_ASK, begin);
    ASSERT(parser_is(parser, TOKEN_QUESTION));
    parser_next(parser);
    node->as.ask.value = value;
    node->span.end = parser_end(parser);
    return node_adopt(parser, node, value) ? node : NULL;
}

Node *parse_side(Parser *parser, const Node *target) {
    bool outer = parser->context.in_equation;
    parser->context.in_equation =
        target->kind == NODE_INDEX || (target->kind == NODE_NAME && parser->context.in_program);
    Node *value = parse_expression(parser);
    parser->context.in_equation = outer;
    return value;
}

Node *parse_equation(Parser *parser, Node *left, SourcePos begin) {
    ASSERT(parser_at_equation(parser, left));
    Node *node = node_new(parser, NODE_ASSIGN, begin);
    node->as.assign.projection = projection_at(parser);
    node->as.assign.arrow = node->as.assign.projection == PROJECTION_NONE;
    node->op_span.begin = parser_begin(parser);
    parser_next(parser);
    node->op_span.end = parser_next(parser)->span.end;
    bool outer = parser->context.in_equation;
    parser->context.in_equation = true;
    Node *value = parse_expression(parser);
    parser->context.in_equation = outer;
    if (!value) return NULL;
    node->as.assign.target = left;
    node->as.assign.value = value;
    node->span.end = parser_end(parser);
    return node_adopt(parser, node, left) && node_adopt(parser, node, value) ? node : NULL;
}

bool parser_at_factor(const Parser *parser) {
    if (!parser->context.in_equation || parser_at_new_line(parser)) return false;
    switch (parser_peek(parser)->kind) {
    case TOKEN_NAME:
    case TOKEN_INT:
    case TOKEN_FLOAT:
    case TOKEN_LEFT_PAREN: return true;
    default: return false;
    }
}

bool parser_at_group(const Parser *parser, const Node *left) {
    const Token *token = parser_peek(parser), *before = token - 1;
    if (token->kind != TOKEN_LEFT_PAREN || !parser->context.in_equation || !token->space_before)
        return false;
    return (left->kind != NODE_NAME && left->kind != NODE_FIELD) ||
           before->kind == TOKEN_RIGHT_PAREN;
}

bool parser_at_dot(const Parser *parser) {
    TokenKind behind = (TokenKind)parser_ahead(parser, 1)->kind;
    return parser->context.in_subscript && parser_is(parser, TOKEN_DOT) &&
           (behind == TOKEN_COMMA || behind == TOKEN_RIGHT_BRACKET);
}

bool parser_take_primed(Parser *parser, const Token *token) {
    ASSERT(token < parser_peek(parser) && token->span.end > parser->file->base);
    const char *end = parser->file->text + (token->span.end - parser->file->base);
    if (end[-1] != '\'' || parser->context.in_equation || parser->context.in_subscript) return true;
    FAIL(parser, .span = token->span, .message = "only an index of an equation can have a prime",
         .help = "strings are written with double quotes");
    return false;
}
