// Expressions with operators: a Pratt parser over one table of precedences (LANGUAGE.md, section
// 4).
#include "parser/state.h"

typedef enum Level {
    LEVEL_NONE, // not an operator
    LEVEL_OR,
    LEVEL_AND,
    LEVEL_NOT,
    LEVEL_COMPARE,
    LEVEL_RANGE,
    LEVEL_SUM,
    LEVEL_PRODUCT,
    LEVEL_CAST,
    LEVEL_UNARY,
    LEVEL_POWER,
} Level;

typedef enum Grouping { GROUP_LEFT, GROUP_RIGHT, GROUP_NEVER } Grouping;

typedef struct Infix {
    uint8_t level;    // Level
    uint8_t grouping; // Grouping
    uint8_t node;     // NodeKind
    uint8_t op;       // Operator
    bool starts_line; // at the start of a line it begins a statement instead
} Infix;

static const Infix infixes[TOKEN_KIND_COUNT] = {
    [TOKEN_OR_OR] = {LEVEL_OR, GROUP_LEFT, NODE_LOGICAL, OPERATOR_OR, false},
    [TOKEN_OR] = {LEVEL_OR, GROUP_LEFT, NODE_LOGICAL, OPERATOR_OR, false},
    [TOKEN_AND_AND] = {LEVEL_AND, GROUP_LEFT, NODE_LOGICAL, OPERATOR_AND, false},
    [TOKEN_AND] = {LEVEL_AND, GROUP_LEFT, NODE_LOGICAL, OPERATOR_AND, false},
    [TOKEN_EQUAL_EQUAL] = {LEVEL_COMPARE, GROUP_NEVER, NODE_BINARY, OPERATOR_EQ, false},
    [TOKEN_NOT_EQUAL] = {LEVEL_COMPARE, GROUP_NEVER, NODE_BINARY, OPERATOR_NE, false},
    [TOKEN_LESS] = {LEVEL_COMPARE, GROUP_NEVER, NODE_BINARY, OPERATOR_LT, false},
    [TOKEN_LESS_EQUAL] = {LEVEL_COMPARE, GROUP_NEVER, NODE_BINARY, OPERATOR_LE, false},
    [TOKEN_GREATER] = {LEVEL_COMPARE, GROUP_NEVER, NODE_BINARY, OPERATOR_GT, false},
    [TOKEN_GREATER_EQUAL] = {LEVEL_COMPARE, GROUP_NEVER, NODE_BINARY, OPERATOR_GE, false},
    [TOKEN_ALMOST_EQUAL] = {LEVEL_COMPARE, GROUP_NEVER, NODE_BINARY, OPERATOR_APPROX, false},
    [TOKEN_IN] = {LEVEL_COMPARE, GROUP_NEVER, NODE_BINARY, OPERATOR_IN, false},
    [TOKEN_NOT] = {LEVEL_COMPARE, GROUP_NEVER, NODE_BINARY, OPERATOR_NOT_IN, true},
    [TOKEN_DOT_DOT] = {LEVEL_RANGE, GROUP_NEVER, NODE_RANGE, OPERATOR_NONE, false},
    [TOKEN_DOT_DOT_EQUAL] = {LEVEL_RANGE, GROUP_NEVER, NODE_RANGE, OPERATOR_NONE, false},
    [TOKEN_PLUS] = {LEVEL_SUM, GROUP_LEFT, NODE_BINARY, OPERATOR_ADD, false},
    [TOKEN_MINUS] = {LEVEL_SUM, GROUP_LEFT, NODE_BINARY, OPERATOR_SUB, true},
    [TOKEN_STAR] = {LEVEL_PRODUCT, GROUP_LEFT, NODE_BINARY, OPERATOR_MUL, false},
    [TOKEN_CIRCLED_DOT] = {LEVEL_PRODUCT, GROUP_LEFT, NODE_BINARY, OPERATOR_MUL, false},
    [TOKEN_SLASH] = {LEVEL_PRODUCT, GROUP_LEFT, NODE_BINARY, OPERATOR_DIV, false},
    [TOKEN_PERCENT] = {LEVEL_PRODUCT, GROUP_LEFT, NODE_BINARY, OPERATOR_MOD, false},
    [TOKEN_AT] = {LEVEL_PRODUCT, GROUP_LEFT, NODE_BINARY, OPERATOR_MATMUL, false},
    [TOKEN_CIRCLED_TIMES] = {LEVEL_PRODUCT, GROUP_LEFT, NODE_BINARY, OPERATOR_OUTER, false},
    [TOKEN_AS] = {LEVEL_CAST, GROUP_LEFT, NODE_CAST, OPERATOR_NONE, false},
    [TOKEN_STAR_STAR] = {LEVEL_POWER, GROUP_RIGHT, NODE_BINARY, OPERATOR_POW, false},
};

// Factors side by side, which have no token between them.
static const Infix adjacent = {LEVEL_PRODUCT, GROUP_LEFT, NODE_BINARY, OPERATOR_MUL, false};

static Node *parse_level(Parser *parser, Level level);

static Node *parse_unary(Parser *parser, Operator op, Level operand_level) {
    const Token *token = parser_next(parser);
    if (!parser_enter(parser)) return NULL;
    Node *operand = parse_level(parser, operand_level);
    parser_leave(parser);
    if (!operand) return NULL;
    Node *node = node_new(parser, NODE_UNARY, token->span.begin);
    node->op = op;
    node->op_span = token->span;
    node->as.binary.left = operand;
    return node_adopt(parser, node, operand) ? node : NULL;
}

// x-- and nothing behind it.
static bool at_decrement(const Parser *parser) {
    const Token *token = parser_peek(parser), *after = parser_ahead(parser, 1);
    bool twice = token->kind == TOKEN_MINUS && !token->space_before && parser->at > 0 &&
                 parser->tokens.items[parser->at - 1].kind == TOKEN_MINUS;
    bool ends = after->newline_before || after->kind == TOKEN_END ||
                after->kind == TOKEN_SEMICOLON || after->kind == TOKEN_RIGHT_PAREN ||
                after->kind == TOKEN_RIGHT_BRACE;
    return twice && ends;
}

static Node *parse_operand(Parser *parser) {
    const Token *after = parser_ahead(parser, 1);
    if (at_decrement(parser))
        return parser_fail_expected_help(parser, "an expression", "x -= 1 takes one from x");
    switch (parser_peek(parser)->kind) {
    case TOKEN_NOT: return parse_unary(parser, OPERATOR_NOT, LEVEL_NOT);
    case TOKEN_BANG: return parse_unary(parser, OPERATOR_NOT, LEVEL_UNARY);
    case TOKEN_MINUS:
        // The most negative integer is one literal: its digits alone would not fit.
        if (after->kind == TOKEN_INT && after->too_large) return parse_number(parser, true);
        return parse_unary(parser, OPERATOR_NEG, LEVEL_UNARY);
    default: break;
    }
    SourcePos begin = parser_begin(parser);
    return parse_postfix(parser, parse_primary(parser), begin);
}

// `<-` is one token behind a complete Name, Name(...) or Name[...] at the start of a statement.
static bool at_rule_arrow(const Parser *parser, const Node *left) {
    const Token *first = &parser->tokens.items[parser->statement_start];
    const Token *next = parser_ahead(parser, 1);
    if (!parser_is(parser, TOKEN_LESS) || next->kind != TOKEN_MINUS || next->space_before)
        return false;
    if (first->kind != TOKEN_NAME || left->span.begin != first->span.begin) return false;
    if (left->kind == NODE_CALL)
        left = left->as.call.callee;
    else if (left->kind == NODE_INDEX)
        left = left->as.index.object;
    return left->kind == NODE_NAME;
}

// The operator at the cursor, NULL when the expression ends here or binds looser than `level`.
static const Infix *infix_at(const Parser *parser, const Node *left, Level level) {
    const Token *token = parser_peek(parser);
    const Infix *infix = parser_at_factor(parser) ? &adjacent : &infixes[token->kind];
    if (infix->level == LEVEL_NONE || infix->level < level) return NULL;
    if (infix->starts_line && parser_at_new_line(parser)) return NULL;
    if (infix->op == OPERATOR_NOT_IN && parser_ahead(parser, 1)->kind != TOKEN_IN) return NULL;
    return at_rule_arrow(parser, left) ? NULL : infix;
}

// The text of a node for a message; NULL when it is long.
static const char *short_text(Parser *parser, Span span) {
    size_t length;
    const char *text = source_text(span, &length);
    return length <= 30 ? parser_say(parser, "%.*s", (int)length, text) : NULL;
}

static Node *fail_chained(Parser *parser, const Node *left, const Infix *infix) {
    Span op_span = parser_next(parser)->span;
    if (infix->level == LEVEL_RANGE)
        return FAIL(parser, .span = op_span, .message = "ranges cannot be chained",
                    .help = "range(start, stop, step) takes a step");
    if (infix->op == OPERATOR_NOT_IN) op_span.end = parser_next(parser)->span.end;
    const Node *third = parse_level(parser, LEVEL_COMPARE + 1);
    if (!third) return NULL;
    const char *parts[] = {short_text(parser, left->as.binary.left->span),
                           short_text(parser, left->op_span),
                           short_text(parser, left->as.binary.right->span),
                           short_text(parser, op_span), short_text(parser, third->span)};
    const char *help = "join two comparisons with `and`";
    if (parts[0] && parts[1] && parts[2] && parts[3] && parts[4])
        help = parser_say(parser, "write `%s %s %s and %s %s %s`", parts[0], parts[1], parts[2],
                          parts[2], parts[3], parts[4]);
    return FAIL(parser, .span = op_span, .message = "comparisons cannot be chained", .help = help,
                .notes[0].text = "the first comparison is here", .notes[0].span = left->op_span);
}

static Node *parse_cast(Parser *parser, Node *left, SourcePos begin) {
    ASSERT(parser_is(parser, TOKEN_AS));
    parser_next(parser);
    TypeNode *type = parse_cast_type(parser);
    if (!type) return NULL;
    Node *node = node_new(parser, NODE_CAST, begin);
    node->as.cast.value = left;
    node->as.cast.type = type;
    return node_adopt(parser, node, left) ? node : NULL;
}

static Node *parse_range_end(Parser *parser, Node *left, SourcePos begin) {
    ASSERT(parser_is(parser, TOKEN_DOT_DOT) || parser_is(parser, TOKEN_DOT_DOT_EQUAL));
    const Token *token = parser_next(parser);
    if (parser_is(parser, TOKEN_RIGHT_BRACKET) || parser_is(parser, TOKEN_COMMA))
        return FAIL(parser, .span = token->span, .message = "this range has no end",
                    .help = "inside `[ ]` a slice to the end is written `a:`");
    Node *high = parse_level(parser, LEVEL_RANGE + 1);
    if (!high) return NULL;
    Node *node = node_new(parser, NODE_RANGE, begin);
    node->op_span = token->span;
    node->as.range.low = left;
    node->as.range.high = high;
    node->as.range.inclusive = token->kind == TOKEN_DOT_DOT_EQUAL;
    return node_adopt(parser, node, left) && node_adopt(parser, node, high) ? node : NULL;
}

static Node *parse_binary(Parser *parser, const Infix *infix, Node *left, SourcePos begin) {
    ASSERT(infix->level != LEVEL_NONE);
    SourcePos here = parser_begin(parser);
    Span op_span = infix == &adjacent ? (Span){here, here} : parser_next(parser)->span;
    if (infix->op == OPERATOR_NOT_IN) op_span.end = parser_next(parser)->span.end;
    Level right_level = infix->grouping == GROUP_RIGHT ? infix->level : infix->level + 1u;
    if (!parser_enter(parser)) return NULL;
    Node *right = parse_level(parser, right_level);
    parser_leave(parser);
    if (!right) return NULL;
    Node *node = node_new(parser, (NodeKind)infix->node, begin);
    node->op = (Operator)infix->op;
    node->op_span = op_span;
    node->as.binary.left = left;
    node->as.binary.right = right;
    return node_adopt(parser, node, left) && node_adopt(parser, node, right) ? node : NULL;
}

// Reads operators that bind at least as tightly as `level`.
static Node *parse_level(Parser *parser, Level level) {
    ASSERT(level > LEVEL_NONE);
    SourcePos begin = parser_begin(parser);
    Node *left = parse_operand(parser);
    Level ungrouped = LEVEL_NONE; // the level of the last operator when it cannot be chained
    for (const Infix *infix; left && (infix = infix_at(parser, left, level)) != NULL;) {
        if (infix->level == (uint8_t)ungrouped) return fail_chained(parser, left, infix);
        ungrouped = infix->grouping == GROUP_NEVER ? (Level)infix->level : LEVEL_NONE;
        if (infix->node == NODE_CAST)
            left = parse_cast(parser, left, begin);
        else if (infix->node == NODE_RANGE)
            left = parse_range_end(parser, left, begin);
        else
            left = parse_binary(parser, infix, left, begin);
    }
    return left;
}

Node *parse_expression(Parser *parser) {
    if (!parser_enter(parser)) return NULL;
    Node *node = parse_level(parser, LEVEL_OR);
    parser_leave(parser);
    return node;
}

// `Name { field: ...} {`: the brace of the body comes behind that of the literal.
static bool at_literal_in_head(const Parser *parser) {
    ASSERT(parser->at > 0);
    const Token *brace = parser_peek(parser);
    bool fields = brace->kind == TOKEN_LEFT_BRACE && token_is_word(parser_ahead(parser, 1)) &&
                  parser_ahead(parser, 2)->kind == TOKEN_COLON &&
                  brace->value.partner != TOKEN_NO_PARTNER;
    return fields && parser->at > 0 && parser->tokens.items[parser->at - 1].kind == TOKEN_NAME &&
           parser->tokens.items[brace->value.partner + 1].kind == TOKEN_LEFT_BRACE;
}

Node *parse_head(Parser *parser) {
    bool outer = parser->context.in_head;
    parser->context.in_head = true;
    Node *node = parse_expression(parser);
    parser->context.in_head = outer;
    if (!node || !at_literal_in_head(parser)) return node;
    return FAIL(parser, .span = {parser_end(parser), parser_begin(parser) + 1},
                .message = "this `{` begins the body, but reads as a struct literal's",
                .help = "in the head of if, while, for and match a struct literal stands in "
                        "parentheses: (Name { field: value })");
}
