// Control flow: if, try, the loops, with; and learn, whose items are settings and statements.
#include <stdlib.h>

#include "parser/state.h"

static Node *parse_condition(Parser *parser, const char *after) {
    if (parser_is(parser, TOKEN_LEFT_BRACE))
        return parser_fail_expected(parser, parser_say(parser, "a condition after `%s`", after));
    Node *condition = parse_head(parser);
    if (condition && parser_is(parser, TOKEN_EQUAL))
        return FAIL(parser, .span = parser_peek(parser)->span,
                    .message = "expected `{` to begin the body, found `=`",
                    .help = "`==` compares; an assignment has no value");
    return condition;
}

// The chain of else-ifs is read in a loop and put together from its end.
Node *parse_if(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_IF));
    NodeList chain = {0};
    Node *last = NULL;
    for (;;) {
        SourcePos begin = parser_skip(parser);
        Node *condition = parse_condition(parser, "if");
        Node *body = condition ? parse_block(parser, "block") : NULL;
        if (!body) return NULL;
        Node *node = node_new(parser, NODE_IF, begin);
        node->as.branch.condition = condition;
        node->as.branch.then_branch = body;
        if (!node_adopt(parser, node, condition) || !node_adopt(parser, node, body)) return NULL;
        LIST_PUSH(parser, chain.items, chain.count, node);
        if (!parser_accept(parser, TOKEN_ELSE)) break;
        if (parser_is(parser, TOKEN_IF)) continue;
        if (!(last = parse_block(parser, "block"))) return NULL;
        break;
    }
    for (size_t i = chain.count; i-- > 0;) {
        Node *node = chain.items[i];
        node->as.branch.else_branch = last;
        node->span.end = parser_end(parser);
        if (!node_adopt(parser, node, last)) return NULL;
        last = node;
    }
    return last;
}

Node *parse_try(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_TRY));
    SourcePos begin = parser_skip(parser);
    Node *body = parse_block(parser, "try block");
    if (!body) return NULL;
    if (!parser_accept(parser, TOKEN_CATCH))
        return parser_fail_expected_help(parser, "`catch` after the try block",
                                         "write try { ... } catch e { ... }");
    Word name = {0};
    bool named = !parser_is(parser, TOKEN_LEFT_BRACE);
    if (parser_is(parser, TOKEN_LEFT_PAREN))
        return parser_fail_expected_help(parser, "a name for the error",
                                         "write try { ... } catch e { ... }");
    if (named && !parser_take_name(parser, "a name for the error", &name)) return NULL;
    Node *handler = parse_block(parser, "catch block");
    if (!handler) return NULL;
    Node *node = node_new(parser, NODE_TRY, begin);
    node->as.attempt.body = body;
    node->as.attempt.name = name;
    node->as.attempt.handler = handler;
    return node_adopt(parser, node, body) && node_adopt(parser, node, handler) ? node : NULL;
}

static Node *finish_loop(Parser *parser, NodeKind kind, SourcePos begin, Node *condition) {
    Node *body = parse_block(parser, "loop");
    if (!body) return NULL;
    Node *node = node_new(parser, kind, begin);
    node->as.loop.condition = condition;
    node->as.loop.body = body;
    return node_adopt(parser, node, condition) && node_adopt(parser, node, body) ? node : NULL;
}

Node *parse_while(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_WHILE));
    SourcePos begin = parser_skip(parser);
    Node *condition = parse_condition(parser, "while");
    return condition ? finish_loop(parser, NODE_WHILE, begin, condition) : NULL;
}

Node *parse_loop(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_LOOP));
    SourcePos begin = parser_skip(parser);
    return finish_loop(parser, NODE_LOOP, begin, NULL);
}

Pattern *parse_loop_names(Parser *parser, Pattern **index) {
    *index = NULL;
    Pattern *pattern = parse_binding_pattern(parser);
    if (!pattern) return NULL;
    if (parser_accept(parser, TOKEN_COMMA)) {
        if (pattern->kind == PATTERN_TUPLE)
            return FAIL(parser, .span = pattern->span,
                        .message = "the first of two loop variables is a single name",
                        .help = "for i, (a, b) in pairs { ... }");
        *index = pattern;
        if (!(pattern = parse_binding_pattern(parser))) return NULL;
    }
    if (!parser_accept(parser, TOKEN_IN)) {
        const char *help =
            parser_is(parser, TOKEN_EQUAL) ? "a loop that counts is written for i in 0..n { ... }"
            : parser_is(parser, TOKEN_COMMA)
                ? "a tuple of more than two is taken apart by for (a, b, c) in items { ... }"
                : NULL;
        return parser_fail_expected_help(parser, "`in` and what to go through", help);
    }
    return pattern;
}

// for (let i = 0; ...), for (int i = 0; ...), for (x in items)
static bool at_loop_in_parentheses(const Parser *parser) {
    TokenKind first = (TokenKind)parser_ahead(parser, 1)->kind;
    TokenKind second = (TokenKind)parser_ahead(parser, 2)->kind;
    if (!parser_is(parser, TOKEN_LEFT_PAREN)) return false;
    return first == TOKEN_LET ||
           (first == TOKEN_NAME &&
            (second == TOKEN_NAME || second == TOKEN_IN || second == TOKEN_EQUAL));
}

// for x in it { ... }, for i, x in it { ... }, for (a, b) in it { ... }
Node *parse_for(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_FOR));
    SourcePos begin = parser_skip(parser);
    if (at_loop_in_parentheses(parser))
        return parser_fail_expected_help(
            parser, "the loop's variable",
            parser_ahead(parser, 2)->kind == TOKEN_IN ||
                    parser_is_name(parser_ahead(parser, 2), "of")
                ? "a loop is written for x in items { ... }"
                : "a loop that counts is written for i in 0..n { ... }");
    Pattern *index, *pattern = parse_loop_names(parser, &index);
    if (!pattern) return NULL;
    Node *iterable = parse_head(parser);
    Node *body = iterable ? parse_block(parser, "loop") : NULL;
    if (!body) return NULL;
    Node *node = node_new(parser, NODE_FOR, begin);
    node->as.for_loop.index = index;
    node->as.for_loop.pattern = pattern;
    node->as.for_loop.iterable = iterable;
    node->as.for_loop.body = body;
    return node_adopt(parser, node, iterable) && node_adopt(parser, node, body) ? node : NULL;
}

// with NAME { }, with NAME(argument) { }, with NAME name { }
Node *parse_with(Parser *parser) {
    SourcePos begin = parser_skip(parser);
    Word word;
    if (!parser_take_name(parser, "what to run the block with", &word)) return NULL;
    Node *argument = NULL;
    if (parser_is(parser, TOKEN_LEFT_PAREN)) {
        Context outer = parser_open_bracket(parser);
        if (!parser_at_closer(parser) && !(argument = parse_expression(parser))) return NULL;
        if (!parser_close_bracket(parser, &outer, "argument")) return NULL;
    } else if (parser_is(parser, TOKEN_NAME)) {
        Word name = parser_word(parser, parser_next(parser));
        argument = node_new(parser, NODE_NAME, name.span.begin);
        argument->as.name.word = name;
    }
    Node *body = parse_block(parser, "block");
    if (!body) return NULL;
    Node *node = node_new(parser, NODE_WITH, begin);
    node->as.with.word = word;
    node->as.with.argument = argument;
    node->as.with.body = body;
    return node_adopt(parser, node, argument) && node_adopt(parser, node, body) ? node : NULL;
}

static bool parse_setting(Parser *parser, Setting *out) {
    ASSERT(token_is_word(parser_peek(parser)) && parser_ahead(parser, 1)->kind == TOKEN_COLON);
    *out = (Setting){.name = parser_word(parser, parser_next(parser))};
    parser_next(parser);
    if (!(out->value = parse_expression(parser))) return false;
    if (parser_is_name(parser_peek(parser), "of") && !parser_at_new_line(parser)) {
        parser_next(parser);
        if (!(out->of = parse_expression(parser))) return false;
    }
    return true;
}

// Settings (`epochs: 200`, between commas or newlines) and statements, in any order.
static bool parse_learn_items(Parser *parser, Node *node, NodeList *statements) {
    while (!parser_at_closer(parser)) {
        if (parser_accept(parser, TOKEN_SEMICOLON)) continue;
        bool setting =
            token_is_word(parser_peek(parser)) && parser_ahead(parser, 1)->kind == TOKEN_COLON;
        if (!setting) {
            Node *statement = parse_statement(parser);
            if (statement) LIST_PUSH(parser, statements->items, statements->count, statement);
            continue;
        }
        Setting item;
        if (!parse_setting(parser, &item)) return false;
        if (!node_adopt(parser, node, item.value) || !node_adopt(parser, node, item.of))
            return false;
        LIST_PUSH(parser, node->as.learn.settings, node->as.learn.count, item);
        if (parser_accept(parser, TOKEN_COMMA) || parser_at_statement_end(parser)) continue;
        parser_fail_expected(parser, "`,` or a newline after this setting");
        return false;
    }
    return true;
}

Node *parse_learn(Parser *parser) {
    ASSERT(parser_is_name(parser_peek(parser), "learn"));
    SourcePos begin = parser_skip(parser);
    if (!parser_enter(parser)) return NULL;
    SourcePos body_begin = parser_begin(parser);
    Node *node = node_new(parser, NODE_LEARN, begin);
    NodeList statements = {0};
    Context outer = parser_open_bracket(parser);
    parser->context.in_block = true;
    if (!parse_learn_items(parser, node, &statements)) return NULL;
    if (!parser_close_bracket(parser, &outer, "learn block")) return NULL;
    parser_leave(parser);
    Node *body = node->as.learn.body = node_new(parser, NODE_BLOCK, body_begin);
    body->as.block.statements = statements;
    for (size_t i = 0; i < statements.count; i++)
        if (!node_adopt(parser, body, statements.items[i])) return NULL;
    node->span.end = parser_end(parser);
    return node_adopt(parser, node, body) ? node : NULL;
}
