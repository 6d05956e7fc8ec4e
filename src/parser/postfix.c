// What follows a primary expression: calls, indexes, fields and methods.
#include <stdlib.h>

#include "parser/state.h"

typedef struct ArgumentList {
    Argument *items;
    size_t count;
    Span span; // with the parentheses
} ArgumentList;

static bool parse_argument(Parser *parser, Argument *out, bool after_named) {
    const Token *token = parser_peek(parser), *next = parser_ahead(parser, 1);
    bool named = token_is_word(token) && (next->kind == TOKEN_COLON || next->kind == TOKEN_EQUAL);
    *out = (Argument){0};
    if (named) {
        out->name = parser_word(parser, parser_next(parser));
        parser_next(parser);
    }
    out->value = parse_expression(parser);
    if (!out->value) return false;
    if (named || !after_named) return true;
    FAIL(parser, .span = out->value->span,
         .message = "a positional argument cannot follow a named one",
         .help = "move it to the front, or name it");
    return false;
}

static bool parse_arguments(Parser *parser, ArgumentList *out) {
    SourcePos begin = parser_begin(parser);
    Context outer = parser_open_bracket(parser);
    *out = (ArgumentList){0};
    bool named = false;
    while (!parser_at_closer(parser)) {
        Argument argument;
        if (!parse_argument(parser, &argument, named)) return false;
        named = named || argument.name.text;
        LIST_PUSH(parser, out->items, out->count, argument);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
    }
    if (!parser_close_bracket(parser, &outer, "call")) return false;
    out->span = (Span){begin, parser_end(parser)};
    return true;
}

static bool adopt_arguments(Parser *parser, Node *node, const ArgumentList *arguments) {
    for (size_t i = 0; i < arguments->count; i++)
        if (!node_adopt(parser, node, arguments->items[i].value)) return false;
    return true;
}

Node *parse_call(Parser *parser, Node *callee, SourcePos begin) {
    ASSERT(parser_is(parser, TOKEN_LEFT_PAREN));
    ArgumentList arguments;
    if (!parse_arguments(parser, &arguments)) return NULL;
    Node *node = node_new(parser, NODE_CALL, begin);
    node->as.call.callee = callee;
    node->as.call.arguments = arguments.items;
    node->as.call.count = arguments.count;
    node->as.call.arguments_span = arguments.span;
    bool fits = node_adopt(parser, node, callee) && adopt_arguments(parser, node, &arguments);
    return fits ? node : NULL;
}

// An optional bound of a slice: absent before `:`, `,` and `]`.
static bool parse_bound(Parser *parser, Node **out) {
    *out = NULL;
    const Token *token = parser_peek(parser);
    if (token->kind == TOKEN_COLON || token->kind == TOKEN_COLON_COLON ||
        token->kind == TOKEN_COMMA || token->kind == TOKEN_RIGHT_BRACKET)
        return true;
    *out = parse_expression(parser);
    return *out != NULL;
}

static bool parse_subscript(Parser *parser, Subscript *out) {
    SourcePos begin = parser_begin(parser);
    *out = (Subscript){0};
    if (parser_accept(parser, TOKEN_ELLIPSIS)) {
        out->kind = SUBSCRIPT_ELLIPSIS;
    } else {
        out->looped = parser_accept(parser, TOKEN_STAR);
        if (!parse_bound(parser, &out->start)) return false;
        bool both = parser_accept(parser, TOKEN_COLON_COLON); // a::step
        if (both || parser_accept(parser, TOKEN_COLON)) {
            out->kind = SUBSCRIPT_SLICE;
            if (!both && !parse_bound(parser, &out->stop)) return false;
            bool stepped = both || parser_accept(parser, TOKEN_COLON);
            if (stepped && !parse_bound(parser, &out->step)) return false;
        } else if (!out->start) {
            return parser_fail_expected(parser, "an index") != NULL;
        } else if (out->start->kind == NODE_RANGE && !out->start->as.range.inclusive) {
            Node *range = out->start; // x[a..b] is the slice x[a:b]
            out->kind = SUBSCRIPT_SLICE;
            out->start = range->as.range.low;
            out->stop = range->as.range.high;
        } else {
            out->kind = SUBSCRIPT_INDEX;
            out->index = out->start;
            out->start = NULL;
            out->dotted = parser_at_dot(parser) && parser_accept(parser, TOKEN_DOT);
        }
    }
    out->span = (Span){begin, parser_end(parser)};
    return true;
}

static Node *parse_index(Parser *parser, Node *object, SourcePos begin) {
    ASSERT(parser_is(parser, TOKEN_LEFT_BRACKET));
    Subscript *subscripts = NULL;
    size_t count = 0;
    Context outer = parser_open_bracket(parser);
    parser->context.in_subscript = true;
    while (!parser_at_closer(parser)) {
        Subscript subscript;
        if (!parse_subscript(parser, &subscript)) return NULL;
        LIST_PUSH(parser, subscripts, count, subscript);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
    }
    if (count == 0 && parser_is(parser, TOKEN_RIGHT_BRACKET))
        return parser_fail_expected(parser, "an index");
    if (!parser_close_bracket(parser, &outer, "index")) return NULL;
    Node *node = node_new(parser, NODE_INDEX, begin);
    node->as.index.object = object;
    node->as.index.subscripts = subscripts;
    node->as.index.count = count;
    bool fits = node_adopt(parser, node, object);
    for (size_t i = 0; i < count && fits; i++) {
        const Subscript *subscript = &subscripts[i];
        fits = node_adopt(parser, node, subscript->index) &&
               node_adopt(parser, node, subscript->start) &&
               node_adopt(parser, node, subscript->stop) &&
               node_adopt(parser, node, subscript->step);
    }
    return fits ? node : NULL;
}

// x.name, x.3, x.name(...)
static Node *parse_member(Parser *parser, Node *object, SourcePos begin) {
    ASSERT(parser_is(parser, TOKEN_DOT));
    parser_next(parser);
    const Token *token = parser_peek(parser);
    bool number = token->kind == TOKEN_INT && !token->space_before;
    if (!number && !token_is_word(token)) {
        bool ends = token->kind == TOKEN_END || parser_at_new_line(parser);
        return parser_fail_expected_help(
            parser, "a name after `.`",
            ends ? "statements, facts and rules end with their line, without a full stop" : NULL);
    }
    Word name = parser_word(parser, parser_next(parser));
    if (parser_is(parser, TOKEN_LEFT_PAREN) && !parser_at_new_line(parser) && !number) {
        ArgumentList arguments;
        if (!parse_arguments(parser, &arguments)) return NULL;
        Node *node = node_new(parser, NODE_METHOD_CALL, begin);
        node->as.method.receiver = object;
        node->as.method.name = name;
        node->as.method.arguments = arguments.items;
        node->as.method.count = arguments.count;
        node->as.method.arguments_span = arguments.span;
        bool fits = node_adopt(parser, node, object) && adopt_arguments(parser, node, &arguments);
        return fits ? node : NULL;
    }
    if (object->kind == NODE_NAME && !number && parser_at_qualified(parser))
        return parse_qualified(parser, object, &name);
    Node *node = node_new(parser, NODE_FIELD, begin);
    node->as.field.object = object;
    node->as.field.name = name;
    return node_adopt(parser, node, object) ? node : NULL;
}

// `left` may stand in parentheses: its own span does not tell where it begins.
Node *parse_postfix(Parser *parser, Node *left, SourcePos begin) {
    while (left) {
        const Token *token = parser_peek(parser);
        if (token->kind == TOKEN_DOT && parser_at_dot(parser))
            break;
        else if (token->kind == TOKEN_DOT)
            left = parse_member(parser, left, begin);
        else if (parser_at_new_line(parser) || parser_at_group(parser, left))
            break;
        else if (token->kind == TOKEN_LEFT_PAREN)
            left = parse_call(parser, left, begin);
        else if (token->kind == TOKEN_LEFT_BRACKET)
            left = parse_index(parser, left, begin);
        else if (token->kind == TOKEN_QUESTION && left->kind == NODE_CALL)
            left = parse_query(parser, left, begin);
        else if (token->kind == TOKEN_QUESTION && left->kind == NODE_METHOD_CALL)
            left = parse_weighed_query(parser, left, begin);
        else if (token->kind == TOKEN_QUESTION && parser_at_ask(parser, left))
            left = parse_ask(parser, left, begin);
        else
            break;
    }
    return left;
}
