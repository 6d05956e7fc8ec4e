// The parser of templates: what its tags (template_parse.c) and its expressions
// (template_expression.c) share.
#ifndef CHAT_TEMPLATE_PARSER_H
#define CHAT_TEMPLATE_PARSER_H

#include "chat/template_tree.h"

enum { TEMPLATE_WORD_MAX = 64, TEMPLATE_NESTING_MAX = 100 };

typedef enum TokenKind {
    TOKEN_WORD,
    TOKEN_STRING,
    TOKEN_NUMBER,
    TOKEN_SIGN,
    TOKEN_CLOSE
} TokenKind;

typedef struct Token {
    TokenKind kind;
    const char *at; // in the template
    size_t length;
} Token;

typedef struct Parser {
    const char *at, *end;
    Template *template;
    int line, depth;
    int braces;  // open ones of dictionaries: a tag cannot close inside
    Token token; // the next one of an expression
} Parser;

Status template_wrong(const Parser *parser, const char *what);
Status template_unexpected(const Parser *parser, const char *wanted);
// The next token of a tag, into parser->token.
Status template_advance(Parser *parser) MUST_USE;
bool template_token_is(const Parser *parser, const char *word);
Status template_expect(Parser *parser, const char *sign, const char *wanted) MUST_USE;
Status template_take_word(Parser *parser, const char *wanted, const char **out) MUST_USE;
Status template_expression(Parser *parser, Expr **out) MUST_USE;
// One without `x if y else z` around it: what stands before the `if` of a for.
Status template_simple_expression(Parser *parser, Expr **out) MUST_USE;

#endif
