// program Name over semiring { equations, rules, facts and settings }
#include "parser/state.h"

// `over topk(3)`, `over sample 1000`
static bool parse_semiring(Parser *parser, ProgramNode *program) {
    if (!parser_is_name(parser_peek(parser), "over")) return true;
    parser_next(parser);
    if (!parser_take_name(parser, "a semiring", &program->semiring)) return false;
    if (parser_is(parser, TOKEN_INT)) return (program->argument = parse_primary(parser)) != NULL;
    if (!parser_is(parser, TOKEN_LEFT_PAREN)) return true;
    Context outer = parser_open_bracket(parser);
    program->argument = parse_expression(parser);
    return program->argument && parser_close_bracket(parser, &outer, "argument");
}

static bool parse_program_setting(Parser *parser, ProgramNode *program) {
    ASSERT(token_is_word(parser_peek(parser)) && parser_ahead(parser, 1)->kind == TOKEN_COLON);
    Setting setting = {.name = parser_word(parser, parser_next(parser))};
    parser_next(parser);
    if (!(setting.value = parse_expression(parser))) return false;
    LIST_PUSH(parser, program->settings, program->setting_count, setting);
    if (parser_accept(parser, TOKEN_COMMA) || parser_at_statement_end(parser)) return true;
    return parser_fail_expected(parser, "`,` or a newline after this setting") != NULL;
}

static bool parse_items(Parser *parser, ProgramNode *program) {
    while (!parser_at_closer(parser)) {
        if (parser_accept(parser, TOKEN_SEMICOLON)) continue;
        bool setting =
            token_is_word(parser_peek(parser)) && parser_ahead(parser, 1)->kind == TOKEN_COLON;
        if (setting) {
            if (!parse_program_setting(parser, program)) return false;
            continue;
        }
        Node *statement = parse_statement(parser);
        if (statement)
            LIST_PUSH(parser, program->statements.items, program->statements.count, statement);
    }
    return true;
}

bool parser_at_program(const Parser *parser) {
    const Token *name = parser_ahead(parser, 1), *behind = parser_ahead(parser, 2);
    return parser_is_name(parser_peek(parser), "program") && name->kind == TOKEN_NAME &&
           !name->newline_before && !behind->newline_before &&
           (behind->kind == TOKEN_LEFT_BRACE || parser_is_name(behind, "over"));
}

Node *parse_program_block(Parser *parser) {
    ASSERT(parser_at_program(parser));
    Node *node = node_new(parser, NODE_PROGRAM, parser_begin(parser));
    ProgramNode *program = arena_allocate(parser->arena, sizeof *program);
    *program = (ProgramNode){0};
    node->as.program = program;
    parser_next(parser);
    program->name = parser_word(parser, parser_next(parser));
    if (!parse_semiring(parser, program)) return NULL;
    if (!parser_is(parser, TOKEN_LEFT_BRACE))
        return parser_fail_expected(parser, "`{` to begin the program");
    if (!parser_enter(parser)) return NULL;
    Context outer = parser_open_bracket(parser);
    parser->context.in_block = parser->context.in_program = true;
    if (!parse_items(parser, program)) return NULL;
    if (!parser_close_bracket(parser, &outer, "program")) return NULL;
    parser_leave(parser);
    node->span.end = parser_end(parser);
    bool fits = !program->argument || node_adopt(parser, node, program->argument);
    for (size_t i = 0; i < program->setting_count && fits; i++)
        fits = node_adopt(parser, node, program->settings[i].value);
    for (size_t i = 0; i < program->statements.count && fits; i++)
        fits = node_adopt(parser, node, program->statements.items[i]);
    return fits ? node : NULL;
}
