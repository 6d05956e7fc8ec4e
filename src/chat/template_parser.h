// The parser of templates: what its tags (template_parse.c) and its expressions
// (template_expression.c, template_token.c) share.
#ifndef CHAT_TEMPLATE_PARSER_H
#define CHAT_TEMPLATE_PARSER_H

#include "chat/template_tree.h"

enum { TEMPLATE_WORD_MAX = 64, TEMPLATE_NESTING_MAX = 100 };

typedef enum TemplateTokenKind {
    TEMPLATE_TOKEN_WORD,
    TEMPLATE_TOKEN_STRING,
    TEMPLATE_TOKEN_NUMBER,
    TEMPLATE_TOKEN_SIGN,
    TEMPLATE_TOKEN_CLOSE
} TemplateTokenKind;

typedef struct TemplateToken {
    TemplateTokenKind kind;
    const char *at; // in the template
    size_t length;
} TemplateToken;

typedef struct TemplateParser {
    const char *at, *end;
    Template *template;
    int line, depth;
    int braces;          // open ones of dictionaries: a tag cannot close inside
    int loops;           // around this place, within a macro
    TemplateToken token; // the next one of an expression
} TemplateParser;

Status template_wrong(const TemplateParser *parser, const char *what);
Status template_unexpected(const TemplateParser *parser, const char *wanted);
// The next token of a tag, into parser->token.
Status template_advance(TemplateParser *parser) MUST_USE;
bool template_token_is(const TemplateParser *parser, const char *word);
// The same, and goes on to the next token when it is.
Status template_take(TemplateParser *parser, const char *word, bool *taken) MUST_USE;
Status template_expect(TemplateParser *parser, const char *sign, const char *wanted) MUST_USE;
Status template_take_word(TemplateParser *parser, const char *wanted, const char **out) MUST_USE;
// Adds the text that a string's token stands for.
void template_unescape(const TemplateToken *token, Text *out);

Status template_expression(TemplateParser *parser, TemplateExpr **out) MUST_USE;
// The same, or several with commas between them: a tuple.
Status template_tuple(TemplateParser *parser, TemplateExpr **out) MUST_USE;
// One without `x if y else z` around it: what stands before the `if` of a for.
Status template_simple_expression(TemplateParser *parser, TemplateExpr **out) MUST_USE;
// Filters that are applied to `*out`, from `|` on; the same where the first has no `|` before it.
Status template_filters(TemplateParser *parser, TemplateExpr **out) MUST_USE;
Status template_filter_names(TemplateParser *parser, TemplateExpr **out) MUST_USE;

#endif
