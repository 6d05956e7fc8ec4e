// Type annotations: int, float32[3, n], (int, float), Point<int>, shapes.Point, T?
#include <math.h>
#include <stdlib.h>

#include "parser/state.h"

static TypeNode *type_new(Parser *parser, SourcePos begin) {
    TypeNode *type = arena_allocate(parser->arena, sizeof *type);
    type->span = (Span){begin, parser_end(parser)};
    return type;
}

bool parser_at_module(const Parser *parser) {
    const Token *point = parser_ahead(parser, 1);
    return parser_is(parser, TOKEN_NAME) && point->kind == TOKEN_DOT && !point->newline_before &&
           parser_ahead(parser, 2)->kind == TOKEN_NAME;
}

Node *parse_module(Parser *parser) {
    if (!parser_at_module(parser)) return NULL;
    const Token *name = parser_next(parser);
    Node *module = node_new(parser, NODE_NAME, name->span.begin);
    module->as.name.word = parser_word(parser, name);
    parser_next(parser);
    return module;
}

static bool parse_dimension(Parser *parser, Dimension *out) {
    const Token *token = parser_peek(parser);
    *out = (Dimension){.kind = DIMENSION_NUMBER};
    double number = token->kind == TOKEN_FLOAT ? token->value.number : 0.5;
    bool whole = number >= 0 && number < 0x1p62 && number == floor(number);
    if (token->kind == TOKEN_INT && !token->too_large) {
        out->number = token->value.integer;
    } else if (whole) {
        out->number = (int64_t)number;
    } else if (token->kind == TOKEN_QUESTION) {
        out->kind = DIMENSION_ANY;
    } else if (token->kind == TOKEN_NAME) {
        out->kind = DIMENSION_NAME;
        out->name = parser_word(parser, token);
    } else {
        parser_fail_expected_help(parser, "a dimension",
                                  "a dimension is an integer, a name, or `?` for any size");
        return false;
    }
    parser_next(parser);
    return true;
}

static bool parse_dimensions(Parser *parser, TypeNode *type) {
    ASSERT(parser_is(parser, TOKEN_LEFT_BRACKET));
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        Dimension dimension;
        if (!parse_dimension(parser, &dimension)) return false;
        LIST_PUSH(parser, type->dimensions, type->dimension_count, dimension);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
    }
    return parser_close_bracket(parser, &outer, "shape");
}

bool parse_type_arguments(Parser *parser, TypeNode ***types, size_t *count) {
    ASSERT(parser_is(parser, TOKEN_LESS));
    parser_next(parser);
    while (!parser_is(parser, TOKEN_GREATER)) {
        TypeNode *type = parse_type(parser);
        if (!type) return false;
        LIST_PUSH(parser, *types, *count, type);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
    }
    if (parser_accept(parser, TOKEN_GREATER)) return true;
    return parser_fail_expected(parser, "`>` to end the type arguments") != NULL;
}

// Only what types are made of may stand between; the limit keeps a text full of `<` linear.
bool parser_at_type_arguments(const Parser *parser) {
    enum { TOKENS_MAX = 256 };
    if (!parser_is(parser, TOKEN_LESS)) return false;
    size_t depth = 0;
    for (size_t i = 0; i < TOKENS_MAX; i++) {
        const Token *token = parser_ahead(parser, i);
        switch (token->kind) {
        case TOKEN_LESS: depth++; break;
        case TOKEN_GREATER:
            if (--depth > 0) break;
            token = parser_ahead(parser, i + 1);
            if (token->kind == TOKEN_COLON_COLON) return true;
            return token->kind == TOKEN_LEFT_BRACE && !parser->context.in_head;
        case TOKEN_NAME:
        case TOKEN_DOT:
        case TOKEN_INT:
        case TOKEN_FN:
        case TOKEN_COMMA:
        case TOKEN_QUESTION:
        case TOKEN_LEFT_BRACKET:
        case TOKEN_RIGHT_BRACKET:
        case TOKEN_LEFT_PAREN:
        case TOKEN_RIGHT_PAREN: break;
        default: return false;
        }
    }
    return false;
}

static TypeNode *parse_tuple_type(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_LEFT_PAREN));
    TypeNode *type = type_new(parser, parser_begin(parser));
    type->kind = TYPE_TUPLE;
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        TypeNode *member = parse_type(parser);
        if (!member) return NULL;
        LIST_PUSH(parser, type->arguments, type->argument_count, member);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
    }
    return parser_close_bracket(parser, &outer, "tuple type") ? type : NULL;
}

static TypeNode *parse_named_type(Parser *parser, bool in_cast) {
    const Token *token = parser_peek(parser);
    if (token->kind == TOKEN_NONE)
        return parser_fail_expected_help(parser, "a type",
                                         "void stands for no value; `T?` also accepts none");
    if (token->kind != TOKEN_NAME && token->kind != TOKEN_FN)
        return parser_fail_expected(parser, "a type");
    TypeNode *type = type_new(parser, token->span.begin);
    type->module = in_cast ? NULL : parse_module(parser);
    type->name = parser_word(parser, parser_next(parser));
    bool bracket = parser_is(parser, TOKEN_LEFT_BRACKET) && !parser_at_new_line(parser);
    if (bracket && !type->module) {
        type->kind = TYPE_TENSOR;
        if (!parse_dimensions(parser, type)) return NULL;
    } else if (!in_cast && parser_is(parser, TOKEN_LESS)) {
        if (!parse_type_arguments(parser, &type->arguments, &type->argument_count)) return NULL;
    }
    return type;
}

static TypeNode *parse_any_type(Parser *parser, bool in_cast) {
    if (!parser_enter(parser)) return NULL;
    TypeNode *type = parser_is(parser, TOKEN_LEFT_PAREN) ? parse_tuple_type(parser)
                                                         : parse_named_type(parser, in_cast);
    parser_leave(parser);
    if (!type) return NULL;
    if (!in_cast && parser_accept(parser, TOKEN_QUESTION)) type->optional = true;
    type->span.end = parser_end(parser);
    return type;
}

TypeNode *parse_type(Parser *parser) {
    return parse_any_type(parser, false);
}

TypeNode *parse_cast_type(Parser *parser) {
    return parse_any_type(parser, true);
}
