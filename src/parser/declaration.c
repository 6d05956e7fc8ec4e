// Declarations: functions, structs, impl, import, test, bench and main. Most of their words are
// keywords only where such a declaration begins.
#include <stdlib.h>
#include <string.h>

#include "parser/state.h"

static bool parse_parameter(Parser *parser, Parameter *out) {
    *out = (Parameter){0};
    if (!parser_take_name(parser, "a parameter name", &out->name)) return false;
    if (parser_accept(parser, TOKEN_COLON) && !(out->type = parse_type(parser))) return false;
    if (parser_accept(parser, TOKEN_EQUAL) && !(out->fallback = parse_expression(parser)))
        return false;
    return true;
}

// <T, U>
static bool parse_type_parameters(Parser *parser, Word **words, size_t *count) {
    if (!parser_accept(parser, TOKEN_LESS)) return true;
    while (parser_is(parser, TOKEN_NAME)) {
        Word word = parser_word(parser, parser_next(parser));
        LIST_PUSH(parser, *words, *count, word);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
    }
    if (parser_accept(parser, TOKEN_GREATER)) return true;
    return parser_fail_expected(parser, "`>` to end the type parameters") != NULL;
}

// (parameters) -> type { body }
static bool parse_function_tail(Parser *parser, FunctionNode *function, SourcePos begin) {
    if (!parser_is(parser, TOKEN_LEFT_PAREN))
        return parser_fail_expected(parser, "`(` to begin the parameters") != NULL;
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        Parameter parameter;
        if (!parse_parameter(parser, &parameter)) return false;
        LIST_PUSH(parser, function->parameters, function->parameter_count, parameter);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
    }
    if (!parser_close_bracket(parser, &outer, "parameter list")) return false;
    function->head = (Span){begin, parser_end(parser)};
    if (parser_accept(parser, TOKEN_ARROW) && !(function->result = parse_type(parser)))
        return false;
    return (function->body = parse_block(parser, "function")) != NULL;
}

static Node *function_node(Parser *parser, NodeKind kind, FunctionNode *function, SourcePos begin) {
    Node *node = node_new(parser, kind, begin);
    node->as.function = function;
    for (size_t i = 0; i < function->parameter_count; i++)
        if (!node_adopt(parser, node, function->parameters[i].fallback)) return NULL;
    return node_adopt(parser, node, function->body) ? node : NULL;
}

Node *parse_lambda(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_FN));
    SourcePos begin = parser_skip(parser);
    if (parser_is(parser, TOKEN_NAME))
        return parser_fail_expected_help(parser, "`(` to begin the parameters",
                                         "a function used as a value has no name: fn(x) { ... }");
    FunctionNode *function = arena_allocate(parser->arena, sizeof *function);
    if (!parse_function_tail(parser, function, begin)) return NULL;
    return function_node(parser, NODE_LAMBDA, function, begin);
}

// A method is called behind a `.` or `::`, so any word may be its name.
static Node *parse_function(Parser *parser, bool method) {
    ASSERT(parser_is(parser, TOKEN_FN));
    SourcePos begin = parser_skip(parser);
    FunctionNode *function = arena_allocate(parser->arena, sizeof *function);
    bool named = method ? parser_take_word(parser, "a method name", &function->name)
                        : parser_take_name(parser, "a function name", &function->name);
    if (!named) return NULL;
    if (!parse_type_parameters(parser, &function->type_parameters, &function->type_count))
        return NULL;
    if (!parse_function_tail(parser, function, begin)) return NULL;
    return function_node(parser, NODE_FUNCTION, function, begin);
}

// field: type learnable = default
static bool parse_field(Parser *parser, Node *node) {
    Word name;
    if (!parser_take_word(parser, "a field name", &name)) return false;
    if (!parser_accept(parser, TOKEN_COLON))
        return parser_fail_expected_help(parser, "`:` and the field's type",
                                         "a field is written name: type") != NULL;
    TypeNode *type = parse_type(parser);
    if (!type) return false;
    type->learnable = parser_take_learnable(parser);
    Node *fallback = NULL;
    if (parser_accept(parser, TOKEN_EQUAL) && !(fallback = parse_expression(parser))) return false;
    size_t count = node->as.structure.field_count, again = count, third = count;
    LIST_PUSH(parser, node->as.structure.fields, count, name);
    LIST_PUSH(parser, node->as.structure.types, again, type);
    LIST_PUSH(parser, node->as.structure.fallbacks, third, fallback);
    node->as.structure.field_count = count;
    return node_adopt(parser, node, fallback);
}

static Node *parse_struct(Parser *parser) {
    ASSERT(parser_is_name(parser_peek(parser), "struct"));
    SourcePos begin = parser_skip(parser);
    Node *node = node_new(parser, NODE_STRUCT, begin);
    node->as.structure.name = parser_word(parser, parser_next(parser));
    if (!parse_type_parameters(parser, &node->as.structure.type_parameters,
                               &node->as.structure.type_count))
        return NULL;
    if (!parser_is(parser, TOKEN_LEFT_BRACE))
        return parser_fail_expected(parser, "`{` to begin the fields");
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        if (!parse_field(parser, node)) return NULL;
        if (parser_accept(parser, TOKEN_COMMA) || parser_accept(parser, TOKEN_SEMICOLON) ||
            parser_at_new_line(parser) || parser_is(parser, TOKEN_RIGHT_BRACE))
            continue;
        return parser_fail_expected(parser, "`,` or a newline after this field");
    }
    if (!parser_close_bracket(parser, &outer, "struct")) return NULL;
    return node_finish(parser, node);
}

// impl<T> Name<T> { fns }, impl Drop for Name { fns }
static Node *parse_impl(Parser *parser) {
    ASSERT(parser_is_name(parser_peek(parser), "impl"));
    SourcePos begin = parser_skip(parser);
    Node *node = node_new(parser, NODE_IMPL, begin);
    Word *parameters = NULL; // the arguments of the name below say what they stand for
    size_t parameter_count = 0;
    if (!parse_type_parameters(parser, &parameters, &parameter_count)) return NULL;
    node->as.impl.module = parse_module(parser);
    if (!parser_take_name(parser, "the name of a struct", &node->as.impl.name)) return NULL;
    if (!node->as.impl.module && parser_accept(parser, TOKEN_FOR)) {
        node->as.impl.trait = node->as.impl.name;
        node->as.impl.module = parse_module(parser);
        if (!parser_take_name(parser, "the name of a struct", &node->as.impl.name)) return NULL;
    }
    if (parser_is(parser, TOKEN_LESS) &&
        !parse_type_arguments(parser, &node->as.impl.type_arguments, &node->as.impl.type_count))
        return NULL;
    if (!parser_is(parser, TOKEN_LEFT_BRACE))
        return parser_fail_expected(parser, "`{` to begin the methods");
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        if (!parser_is(parser, TOKEN_FN))
            return parser_fail_expected(parser, "`fn` to begin a method");
        Node *function = parse_function(parser, true);
        if (!function || !node_adopt(parser, node, function)) return NULL;
        LIST_PUSH(parser, node->as.impl.functions, node->as.impl.function_count, function);
        while (parser_accept(parser, TOKEN_SEMICOLON) || parser_accept(parser, TOKEN_COMMA)) {
        }
    }
    if (!parser_close_bracket(parser, &outer, "impl block")) return NULL;
    return node_finish(parser, node);
}

static Node *parse_import(Parser *parser) {
    ASSERT(parser_is_name(parser_peek(parser), "import"));
    SourcePos begin = parser_skip(parser);
    Node *node = node_new(parser, NODE_IMPORT, begin);
    node->as.import.path = parser_string_word(parser_next(parser));
    if (parser_accept(parser, TOKEN_AS) &&
        !parser_take_name(parser, "a name for the module", &node->as.import.alias))
        return NULL;
    return node_finish(parser, node);
}

// test name { }, bench "name" { }, main { }
static Node *parse_section(Parser *parser, NodeKind kind) {
    ASSERT(parser_is(parser, TOKEN_NAME));
    SourcePos begin = parser_begin(parser);
    Word name = parser_word(parser, parser_next(parser));
    if (kind != NODE_MAIN) {
        bool string = parser_is(parser, TOKEN_STRING);
        const Token *token = parser_next(parser);
        name = string ? parser_string_word(token) : parser_word(parser, token);
    }
    FunctionNode *function = arena_allocate(parser->arena, sizeof *function);
    function->name = name;
    function->head = (Span){begin, parser_end(parser)};
    static const char *const words[] = {"test block", "bench block", "main block"};
    function->body = parse_block(parser, words[kind - NODE_TEST]);
    if (!function->body) return NULL;
    Node *node = node_new(parser, kind, begin);
    node->as.section.name = name;
    node->as.section.function = function;
    return node_adopt(parser, node, function->body) ? node : NULL;
}

// Which declaration or statement begins with a word that is a name elsewhere.
typedef enum Form {
    FORM_NONE,
    FORM_FUNCTION,
    FORM_STRUCT,
    FORM_IMPL,
    FORM_IMPORT,
    FORM_TEST,
    FORM_BENCH,
    FORM_MAIN,
    FORM_WITH,
    FORM_LEARN,
} Form;

static Form form_at(const Parser *parser) {
    const Token *first = parser_peek(parser), *second = parser_ahead(parser, 1);
    TokenKind kind = (TokenKind)second->kind, third = (TokenKind)parser_ahead(parser, 2)->kind;
    bool named = (kind == TOKEN_NAME || kind == TOKEN_STRING) && third == TOKEN_LEFT_BRACE;
    if (first->kind == TOKEN_FN) return kind == TOKEN_LEFT_PAREN ? FORM_NONE : FORM_FUNCTION;
    if (first->kind != TOKEN_NAME) return FORM_NONE;
    if (parser_is_name(first, "struct") && kind == TOKEN_NAME) return FORM_STRUCT;
    if (parser_is_name(first, "impl") && (kind == TOKEN_NAME || kind == TOKEN_LESS))
        return FORM_IMPL;
    if (parser_is_name(first, "import") && kind == TOKEN_STRING) return FORM_IMPORT;
    if (parser_is_name(first, "test") && named) return FORM_TEST;
    if (parser_is_name(first, "bench") && named) return FORM_BENCH;
    if (parser_is_name(first, "main") && kind == TOKEN_LEFT_BRACE) return FORM_MAIN;
    if (parser_is_name(first, "with") && kind == TOKEN_NAME) return FORM_WITH;
    if (parser_is_name(first, "learn") && kind == TOKEN_LEFT_BRACE) return FORM_LEARN;
    return FORM_NONE;
}

static bool belongs_at_top(Form form) {
    return form == FORM_STRUCT || form == FORM_IMPL || form == FORM_IMPORT || form == FORM_TEST ||
           form == FORM_MAIN;
}

Node *parse_declaration(Parser *parser, bool *found) {
    Form form = form_at(parser);
    *found = form != FORM_NONE;
    if (belongs_at_top(form) && parser->context.in_block) {
        const Token *token = parser_peek(parser);
        const char *word = parser_word(parser, token).text;
        FAIL(parser, .span = token->span,
             .message = parser_say(parser, "`%s` belongs at the top level of the file", word),
             .help = "move it out of this block");
        return NULL;
    }
    switch (form) {
    case FORM_FUNCTION: return parse_function(parser, false);
    case FORM_STRUCT: return parse_struct(parser);
    case FORM_IMPL: return parse_impl(parser);
    case FORM_IMPORT: return parse_import(parser);
    case FORM_TEST: return parse_section(parser, NODE_TEST);
    case FORM_BENCH: return parse_section(parser, NODE_BENCH);
    case FORM_MAIN: return parse_section(parser, NODE_MAIN);
    case FORM_WITH: return parse_with(parser);
    case FORM_LEARN: return parse_learn(parser);
    default: return NULL;
    }
}
