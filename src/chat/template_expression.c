// Expressions of templates, parsed by rising precedence.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "chat/template_parser.h"

static TemplateExpr *new_expr(TemplateParser *parser, TemplateExprKind kind, TemplateExpr *first) {
    TemplateExpr *expr = arena_allocate(&parser->template->arena, sizeof *expr);
    expr->kind = kind;
    expr->line = parser->line;
    expr->parts = expr->last = first;
    return expr;
}

static void add_part(TemplateExpr *expr, TemplateExpr *part) {
    if (expr->last)
        expr->last->next = part;
    else
        expr->parts = part;
    expr->last = part;
}

static void set_text(TemplateParser *parser, TemplateExpr *expr, const char *bytes, size_t length) {
    expr->text = arena_copy_string(&parser->template->arena, bytes, length);
    expr->length = length;
}

// Strings that follow each other are one.
static Status parse_string(TemplateParser *parser, TemplateExpr **out) {
    SCOPED_TEXT(text);
    Status status = STATUS_OK;
    *out = new_expr(parser, TEMPLATE_EXPR_STRING, NULL);
    while (status == STATUS_OK && parser->token.kind == TEMPLATE_TOKEN_STRING) {
        template_unescape(&parser->token, &text);
        status = template_advance(parser);
    }
    set_text(parser, *out, text_get(&text), text.length);
    return status;
}

static Status number_expr(TemplateParser *parser, TemplateExpr **out) {
    char digits[TEMPLATE_WORD_MAX];
    if (parser->token.length >= sizeof digits)
        return template_wrong(parser, "a number is too long");
    size_t length = 0; // underscores only part the digits
    for (size_t i = 0; i < parser->token.length; i++)
        if (parser->token.at[i] != '_') digits[length++] = parser->token.at[i];
    digits[length] = '\0';
    bool integer = !strpbrk(digits, ".eE");
    char *end;
    *out = new_expr(parser, integer ? TEMPLATE_EXPR_INT : TEMPLATE_EXPR_FLOAT, NULL);
    if (integer)
        (*out)->integer = strtoll(digits, &end, 10);
    else
        (*out)->number = strtod(digits, &end);
    return *end ? template_unexpected(parser, "a number") : STATUS_OK;
}

static TemplateExpr *word_expr(TemplateParser *parser) {
    static const struct {
        const char *word;
        TemplateExprKind kind;
        int64_t integer;
    } constants[] = {{"true", TEMPLATE_EXPR_BOOL, 1},  {"True", TEMPLATE_EXPR_BOOL, 1},
                     {"false", TEMPLATE_EXPR_BOOL, 0}, {"False", TEMPLATE_EXPR_BOOL, 0},
                     {"none", TEMPLATE_EXPR_NONE, 0},  {"None", TEMPLATE_EXPR_NONE, 0}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (template_token_is(parser, constants[i].word)) {
            TemplateExpr *expr = new_expr(parser, constants[i].kind, NULL);
            expr->integer = constants[i].integer;
            return expr;
        }
    TemplateExpr *expr = new_expr(parser, TEMPLATE_EXPR_NAME, NULL);
    set_text(parser, expr, parser->token.at, parser->token.length);
    return expr;
}

// Elements, or keys and values, up to a closing sign.
static Status parse_parts(TemplateParser *parser, TemplateExpr *whole, const char *close,
                          bool pairs) {
    TRY(template_advance(parser));
    while (!template_token_is(parser, close)) {
        TemplateExpr *part;
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

// Of a tuple, whose first element is known; `close` ends it, NULL: what cannot begin another one.
static Status parse_elements(TemplateParser *parser, const char *close, TemplateExpr **out) {
    bool more;
    *out = new_expr(parser, TEMPLATE_EXPR_TUPLE, *out);
    TRY(template_take(parser, ",", &more));
    while (more) {
        TemplateExpr *part;
        bool ended =
            close ? template_token_is(parser, close) : parser->token.kind == TEMPLATE_TOKEN_CLOSE;
        if (ended) return STATUS_OK;
        TRY(template_expression(parser, &part));
        add_part(*out, part);
        TRY(template_take(parser, ",", &more));
    }
    return STATUS_OK;
}

Status template_tuple(TemplateParser *parser, TemplateExpr **out) {
    TRY(template_expression(parser, out));
    return template_token_is(parser, ",") ? parse_elements(parser, NULL, out) : STATUS_OK;
}

static Status parse_parenthesis(TemplateParser *parser, TemplateExpr **out) {
    TRY(template_advance(parser));
    if (template_token_is(parser, ")")) {
        *out = new_expr(parser, TEMPLATE_EXPR_TUPLE, NULL);
        return template_advance(parser);
    }
    TRY(template_expression(parser, out));
    if (template_token_is(parser, ",")) TRY(parse_elements(parser, ")", out));
    return template_expect(parser, ")", "`)`");
}

static Status template_parse_primary(TemplateParser *parser, TemplateExpr **out) {
    if (template_token_is(parser, "(")) return parse_parenthesis(parser, out);
    bool list = template_token_is(parser, "[");
    if (list || template_token_is(parser, "{")) {
        *out = new_expr(parser, list ? TEMPLATE_EXPR_LIST : TEMPLATE_EXPR_DICT, NULL);
        return parse_parts(parser, *out, list ? "]" : "}", !list);
    }
    if (parser->token.kind == TEMPLATE_TOKEN_STRING) return parse_string(parser, out);
    if (parser->token.kind == TEMPLATE_TOKEN_NUMBER)
        TRY(number_expr(parser, out));
    else if (parser->token.kind == TEMPLATE_TOKEN_WORD)
        *out = word_expr(parser);
    else
        return template_unexpected(parser, "an expression");
    return template_advance(parser);
}

// name=value or value.
static Status parse_argument(TemplateParser *parser, TemplateExpr *call) {
    TemplateExpr *argument;
    const char *keyword = NULL;
    TRY(template_expression(parser, &argument));
    if (argument->kind == TEMPLATE_EXPR_NAME && template_token_is(parser, "=")) {
        keyword = argument->text;
        TRY(template_advance(parser));
        TRY(template_expression(parser, &argument));
    }
    argument->keyword = keyword;
    add_part(call, argument);
    return STATUS_OK;
}

static Status parse_arguments(TemplateParser *parser, TemplateExpr *call) {
    TRY(template_advance(parser));
    while (!template_token_is(parser, ")")) {
        TRY(parse_argument(parser, call));
        if (!template_token_is(parser, ")")) TRY(template_expect(parser, ",", "`,`"));
    }
    return template_advance(parser);
}

// x[i], x[a:b]: the part before a colon or a bracket may be left out of a slice.
static Status parse_bound(TemplateParser *parser, TemplateExpr **out) {
    if (!template_token_is(parser, ":") && !template_token_is(parser, "]"))
        return template_expression(parser, out);
    *out = new_expr(parser, TEMPLATE_EXPR_NONE, NULL);
    return STATUS_OK;
}

static Status parse_index(TemplateParser *parser, TemplateExpr **out) {
    TemplateExpr *expr = new_expr(parser, TEMPLATE_EXPR_INDEX, *out), *part;
    TRY(template_advance(parser));
    TRY(parse_bound(parser, &part));
    add_part(expr, part);
    if (template_token_is(parser, ":")) expr->kind = TEMPLATE_EXPR_SLICE;
    for (int i = 0; expr->kind == TEMPLATE_EXPR_SLICE && i < 2; i++) {
        if (template_token_is(parser, ":")) TRY(template_advance(parser));
        TRY(parse_bound(parser, &part));
        add_part(expr, part);
    }
    *out = expr;
    return template_expect(parser, "]", "`]`");
}

// x.name; x.0 is x[0].
static Status parse_field(TemplateParser *parser, TemplateExpr **out) {
    TRY(template_advance(parser));
    if (parser->token.kind == TEMPLATE_TOKEN_NUMBER) {
        TemplateExpr *index, *element = new_expr(parser, TEMPLATE_EXPR_INDEX, *out);
        TRY(number_expr(parser, &index));
        add_part(element, index);
        *out = element;
        return template_advance(parser);
    }
    TemplateExpr *expr = new_expr(parser, TEMPLATE_EXPR_FIELD, *out);
    TRY(template_take_word(parser, "a name", &expr->text));
    expr->length = strlen(expr->text);
    *out = expr;
    return STATUS_OK;
}

static Status parse_filter(TemplateParser *parser, TemplateExpr **out) {
    TemplateExpr *expr = new_expr(parser, TEMPLATE_EXPR_FILTER, *out);
    TRY(template_take_word(parser, "the name of a filter", &expr->text));
    *out = expr;
    return template_token_is(parser, "(") ? parse_arguments(parser, expr) : STATUS_OK;
}

static Status template_parse_postfix(TemplateParser *parser, TemplateExpr **out);

// Whether the argument of a test begins here, without parentheses around it.
static bool begins_argument(const TemplateParser *parser) {
    static const char *const others[] = {"else", "or", "and", "is", "if", "not"};
    if (parser->token.kind == TEMPLATE_TOKEN_STRING || parser->token.kind == TEMPLATE_TOKEN_NUMBER)
        return true;
    if (template_token_is(parser, "[") || template_token_is(parser, "{")) return true;
    if (parser->token.kind != TEMPLATE_TOKEN_WORD) return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (template_token_is(parser, others[i])) return false;
    return true;
}

static Status parse_test_argument(TemplateParser *parser, TemplateExpr *test) {
    TemplateExpr *argument;
    TRY(template_parse_primary(parser, &argument));
    TRY(template_parse_postfix(parser, &argument));
    add_part(test, argument);
    return STATUS_OK;
}

static Status parse_test(TemplateParser *parser, TemplateExpr **out) {
    TemplateExpr *expr = new_expr(parser, TEMPLATE_EXPR_TEST, *out);
    bool negated;
    TRY(template_advance(parser));
    TRY(template_take(parser, "not", &negated));
    TRY(template_take_word(parser, "the name of a test", &expr->text));
    if (template_token_is(parser, "("))
        TRY(parse_arguments(parser, expr));
    else if (begins_argument(parser))
        TRY(parse_test_argument(parser, expr));
    *out = negated ? new_expr(parser, TEMPLATE_EXPR_NOT, expr) : expr;
    return STATUS_OK;
}

static Status template_parse_call(TemplateParser *parser, TemplateExpr **out) {
    *out = new_expr(parser, TEMPLATE_EXPR_CALL, *out);
    return parse_arguments(parser, *out);
}

// Fields, elements and calls of what has been read.
static Status template_parse_postfix(TemplateParser *parser, TemplateExpr **out) {
    for (;;) {
        if (template_token_is(parser, "."))
            TRY(parse_field(parser, out));
        else if (template_token_is(parser, "["))
            TRY(parse_index(parser, out));
        else if (template_token_is(parser, "("))
            TRY(template_parse_call(parser, out));
        else
            return STATUS_OK;
    }
}

Status template_filters(TemplateParser *parser, TemplateExpr **out) {
    for (;;) {
        bool filter;
        TRY(template_take(parser, "|", &filter));
        if (filter)
            TRY(parse_filter(parser, out));
        else if (template_token_is(parser, "is"))
            TRY(parse_test(parser, out));
        else if (template_token_is(parser, ".") || template_token_is(parser, "["))
            TRY(template_parse_postfix(parser, out));
        else
            return STATUS_OK;
    }
}

Status template_filter_names(TemplateParser *parser, TemplateExpr **out) {
    TRY(parse_filter(parser, out));
    return template_filters(parser, out);
}

// A sign binds closer than filters.
static Status parse_signed(TemplateParser *parser, TemplateExpr **out) {
    bool minus, plus = false;
    TRY(template_take(parser, "-", &minus));
    if (!minus) TRY(template_take(parser, "+", &plus));
    if (!minus && !plus) {
        TRY(template_parse_primary(parser, out));
        return template_parse_postfix(parser, out);
    }
    if (++parser->depth >= TEMPLATE_NESTING_MAX)
        return template_wrong(parser, "this is nested too deeply");
    TRY(parse_signed(parser, out));
    ASSERT(parser->depth > 0);
    parser->depth--;
    if (minus) *out = new_expr(parser, TEMPLATE_EXPR_MINUS, *out);
    return STATUS_OK;
}

static Status parse_unary(TemplateParser *parser, TemplateExpr **out) {
    TRY(parse_signed(parser, out));
    return template_filters(parser, out);
}

// Operators that stand between their operands, loosest first.
static const char *const levels[][5] = {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};
static const char *const comparisons[] = {"==", "!=", "<", "<=", ">", ">=", "in", "not", NULL};
enum { LEVEL_COUNT = sizeof levels / sizeof *levels };

static const char *operator_of(const TemplateParser *parser, const char *const *operators) {
    for (; *operators; operators++)
        if (template_token_is(parser, *operators)) return *operators;
    return NULL;
}

static Status parse_level(TemplateParser *parser, int level, TemplateExpr **out) {
    if (level == LEVEL_COUNT) return parse_unary(parser, out);
    TRY(parse_level(parser, level + 1, out));
    const char *operator;
    while ((operator= operator_of(parser, levels[level]))) {
        TRY(template_advance(parser));
        TemplateExpr *right, *both = new_expr(parser, TEMPLATE_EXPR_BINARY, *out);
        TRY(parse_level(parser, level + 1, &right));
        add_part(both, right);
        both->text = operator;
        *out = both;
    }
    return STATUS_OK;
}

// a < b <= c: each operand is compared with the one before it. `not in` is an operator.
static Status parse_comparison(TemplateParser *parser, TemplateExpr **out) {
    TRY(parse_level(parser, 0, out));
    if (operator_of(parser, comparisons)) *out = new_expr(parser, TEMPLATE_EXPR_COMPARE, *out);
    const char *operator;
    while ((operator= operator_of(parser, comparisons))) {
        TemplateExpr *link = new_expr(parser, TEMPLATE_EXPR_LINK, NULL), *right;
        bool negated = strcmp(operator, "not") == 0;
        TRY(template_advance(parser));
        if (negated) TRY(template_expect(parser, "in", "`in`"));
        link->text = negated ? "in" : operator;
        link->integer = negated;
        TRY(parse_level(parser, 0, &right));
        add_part(link, right);
        add_part(*out, link);
    }
    return STATUS_OK;
}

static Status parse_not(TemplateParser *parser, TemplateExpr **out) {
    int count = 0;
    for (; template_token_is(parser, "not"); count++) TRY(template_advance(parser));
    TRY(parse_comparison(parser, out));
    while (count-- > 0) *out = new_expr(parser, TEMPLATE_EXPR_NOT, *out);
    return STATUS_OK;
}

static Status parse_and(TemplateParser *parser, TemplateExpr **out) {
    TRY(parse_not(parser, out));
    while (template_token_is(parser, "and")) {
        TemplateExpr *right;
        TRY(template_advance(parser));
        *out = new_expr(parser, TEMPLATE_EXPR_AND, *out);
        TRY(parse_not(parser, &right));
        add_part(*out, right);
    }
    return STATUS_OK;
}

Status template_simple_expression(TemplateParser *parser, TemplateExpr **out) {
    TRY(parse_and(parser, out));
    while (template_token_is(parser, "or")) {
        TemplateExpr *right;
        TRY(template_advance(parser));
        *out = new_expr(parser, TEMPLATE_EXPR_OR, *out);
        TRY(parse_and(parser, &right));
        add_part(*out, right);
    }
    return STATUS_OK;
}

// then if condition else otherwise; without else: nothing.
static Status parse_choice(TemplateParser *parser, TemplateExpr **out) {
    TRY(template_simple_expression(parser, out));
    if (!template_token_is(parser, "if")) return STATUS_OK;
    TemplateExpr *then = *out, *condition, *otherwise = NULL;
    TRY(template_advance(parser));
    TRY(template_simple_expression(parser, &condition));
    if (template_token_is(parser, "else")) {
        TRY(template_advance(parser));
        TRY(template_expression(parser, &otherwise));
    } else {
        otherwise = new_expr(parser, TEMPLATE_EXPR_ABSENT, NULL);
    }
    *out = new_expr(parser, TEMPLATE_EXPR_CHOICE, condition);
    add_part(*out, then);
    add_part(*out, otherwise);
    return STATUS_OK;
}

Status template_expression(TemplateParser *parser, TemplateExpr **out) {
    if (parser->depth == TEMPLATE_NESTING_MAX)
        return template_wrong(parser, "this is nested too deeply");
    parser->depth++;
    TRY(parse_choice(parser, out));
    ASSERT(parser->depth > 0);
    parser->depth--;
    return STATUS_OK;
}
