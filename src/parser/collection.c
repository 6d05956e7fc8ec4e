// Lists, comprehensions, tuples, parentheses and dictionaries.
#include <stdlib.h>

#include "parser/state.h"

static bool adopt_all(Parser *parser, Node *node, NodeList list) {
    for (size_t i = 0; i < list.count; i++)
        if (!node_adopt(parser, node, list.items[i])) return false;
    return true;
}

// Behind `[element`: for x in xs if condition ]
static Node *parse_comprehension(Parser *parser, Node *element, const Context *outer,
                                 SourcePos begin) {
    ASSERT(parser_is(parser, TOKEN_FOR));
    parser_next(parser);
    Pattern *index, *pattern = parse_loop_names(parser, &index);
    if (!pattern) return NULL;
    Node *iterable = parse_expression(parser), *condition = NULL;
    if (!iterable) return NULL;
    if (parser_accept(parser, TOKEN_IF)) {
        condition = parse_expression(parser);
        if (!condition) return NULL;
    }
    if (parser_is(parser, TOKEN_FOR))
        return FAIL(parser, .span = parser_peek(parser)->span,
                    .message = "a comprehension has one `for`",
                    .help = "put what it goes through together in loops, with push");
    if (!parser_close_bracket(parser, outer, "list")) return NULL;
    Node *node = node_new(parser, NODE_COMPREHENSION, begin);
    node->as.for_loop.index = index;
    node->as.for_loop.pattern = pattern;
    node->as.for_loop.iterable = iterable;
    node->as.for_loop.condition = condition;
    node->as.for_loop.body = element;
    bool fits = node_adopt(parser, node, element) && node_adopt(parser, node, iterable) &&
                node_adopt(parser, node, condition);
    return fits ? node : NULL;
}

Node *parse_list(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_LEFT_BRACKET));
    SourcePos begin = parser_begin(parser);
    NodeList list = {0};
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        Node *element = parse_expression(parser);
        if (!element) return NULL;
        if (list.count == 0 && parser_is(parser, TOKEN_FOR))
            return parse_comprehension(parser, element, &outer, begin);
        LIST_PUSH(parser, list.items, list.count, element);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
    }
    if (!parser_close_bracket(parser, &outer, "list")) return NULL;
    Node *node = node_new(parser, NODE_LIST, begin);
    node->as.list = list;
    return adopt_all(parser, node, list) ? node : NULL;
}

// (a) is a itself; (), (a,) and (a, b) are tuples.
Node *parse_paren(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_LEFT_PAREN));
    SourcePos begin = parser_begin(parser);
    NodeList list = {0};
    bool comma = false;
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        Node *element = parse_expression(parser);
        if (!element) return NULL;
        LIST_PUSH(parser, list.items, list.count, element);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
        comma = true;
    }
    if (!parser_close_bracket(parser, &outer, comma ? "tuple" : "parenthesis")) return NULL;
    if (list.count == 1 && !comma) return list.items[0];
    Node *node = node_new(parser, NODE_TUPLE, begin);
    node->as.list = list;
    return adopt_all(parser, node, list) ? node : NULL;
}

// A dictionary is empty, or its first key is followed by a colon. Brackets inside the key are
// stepped over, so every token is looked at once for the brace directly around it.
bool parser_at_dictionary(const Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_LEFT_BRACE));
    const Token *first = parser_ahead(parser, 1);
    if (first->kind == TOKEN_RIGHT_BRACE) return true;
    if (token_is_word(first) && parser_ahead(parser, 2)->kind == TOKEN_COLON) return true;
    if (first->kind == TOKEN_NAME && parser_ahead(parser, 2)->kind == TOKEN_NAME) return false;
    bool statement = token_is_word(first) && first->kind != TOKEN_NAME &&
                     first->kind != TOKEN_TRUE && first->kind != TOKEN_FALSE;
    if (statement) return false;
    const Token *items = parser->tokens.items;
    for (size_t at = parser->at + 1; items[at].kind != TOKEN_END; at++) {
        TokenKind kind = (TokenKind)items[at].kind;
        if (kind == TOKEN_COLON) return true;
        if (items[at].newline_before && at > parser->at + 1) return false;
        if (kind == TOKEN_LEFT_PAREN || kind == TOKEN_LEFT_BRACKET || kind == TOKEN_LEFT_BRACE) {
            if (items[at].value.partner == TOKEN_NO_PARTNER) return false;
            at = items[at].value.partner;
        } else if (kind == TOKEN_RIGHT_BRACE || kind == TOKEN_SEMICOLON || kind == TOKEN_COMMA ||
                   kind == TOKEN_EQUAL || kind == TOKEN_RIGHT_PAREN ||
                   kind == TOKEN_RIGHT_BRACKET || kind == TOKEN_LET) {
            return false;
        }
    }
    return false;
}

// A word before the colon is a key spelt so, as in arguments and struct literals; any other key is
// an expression: {(k): v} takes the value of k.
static Node *parse_key(Parser *parser) {
    const Token *token = parser_peek(parser);
    bool is_bool = token->kind == TOKEN_TRUE || token->kind == TOKEN_FALSE;
    if (!token_is_word(token) || is_bool || parser_ahead(parser, 1)->kind != TOKEN_COLON)
        return parse_expression(parser);
    Word word = parser_word(parser, parser_next(parser));
    Node *node = node_new(parser, NODE_STRING, token->span.begin);
    node->as.string.bytes = word.text;
    node->as.string.length = word.length;
    return node;
}

Node *parse_dictionary(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_LEFT_BRACE));
    SourcePos begin = parser_begin(parser);
    NodeList keys = {0}, values = {0};
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        Node *key = parse_key(parser);
        if (!key) return NULL;
        if (!parser_accept(parser, TOKEN_COLON))
            return parser_fail_expected(parser, "`:` and the value for this key");
        Node *value = parse_expression(parser);
        if (!value) return NULL;
        if (parser_is(parser, TOKEN_FOR))
            return FAIL(parser, .span = parser_peek(parser)->span,
                        .message = "there are comprehensions of lists only",
                        .help = "fill the dictionary in a loop: for k, v in ... { d[k] = v }");
        LIST_PUSH(parser, keys.items, keys.count, key);
        LIST_PUSH(parser, values.items, values.count, value);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
    }
    if (!parser_close_bracket(parser, &outer, "dictionary")) return NULL;
    Node *node = node_new(parser, NODE_DICT, begin);
    node->as.dict.keys = keys;
    node->as.dict.values = values;
    return adopt_all(parser, node, keys) && adopt_all(parser, node, values) ? node : NULL;
}
