// Logic programs and tensor equations are not part of this version: where one clearly begins, that
// is said instead of a puzzling complaint about its syntax. Everywhere else the words are names.
#include "parser/state.h"

#define NOT_HERE "and this version of tl has no logic programs"

static bool is_logic_word(const Token *token) {
    static const char *const words[] = {"relation", "entity",  "embedding", "relation_embedding",
                                        "program",  "infer",   "query",     "rule",
                                        "concept",  "retract", "why",       "fact"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (parser_is_name(token, words[i])) return true;
    return false;
}

// At the start of a statement: `relation Parent(...)`, `embedding E {`, `infer { `, `why not ...`.
bool parser_reject_logic(Parser *parser) {
    const Token *token = parser_peek(parser), *next = parser_ahead(parser, 1);
    if (!is_logic_word(token) || next->newline_before) return false;
    bool block = next->kind == TOKEN_LEFT_BRACE && parser_is_name(token, "infer");
    bool why_not = next->kind == TOKEN_NOT && parser_is_name(token, "why");
    if (next->kind != TOKEN_NAME && !block && !why_not) return false;
    const char *word = parser_word(parser, token).text;
    FAIL(parser, .span = token->span,
         .message = parser_say(parser, "`%s` begins a logic declaration, " NOT_HERE, word));
    return true;
}

static bool is_projection(const Parser *parser, const Token *token) {
    bool word = parser_is_name(token, "max") || parser_is_name(token, "min") ||
                parser_is_name(token, "avg");
    return word && parser_ahead(parser, 1)->kind == TOKEN_EQUAL;
}

// Behind a statement that does not end: a rule's arrow, a query's question mark, a tensor equation.
bool parser_reject_logic_tail(Parser *parser, const Node *node) {
    const Token *token = parser_peek(parser);
    const Node *value = node->kind == NODE_EXPRESSION_STATEMENT ? node->as.expression.value : node;
    if (token->kind == TOKEN_LESS && value != node) {
        Span span = {token->span.begin, parser_ahead(parser, 1)->span.end};
        FAIL(parser, .span = span, .message = "`<-` begins a logic rule or equation, " NOT_HERE,
             .help = "to compare with a negative number, write `< -`");
        return true;
    }
    if (node->kind == NODE_LET) value = node->as.let.value;
    if (node->kind == NODE_ASSIGN) value = node->as.assign.value;
    if (token->kind == TOKEN_QUESTION && value && value->kind == NODE_CALL) {
        FAIL(parser, .span = token->span, .message = "`?` asks a logic query, " NOT_HERE);
        return true;
    }
    bool product = node->kind == NODE_ASSIGN && node->as.assign.target->kind == NODE_INDEX &&
                   value->kind == NODE_INDEX && token->kind == TOKEN_NAME;
    bool projection = value && value->kind == NODE_INDEX && is_projection(parser, token);
    if (!product && !projection) return false;
    FAIL(parser, .span = {node->span.begin, token->span.end},
         .message = "this is a tensor equation, " NOT_HERE,
         .help = "einsum(\"ij,jk->ik\", a, b) multiplies and sums over shared indexes");
    return true;
}
