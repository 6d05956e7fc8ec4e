// Expressions of templates: tokens, and parsing by rising precedence.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "chat/template_parser.h"

Status template_wrong(const Parser *parser, const char *what) {
    return fail(STATUS_FORMAT, "line %d of the template: %s", parser->line, what);
}

// --- tokens of expressions

bool template_token_is(const Parser *parser, const char *word) {
    const Token *token = &parser->token;
    return (token->kind == TOKEN_WORD || token->kind == TOKEN_SIGN) &&
           token->length == strlen(word) && memcmp(token->at, word, token->length) == 0;
}

// What closes a tag: }} or %}, perhaps after a - or +.
static size_t close_length(const char *at, const char *end) {
    size_t sign = at < end && (*at == '-' || *at == '+') ? 1 : 0;
    bool closes = end - at >= 2 + (ptrdiff_t)sign && at[sign + 1] == '}' &&
                  (at[sign] == '}' || at[sign] == '%');
    return closes ? sign + 2 : 0;
}

static size_t sign_length(const char *at, const char *end) {
    static const char *const pairs[] = {"==", "!=", "<=", ">=", "//", "**"};
    for (size_t i = 0; end - at >= 2 && i < sizeof pairs / sizeof *pairs; i++)
        if (memcmp(at, pairs[i], 2) == 0) return 2;
    return 1;
}

static size_t run_length(const char *at, const char *end, bool number) {
    size_t length = 0;
    while (at + length < end && (isalnum((unsigned char)at[length]) || at[length] == '_' ||
                                 (number && at[length] == '.' && at + length + 1 < end &&
                                  isdigit((unsigned char)at[length + 1]))))
        length++;
    return length;
}

static Status string_length_at(const Parser *parser, size_t *out) {
    const char *at = parser->at + 1;
    while (at < parser->end && *at != *parser->at)
        at += *at == '\\' && at + 1 < parser->end ? 2 : 1;
    if (at >= parser->end) return template_wrong(parser, "a string does not end");
    *out = (size_t)(at - parser->at) + 1;
    return STATUS_OK;
}

Status template_advance(Parser *parser) {
    while (parser->at < parser->end && isspace((unsigned char)*parser->at))
        parser->line += *parser->at++ == '\n';
    if (parser->at == parser->end) return template_wrong(parser, "the text ends inside a tag");
    Token *token = &parser->token;
    const char *at = parser->at;
    *token = (Token){.at = at};
    token->length = parser->braces == 0 ? close_length(at, parser->end) : 0;
    if (token->length > 0) {
        token->kind = TOKEN_CLOSE;
    } else if (*at == '"' || *at == '\'') {
        token->kind = TOKEN_STRING;
        TRY(string_length_at(parser, &token->length));
        for (size_t i = 0; i < token->length; i++) parser->line += at[i] == '\n';
    } else if (isalnum((unsigned char)*at) || *at == '_') {
        bool number = isdigit((unsigned char)*at);
        token->kind = number ? TOKEN_NUMBER : TOKEN_WORD;
        token->length = run_length(at, parser->end, number);
    } else {
        token->kind = TOKEN_SIGN;
        token->length = sign_length(at, parser->end);
        parser->braces += (*at == '{') - (*at == '}');
    }
    parser->at += token->length;
    return STATUS_OK;
}

Status template_unexpected(const Parser *parser, const char *wanted) {
    const Token *token = &parser->token;
    return fail(STATUS_FORMAT, "line %d of the template: expected %s, found `%.*s`", parser->line,
                wanted, token->length < 40 ? (int)token->length : 40, token->at);
}

Status template_expect(Parser *parser, const char *sign, const char *wanted) {
    return template_token_is(parser, sign) ? template_advance(parser)
                                           : template_unexpected(parser, wanted);
}

Status template_take_word(Parser *parser, const char *wanted, const char **out) {
    if (parser->token.kind != TOKEN_WORD || parser->token.length > TEMPLATE_WORD_MAX)
        return template_unexpected(parser, wanted);
    *out = arena_copy_string(&parser->template->arena, parser->token.at, parser->token.length);
    return template_advance(parser);
}

// --- expressions

static Expr *new_expr(Parser *parser, ExprKind kind, Expr *first) {
    Expr *expr = arena_allocate(&parser->template->arena, sizeof *expr);
    expr->kind = kind;
    expr->line = parser->line;
    expr->parts = expr->last = first;
    return expr;
}

static void add_part(Expr *expr, Expr *part) {
    if (expr->last)
        expr->last->next = part;
    else
        expr->parts = part;
    expr->last = part;
}

static void set_text(Parser *parser, Expr *expr, const char *bytes, size_t length) {
    expr->text = arena_copy_string(&parser->template->arena, bytes, length);
    expr->length = length;
}

static char unescaped(char letter) {
    switch (letter) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    default: return letter;
    }
}

static Expr *string_expr(Parser *parser) {
    Text text = {0};
    const Token *token = &parser->token;
    for (size_t i = 1; i + 1 < token->length; i++) {
        if (token->at[i] == '\\' && i + 2 < token->length)
            text_append_char(&text, unescaped(token->at[++i]));
        else
            text_append_char(&text, token->at[i]);
    }
    Expr *expr = new_expr(parser, EXPR_STRING, NULL);
    set_text(parser, expr, text_get(&text), text.length);
    text_free(&text);
    return expr;
}

static Status number_expr(Parser *parser, Expr **out) {
    char digits[TEMPLATE_WORD_MAX];
    if (parser->token.length >= sizeof digits)
        return template_wrong(parser, "a number is too long");
    memcpy(digits, parser->token.at, parser->token.length);
    digits[parser->token.length] = '\0';
    bool whole = !strchr(digits, '.');
    char *end;
    *out = new_expr(parser, whole ? EXPR_INT : EXPR_FLOAT, NULL);
    if (whole)
        (*out)->integer = strtoll(digits, &end, 10);
    else
        (*out)->number = strtod(digits, &end);
    return *end ? template_unexpected(parser, "a number") : STATUS_OK;
}

static Expr *word_expr(Parser *parser) {
    static const struct {
        const char *word;
        ExprKind kind;
        int64_t integer;
    } constants[] = {{"true", EXPR_BOOL, 1},  {"True", EXPR_BOOL, 1}, {"false", EXPR_BOOL, 0},
                     {"False", EXPR_BOOL, 0}, {"none", EXPR_NONE, 0}, {"None", EXPR_NONE, 0}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (template_token_is(parser, constants[i].word)) {
            Expr *expr = new_expr(parser, constants[i].kind, NULL);
            expr->integer = constants[i].integer;
            return expr;
        }
    Expr *expr = new_expr(parser, EXPR_NAME, NULL);
    set_text(parser, expr, parser->token.at, parser->token.length);
    return expr;
}

// Elements, or keys and values, up to a closing sign.
static Status parse_parts(Parser *parser, Expr *whole, const char *close, bool pairs) {
    TRY(template_advance(parser));
    while (!template_token_is(parser, close)) {
        Expr *part;
        TRY(template_expression(parser, &part));
        add_part(whole, part);
        if (pairs) {
            TRY(template_expect(parser, ":", "`:`"));
            TRY(template_expression(parser, &part));
            add_part(whole, part);
        }
        if (!template_token_is(parser, close)) TRY(template_expect(parser, ",", "`,`"));
    }
    return template_advance(parser);
}

static Status parse_parenthesis(Parser *parser, Expr **out) {
    TRY(template_advance(parser));
    TRY(template_expression(parser, out));
    return template_expect(parser, ")", "`)`");
}

static Status parse_primary(Parser *parser, Expr **out) {
    if (template_token_is(parser, "(")) return parse_parenthesis(parser, out);
    bool list = template_token_is(parser, "[");
    if (list || template_token_is(parser, "{")) {
        *out = new_expr(parser, list ? EXPR_LIST : EXPR_DICT, NULL);
        return parse_parts(parser, *out, list ? "]" : "}", !list);
    }
    if (parser->token.kind == TOKEN_STRING)
        *out = string_expr(parser);
    else if (parser->token.kind == TOKEN_NUMBER)
        TRY(number_expr(parser, out));
    else if (parser->token.kind == TOKEN_WORD)
        *out = word_expr(parser);
    else
        return template_unexpected(parser, "an expression");
    return template_advance(parser);
}

// name=value or value.
static Status parse_argument(Parser *parser, Expr *call) {
    Expr *argument;
    const char *keyword = NULL;
    TRY(template_expression(parser, &argument));
    if (argument->kind == EXPR_NAME && template_token_is(parser, "=")) {
        keyword = argument->text;
        TRY(template_advance(parser));
        TRY(template_expression(parser, &argument));
    }
    argument->keyword = keyword;
    add_part(call, argument);
    return STATUS_OK;
}

static Status parse_arguments(Parser *parser, Expr *call) {
    TRY(template_advance(parser));
    while (!template_token_is(parser, ")")) {
        TRY(parse_argument(parser, call));
        if (!template_token_is(parser, ")")) TRY(template_expect(parser, ",", "`,`"));
    }
    return template_advance(parser);
}

// x[i], x[a:b]: the part before a colon or a bracket may be left out of a slice.
static Status parse_bound(Parser *parser, Expr **out) {
    if (!template_token_is(parser, ":") && !template_token_is(parser, "]"))
        return template_expression(parser, out);
    *out = new_expr(parser, EXPR_NONE, NULL);
    return STATUS_OK;
}

static Status parse_index(Parser *parser, Expr **out) {
    Expr *expr = new_expr(parser, EXPR_INDEX, *out), *part;
    TRY(template_advance(parser));
    TRY(parse_bound(parser, &part));
    add_part(expr, part);
    if (template_token_is(parser, ":")) expr->kind = EXPR_SLICE;
    for (int i = 0; expr->kind == EXPR_SLICE && i < 2; i++) {
        if (template_token_is(parser, ":")) TRY(template_advance(parser));
        TRY(parse_bound(parser, &part));
        add_part(expr, part);
    }
    *out = expr;
    return template_expect(parser, "]", "`]`");
}

static Status parse_field(Parser *parser, Expr **out) {
    Expr *expr = new_expr(parser, EXPR_FIELD, *out);
    TRY(template_advance(parser));
    TRY(template_take_word(parser, "a name", &expr->text));
    expr->length = strlen(expr->text);
    *out = expr;
    return STATUS_OK;
}

static Status parse_filter(Parser *parser, Expr **out) {
    Expr *expr = new_expr(parser, EXPR_FILTER, *out);
    TRY(template_advance(parser));
    TRY(template_take_word(parser, "the name of a filter", &expr->text));
    *out = expr;
    return template_token_is(parser, "(") ? parse_arguments(parser, expr) : STATUS_OK;
}

static Status parse_test(Parser *parser, Expr **out) {
    Expr *expr = new_expr(parser, EXPR_TEST, *out);
    TRY(template_advance(parser));
    bool negated = template_token_is(parser, "not");
    if (negated) TRY(template_advance(parser));
    TRY(template_take_word(parser, "the name of a test", &expr->text));
    if (template_token_is(parser, "(")) TRY(parse_arguments(parser, expr));
    *out = negated ? new_expr(parser, EXPR_NOT, expr) : expr;
    return STATUS_OK;
}

static Status parse_postfix(Parser *parser, Expr **out) {
    TRY(parse_primary(parser, out));
    for (;;) {
        if (template_token_is(parser, ".")) {
            TRY(parse_field(parser, out));
        } else if (template_token_is(parser, "[")) {
            TRY(parse_index(parser, out));
        } else if (template_token_is(parser, "(")) {
            *out = new_expr(parser, EXPR_CALL, *out);
            TRY(parse_arguments(parser, *out));
        } else if (template_token_is(parser, "|")) {
            TRY(parse_filter(parser, out));
        } else if (template_token_is(parser, "is")) {
            TRY(parse_test(parser, out));
        } else {
            return STATUS_OK;
        }
    }
}

static Status parse_unary(Parser *parser, Expr **out) {
    if (!template_token_is(parser, "-")) return parse_postfix(parser, out);
    TRY(template_advance(parser));
    TRY(parse_postfix(parser, out));
    *out = new_expr(parser, EXPR_MINUS, *out);
    return STATUS_OK;
}

// Operators that stand between their operands, loosest first; `not in` is one of them.
static const char *const levels[][8] = {
    {"==", "!=", "<", "<=", ">", ">=", "in", "not"}, {"+", "-"}, {"~"}, {"*", "/", "//", "%"}};
enum { LEVEL_COUNT = sizeof levels / sizeof *levels, LEVEL_WIDTH = 8 };

static const char *operator_of(const Parser *parser, int level) {
    for (int i = 0; i < LEVEL_WIDTH && levels[level][i]; i++)
        if (template_token_is(parser, levels[level][i])) return levels[level][i];
    return NULL;
}

static Status parse_level(Parser *parser, int level, Expr **out) {
    if (level == LEVEL_COUNT) return parse_unary(parser, out);
    TRY(parse_level(parser, level + 1, out));
    const char *operator;
    while ((operator= operator_of(parser, level))) {
        bool negated = strcmp(operator, "not") == 0;
        TRY(template_advance(parser));
        if (negated) TRY(template_expect(parser, "in", "`in`"));
        Expr *right, *both = new_expr(parser, EXPR_BINARY, *out);
        TRY(parse_level(parser, level + 1, &right));
        add_part(both, right);
        both->text = negated ? "in" : operator;
        *out = negated ? new_expr(parser, EXPR_NOT, both) : both;
    }
    return STATUS_OK;
}

static Status parse_not(Parser *parser, Expr **out) {
    int count = 0;
    for (; template_token_is(parser, "not"); count++) TRY(template_advance(parser));
    TRY(parse_level(parser, 0, out));
    while (count-- > 0) *out = new_expr(parser, EXPR_NOT, *out);
    return STATUS_OK;
}

static Status parse_and(Parser *parser, Expr **out) {
    TRY(parse_not(parser, out));
    while (template_token_is(parser, "and")) {
        Expr *right;
        TRY(template_advance(parser));
        *out = new_expr(parser, EXPR_AND, *out);
        TRY(parse_not(parser, &right));
        add_part(*out, right);
    }
    return STATUS_OK;
}

Status template_simple_expression(Parser *parser, Expr **out) {
    TRY(parse_and(parser, out));
    while (template_token_is(parser, "or")) {
        Expr *right;
        TRY(template_advance(parser));
        *out = new_expr(parser, EXPR_OR, *out);
        TRY(parse_and(parser, &right));
        add_part(*out, right);
    }
    return STATUS_OK;
}

// then if condition else otherwise; without else: nothing.
static Status parse_choice(Parser *parser, Expr **out) {
    TRY(template_simple_expression(parser, out));
    if (!template_token_is(parser, "if")) return STATUS_OK;
    Expr *then = *out, *condition, *otherwise = NULL;
    TRY(template_advance(parser));
    TRY(template_simple_expression(parser, &condition));
    if (template_token_is(parser, "else")) {
        TRY(template_advance(parser));
        TRY(template_expression(parser, &otherwise));
    } else {
        otherwise = new_expr(parser, EXPR_STRING, NULL);
        set_text(parser, otherwise, "", 0);
    }
    *out = new_expr(parser, EXPR_CHOICE, condition);
    add_part(*out, then);
    add_part(*out, otherwise);
    return STATUS_OK;
}

Status template_expression(Parser *parser, Expr **out) {
    if (parser->depth == TEMPLATE_NESTING_MAX)
        return template_wrong(parser, "this is nested too deeply");
    parser->depth++;
    TRY(parse_choice(parser, out));
    parser->depth--;
    return STATUS_OK;
}
