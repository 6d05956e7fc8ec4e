// Primary expressions: literals, names, paths, struct literals, f-strings.
#include <ctype.h>
#include <stdlib.h>

#include "parser/state.h"

Node *parse_number(Parser *parser, bool negative) {
    SourcePos begin = parser_begin(parser);
    if (negative) parser_next(parser);
    const Token *token = parser_next(parser);
    ASSERT(token->kind == TOKEN_INT || token->kind == TOKEN_FLOAT);
    if (token->too_large && !negative)
        return FAIL(parser, .span = token->span,
                    .message = "the integer 9223372036854775808 does not fit in 64 bits; the "
                               "largest is 9223372036854775807",
                    .help = "write it as a float, with a point or an exponent");
    bool is_float = token->kind == TOKEN_FLOAT;
    Node *node = node_new(parser, is_float ? NODE_FLOAT : NODE_INT, begin);
    if (is_float)
        node->as.number = negative ? -token->value.number : token->value.number;
    else if (token->too_large)
        node->as.integer = INT64_MIN;
    else
        node->as.integer = negative ? -token->value.integer : token->value.integer;
    return node;
}

static Node *parse_string(Parser *parser) {
    const Token *token = parser_next(parser);
    ASSERT(token->kind == TOKEN_STRING);
    Node *node = node_new(parser, NODE_STRING, token->span.begin);
    node->as.string.bytes = token->value.text;
    node->as.string.length = token->length;
    return node;
}

// One placeholder's expression and spec, up to the text behind it.
static Node *parse_placeholder(Parser *parser, const char **spec) {
    *spec = NULL;
    const Token *token = parser_peek(parser);
    if (token->kind == TOKEN_FORMAT_TEXT || token->kind == TOKEN_FORMAT_SPEC)
        return FAIL(parser, .span = {token->span.begin - 1, token->span.begin + 1},
                    .message = "an empty placeholder in an f-string",
                    .help = "name a value, as in f\"{x}\"; a brace in the text is written `{{`");
    Node *value = parse_expression(parser);
    if (!value) return NULL;
    if (parser_is(parser, TOKEN_FORMAT_SPEC)) *spec = parser_next(parser)->value.text;
    if (parser_is(parser, TOKEN_FORMAT_TEXT)) return value;
    if (parser_at_comment(parser))
        return FAIL(parser, .span = {parser_end(parser), parser_end(parser)},
                    .message = "expected `}` to end the placeholder, found a comment",
                    .help = parser_division_help);
    return parser_fail_expected(parser, "`}` to end the placeholder");
}

static Node *parse_format_string(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_FORMAT_STRING));
    SourcePos begin = parser_begin(parser);
    Context outer = parser->context;
    parser->context.newlines_free = true;
    parser->context.in_head = parser->context.in_subscript = false;
    Word *texts = NULL;
    Node **values = NULL;
    const char **specs = NULL;
    size_t text_count = 0, value_count = 0, spec_count = 0;
    const Token *text = parser_next(parser);
    LIST_PUSH(parser, texts, text_count, parser_string_word(text));
    while (!text->last) {
        const char *spec;
        Node *value = parse_placeholder(parser, &spec);
        if (!value) return NULL;
        LIST_PUSH(parser, values, value_count, value);
        LIST_PUSH(parser, specs, spec_count, spec);
        text = parser_next(parser);
        LIST_PUSH(parser, texts, text_count, parser_string_word(text));
    }
    parser->context = outer;
    Node *node = node_new(parser, NODE_FORMAT_STRING, begin);
    node->as.format_string.texts = texts;
    node->as.format_string.values = (NodeList){values, value_count};
    node->as.format_string.specs = specs;
    for (size_t i = 0; i < value_count; i++)
        if (!node_adopt(parser, node, values[i])) return NULL;
    return node;
}

static Node *parse_constant(Parser *parser) {
    const Token *token = parser_next(parser);
    ASSERT(token->kind == TOKEN_NONE || token->kind == TOKEN_TRUE || token->kind == TOKEN_FALSE);
    Node *node =
        node_new(parser, token->kind == TOKEN_NONE ? NODE_NONE : NODE_BOOL, token->span.begin);
    node->as.boolean = token->kind == TOKEN_TRUE;
    return node;
}

// A brace that may belong to the expression before it: not that of a head's block.
static bool at_own_brace(const Parser *parser, size_t brace) {
    if (parser->context.in_head || parser_ahead(parser, brace)->kind != TOKEN_LEFT_BRACE)
        return false;
    return !parser_ahead(parser, brace)->newline_before || parser->context.newlines_free;
}

// A struct literal's brace holds nothing, or a word and a colon; anything else is some block. Of a
// type's name, which begins with a capital, a word alone is meant as a field without its value.
static bool at_literal_brace(const Parser *parser, size_t brace, bool type) {
    if (!at_own_brace(parser, brace)) return false;
    const Token *first = parser_ahead(parser, brace + 1);
    if (first->kind == TOKEN_RIGHT_BRACE) return true;
    TokenKind second = parser_ahead(parser, brace + 2)->kind;
    bool alone = type && (second == TOKEN_COMMA || second == TOKEN_RIGHT_BRACE);
    return token_is_word(first) && (second == TOKEN_COLON || alone);
}

typedef struct TypeName { // Name or Name<types>, of a module perhaps
    Node *module;
    Word word;
    TypeNode **arguments;
    size_t count;
} TypeName;

const char parser_fields_help[] =
    "a literal gives every field that has no default; write them out, as in x: p.x";

static Node *parse_literal_fields(Parser *parser, const TypeName *type) {
    ASSERT(parser_is(parser, TOKEN_LEFT_BRACE));
    Word *names = NULL;
    Node **values = NULL;
    size_t name_count = 0, value_count = 0;
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        Word name;
        if (parser_is(parser, TOKEN_DOT_DOT))
            return parser_fail_expected_help(parser, "a field name", parser_fields_help);
        if (!parser_take_word(parser, "a field name", &name)) return NULL;
        if (!parser_accept(parser, TOKEN_COLON))
            return parser_fail_expected_help(
                parser, "`:` and the field's value",
                parser_say(parser, "write `%s: %s`", name.text, name.text));
        Node *value = parse_expression(parser);
        if (!value) return NULL;
        LIST_PUSH(parser, names, name_count, name);
        LIST_PUSH(parser, values, value_count, value);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
    }
    if (!parser_close_bracket(parser, &outer, "struct literal")) return NULL;
    const Span *first = type->module ? &type->module->span : &type->word.span;
    Node *node = node_new(parser, NODE_STRUCT_LITERAL, first->begin);
    node->as.struct_literal.module = type->module;
    node->as.struct_literal.type = type->word;
    node->as.struct_literal.type_arguments = type->arguments;
    node->as.struct_literal.type_count = type->count;
    node->as.struct_literal.names = names;
    node->as.struct_literal.values = values;
    node->as.struct_literal.count = value_count;
    for (size_t i = 0; i < value_count; i++)
        if (!node_adopt(parser, node, values[i])) return NULL;
    return node;
}

// In x[a::2] the colons are a slice's; only a call makes A::f a path there.
static bool at_path(const Parser *parser) {
    if (!parser_is(parser, TOKEN_COLON_COLON)) return false;
    if (parser->context.in_weight && parser_peek(parser)->space_before) return false;
    if (!parser->context.in_subscript) return true;
    return token_is_word(parser_ahead(parser, 1)) &&
           parser_ahead(parser, 2)->kind == TOKEN_LEFT_PAREN;
}

static Node *parse_path(Parser *parser, const TypeName *type, SourcePos begin) {
    ASSERT(parser_is(parser, TOKEN_COLON_COLON));
    parser_next(parser);
    Word name;
    if (!parser_take_word(parser, "a name after `::`", &name)) return NULL;
    Node *node = node_new(parser, NODE_PATH, begin);
    node->as.path.module = type->module;
    node->as.path.type = type->word;
    node->as.path.type_arguments = type->arguments;
    node->as.path.type_count = type->count;
    node->as.path.name = name;
    return node;
}

bool parser_at_qualified(const Parser *parser) {
    return at_path(parser) || at_literal_brace(parser, 0, false) ||
           parser_at_type_arguments(parser);
}

Node *parse_qualified(Parser *parser, Node *module, const Word *name) {
    ASSERT(module != NULL);
    TypeName type = {.module = module, .word = *name};
    if (parser_at_type_arguments(parser) &&
        !parse_type_arguments(parser, &type.arguments, &type.count))
        return NULL;
    return at_path(parser) ? parse_path(parser, &type, module->span.begin)
                           : parse_literal_fields(parser, &type);
}

static Node *parse_name(Parser *parser) {
    if (parser_is_name(parser_peek(parser), "learn") && at_own_brace(parser, 1))
        return parse_learn(parser);
    const Token *token = parser_next(parser);
    if (!parser_take_primed(parser, token)) return NULL;
    TypeName type = {.word = parser_word(parser, token)};
    if (parser_at_type_arguments(parser) &&
        !parse_type_arguments(parser, &type.arguments, &type.count))
        return NULL;
    if (at_path(parser)) return parse_path(parser, &type, token->span.begin);
    bool capital = isupper((unsigned char)*type.word.text);
    if (type.count > 0 || at_literal_brace(parser, 0, capital))
        return parse_literal_fields(parser, &type);
    Node *node = node_new(parser, NODE_NAME, token->span.begin);
    node->as.name.word = type.word;
    return node;
}

static Node *parse_brace(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_LEFT_BRACE));
    if (parser_at_dictionary(parser)) return parse_dictionary(parser);
    if (parser->context.in_head)
        return parser_fail_expected(parser, "an expression before the `{`");
    return parse_block(parser, "block");
}

static Node *fail_no_expression(Parser *parser) {
    const Token *token = parser_peek(parser);
    const char *help = NULL;
    if (token->kind == TOKEN_ELSE)
        return FAIL(parser, .span = token->span, .message = "`else` without `if`");
    if (token->kind == TOKEN_CATCH)
        return FAIL(parser, .span = token->span, .message = "`catch` without `try`");
    bool twice = token->kind == TOKEN_PLUS && !token->space_before && parser->at > 0 &&
                 parser->tokens.items[parser->at - 1].kind == TOKEN_PLUS;
    if (twice)
        help = "x += 1 adds one to x";
    else if (token->kind == TOKEN_PLUS)
        help = "a number needs no `+` in front of it";
    if (token->kind == TOKEN_GREATER && !token->space_before && parser->at > 0 &&
        parser->tokens.items[parser->at - 1].kind == TOKEN_LESS)
        help = "`!=` says that two differ";
    if (token->kind == TOKEN_QUESTION) help = "a query ends with it, as in Parent(alice, X)?";
    if (token->kind == TOKEN_TILDE) help = "bit_not(a) flips bits; `not` negates a condition";
    if (token->kind == TOKEN_BAR) help = "a function value is written fn(x) { ... }";
    bool next_line = parser_at_new_line(parser);
    if (token_is_word(token) && !help && !next_line)
        help = parser_say(parser, "`%s` begins a statement; it has no value",
                          token_spelling((TokenKind)token->kind));
    if (!next_line || token->kind == TOKEN_END || token_begins_statement(token))
        return parser_fail_expected_help(parser, "an expression", help);
    return FAIL(parser, .span = token->span, .help = help,
                .message = parser_say(parser, "no statement begins with %s",
                                      parser_describe(parser, token)));
}

Node *parse_primary(Parser *parser) {
    switch (parser_peek(parser)->kind) {
    case TOKEN_INT:
    case TOKEN_FLOAT: return parse_number(parser, false);
    case TOKEN_STRING: return parse_string(parser);
    case TOKEN_FORMAT_STRING: return parse_format_string(parser);
    case TOKEN_NAME:
        return parser_at_inference(parser) ? parse_inference(parser) : parse_name(parser);
    case TOKEN_TRUE:
    case TOKEN_FALSE:
    case TOKEN_NONE: return parse_constant(parser);
    case TOKEN_LEFT_PAREN: return parse_paren(parser);
    case TOKEN_LEFT_BRACKET: return parse_list(parser);
    case TOKEN_LEFT_BRACE: return parse_brace(parser);
    case TOKEN_FN: return parse_lambda(parser);
    case TOKEN_IF: return parse_if(parser);
    case TOKEN_MATCH: return parse_match(parser);
    case TOKEN_TRY: return parse_try(parser);
    default: return fail_no_expression(parser);
    }
}
