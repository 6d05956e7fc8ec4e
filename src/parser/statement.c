// Statements: let, tensor, assignments, expressions, jumps; blocks; and recovery after an error.
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog.h"
#include "catalog/settings.h"
#include "parser/state.h"

// Assignment operators; `=` and `:=` have none.
static const struct {
    TokenKind token;
    Operator op;
} assignments[] = {
    {TOKEN_EQUAL, OPERATOR_NONE},          {TOKEN_COLON_EQUAL, OPERATOR_NONE},
    {TOKEN_PLUS_EQUAL, OPERATOR_ADD},      {TOKEN_MINUS_EQUAL, OPERATOR_SUB},
    {TOKEN_STAR_EQUAL, OPERATOR_MUL},      {TOKEN_SLASH_EQUAL, OPERATOR_DIV},
    {TOKEN_AT_EQUAL, OPERATOR_MATMUL},     {TOKEN_PERCENT_EQUAL, OPERATOR_MOD},
    {TOKEN_STAR_STAR_EQUAL, OPERATOR_POW},
};

static bool at_assignment(const Parser *parser, Operator *op) {
    for (size_t i = 0; i < sizeof assignments / sizeof assignments[0]; i++) {
        if (!parser_is(parser, assignments[i].token)) continue;
        *op = assignments[i].op;
        return true;
    }
    return false;
}

static Node *fail_no_value(Parser *parser) {
    const char *help = NULL;
    if (parser_is(parser, TOKEN_COLON_EQUAL)) help = "a variable is declared by let name = value";
    if (parser_is(parser, TOKEN_COMMA)) help = "several are declared by let (a, b) = (x, y)";
    return parser_fail_expected_help(parser, "`=` and a value", help);
}

// Behind the type: learnable = expr
static Node *parse_tensor_behind(Parser *parser, SourcePos begin, Word name, TypeNode *type) {
    ASSERT(name.text && type);
    Node *node = node_new(parser, NODE_TENSOR_DECLARATION, begin);
    node->as.tensor.name = name;
    node->as.tensor.type = type;
    type->learnable = parser_take_learnable(parser);
    if (parser_accept(parser, TOKEN_EQUAL)) {
        node->as.tensor.value = parse_expression(parser);
        if (!node->as.tensor.value) return NULL;
        if (!node_adopt(parser, node, node->as.tensor.value)) return NULL;
    }
    return node_finish(parser, node);
}

static Node *parse_let(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_LET));
    SourcePos begin = parser_skip(parser);
    const Token *token = parser_peek(parser);
    if (parser_is_name(token, "mut") && parser_ahead(parser, 1)->kind == TOKEN_NAME)
        return FAIL(parser, .span = token->span, .message = "`let mut` is not needed",
                    .help = "every variable can be assigned again: leave out `mut`");
    Node *node = node_new(parser, NODE_LET, begin);
    node->as.let.pattern = parse_binding_pattern(parser);
    if (!node->as.let.pattern) return NULL;
    bool destructures = node->as.let.pattern->kind == PATTERN_TUPLE;
    if (parser_accept(parser, TOKEN_COLON)) {
        node->as.let.type = parse_type(parser);
        if (!node->as.let.type) return NULL;
        bool learnable = node->as.let.pattern->kind == PATTERN_BIND && parser_at_learnable(parser);
        if (learnable)
            return parse_tensor_behind(parser, begin, node->as.let.pattern->name,
                                       node->as.let.type);
    }
    if (parser_accept(parser, TOKEN_EQUAL)) {
        node->as.let.value = parse_expression(parser);
        if (!node->as.let.value) return NULL;
        if (!node_adopt(parser, node, node->as.let.value)) return NULL;
    } else if (destructures || !node->as.let.type) {
        return fail_no_value(parser);
    }
    return node_finish(parser, node);
}

// tensor w: float16[3, n] learnable = expr
static Node *parse_tensor(Parser *parser) {
    ASSERT(parser_is_name(parser_peek(parser), "tensor"));
    SourcePos begin = parser_skip(parser);
    Word name = parser_word(parser, parser_next(parser));
    parser_next(parser); // the colon that made this a declaration
    TypeNode *type = parse_type(parser);
    return type ? parse_tensor_behind(parser, begin, name, type) : NULL;
}

// Words for what cannot be assigned to; NULL when the node is a target.
static const char *not_a_target(const Node *node, bool inside_tuple) {
    switch (node->kind) {
    case NODE_NAME:
    case NODE_FIELD:
    case NODE_INDEX: return NULL;
    case NODE_TUPLE:
        if (inside_tuple) return "a tuple inside a tuple";
        if (node->as.list.count == 0) return "an empty tuple";
        for (size_t i = 0; i < node->as.list.count; i++) {
            const char *words = not_a_target(node->as.list.items[i], true);
            if (words) return words;
        }
        return NULL;
    case NODE_INT:
    case NODE_FLOAT: return "a number";
    case NODE_STRING:
    case NODE_FORMAT_STRING: return "a string";
    case NODE_BOOL: return "a boolean";
    case NODE_NONE: return "none";
    case NODE_CALL:
    case NODE_METHOD_CALL: return "the result of a call";
    case NODE_LIST: return "a list";
    default: return "this expression";
    }
}

static Node *parse_assignment(Parser *parser, Node *target, SourcePos begin, Operator op) {
    const Token *token = parser_peek(parser);
    const char *words = not_a_target(target, false);
    if (words)
        return FAIL(parser, .span = target->span,
                    .message = parser_say(parser, "cannot assign to %s", words),
                    .help = token->kind == TOKEN_EQUAL
                                ? "a name, a field or an index can be assigned; `==` compares"
                                : "a name, a field or an index can be assigned");
    if (target->kind == NODE_TUPLE && op != OPERATOR_NONE)
        return FAIL(parser, .span = token->span,
                    .message = parser_say(parser, "`%s` needs a single target, not a tuple",
                                          token_spelling((TokenKind)token->kind)));
    parser_next(parser);
    SourcePos value_begin = parser_begin(parser);
    Node *value = parse_side(parser, target);
    if (!value) return NULL;
    if (target->kind == NODE_TUPLE && parser_is(parser, TOKEN_COMMA)) { // a, b = b, a
        NodeList list = {0};
        LIST_PUSH(parser, list.items, list.count, value);
        while (parser_accept(parser, TOKEN_COMMA)) {
            if (!(value = parse_expression(parser))) return NULL;
            LIST_PUSH(parser, list.items, list.count, value);
        }
        value = node_new(parser, NODE_TUPLE, value_begin);
        value->as.list = list;
        for (size_t i = 0; i < list.count; i++)
            if (!node_adopt(parser, value, list.items[i])) return NULL;
    }
    Operator again;
    if (at_assignment(parser, &again) && !parser_at_new_line(parser))
        return FAIL(parser, .span = parser_peek(parser)->span,
                    .message = "an assignment has no value that could be assigned again",
                    .help = "write one assignment a line");
    Node *node = node_new(parser, NODE_ASSIGN, begin);
    node->op = op;
    node->op_span = token->span;
    node->as.assign.target = target;
    node->as.assign.value = value;
    node->as.assign.define = token->kind == TOKEN_COLON_EQUAL;
    return node_adopt(parser, node, target) && node_adopt(parser, node, value) ? node : NULL;
}

// Behind `a`: , b, c  as the targets of an assignment.
static Node *parse_targets(Parser *parser, Node *first, SourcePos begin) {
    NodeList list = {0};
    LIST_PUSH(parser, list.items, list.count, first);
    while (parser_accept(parser, TOKEN_COMMA)) {
        Node *target = parse_expression(parser);
        if (!target) return NULL;
        LIST_PUSH(parser, list.items, list.count, target);
    }
    Operator op;
    const Node *last = list.items[list.count - 1];
    bool rule = last->kind == NODE_BINARY && last->op == OPERATOR_LT &&
                last->as.binary.left->kind == NODE_CALL;
    if (!at_assignment(parser, &op))
        return parser_fail_expected_help(parser, "`=` after this list of names",
                                         rule ? "a rule has one head: each has a rule of its own"
                                              : "a tuple is written in parentheses: (a, b)");
    Node *node = node_new(parser, NODE_TUPLE, begin);
    node->as.list = list;
    for (size_t i = 0; i < list.count; i++)
        if (!node_adopt(parser, node, list.items[i])) return NULL;
    return node;
}

// An unused value that begins a line with `-`, `(` or `[` was likely meant to continue the line
// above. A call does something even when its value is not used.
static bool looks_continued(const Parser *parser, size_t start, const Node *value) {
    ASSERT(start < parser->tokens.count);
    const Token *token = &parser->tokens.items[start];
    if (!token->newline_before || start == 0 || value->kind == NODE_CALL ||
        value->kind == NODE_METHOD_CALL)
        return false;
    TokenKind before = (TokenKind)parser->tokens.items[start - 1].kind;
    if (before == TOKEN_LEFT_BRACE || before == TOKEN_SEMICOLON) return false;
    return token->kind == TOKEN_MINUS || token->kind == TOKEN_LEFT_PAREN ||
           token->kind == TOKEN_LEFT_BRACKET;
}

static Node *parse_expression_statement(Parser *parser, bool allow_targets) {
    SourcePos begin = parser_begin(parser);
    size_t start = parser->at;
    bool block = parser_is(parser, TOKEN_LEFT_BRACE);
    Node *value = block ? parse_block(parser, "block") : parse_expression(parser);
    if (!value) return NULL;
    if (allow_targets && parser_is(parser, TOKEN_COMMA))
        if (!(value = parse_targets(parser, value, begin))) return NULL;
    Operator op;
    if (parser_at_equation(parser, value)) return parse_equation(parser, value, begin);
    if (at_assignment(parser, &op)) return parse_assignment(parser, value, begin, op);
    Node *node = node_new(parser, NODE_EXPRESSION_STATEMENT, begin);
    node->as.expression.value = value;
    node->as.expression.unused_start = looks_continued(parser, start, value);
    return node_adopt(parser, node, value) ? node : NULL;
}

static Node *parse_jump(Parser *parser, NodeKind kind) {
    const Token *token = parser_next(parser);
    ASSERT(token->kind == TOKEN_BREAK || token->kind == TOKEN_CONTINUE ||
           token->kind == TOKEN_RETURN);
    Node *node = node_new(parser, kind, token->span.begin);
    bool ends = parser_at_statement_end(parser) || parser_is(parser, TOKEN_COMMA) ||
                parser_is(parser, TOKEN_RIGHT_PAREN);
    if (kind != NODE_RETURN || ends || parser_peek(parser)->newline_before) return node;
    node->as.returned.value = parse_expression(parser);
    if (!node->as.returned.value) return NULL;
    node->span.end = parser_end(parser);
    return node_adopt(parser, node, node->as.returned.value) ? node : NULL;
}

static Node *parse_simple_statement(Parser *parser, bool allow_targets) {
    const Token *next = parser_ahead(parser, 1);
    switch (parser_peek(parser)->kind) {
    case TOKEN_LET: return parse_let(parser);
    case TOKEN_WHILE: return parse_while(parser);
    case TOKEN_LOOP: return parse_loop(parser);
    case TOKEN_FOR: return parse_for(parser);
    case TOKEN_BREAK: return parse_jump(parser, NODE_BREAK);
    case TOKEN_CONTINUE: return parse_jump(parser, NODE_CONTINUE);
    case TOKEN_RETURN: return parse_jump(parser, NODE_RETURN);
    default: break;
    }
    bool tensor = parser_is_name(parser_peek(parser), "tensor") && next->kind == TOKEN_NAME &&
                  parser_ahead(parser, 2)->kind == TOKEN_COLON;
    return tensor ? parse_tensor(parser) : parse_expression_statement(parser, allow_targets);
}

Node *parse_arm_body(Parser *parser) {
    SourcePos begin = parser_begin(parser);
    if (parser_is(parser, TOKEN_LEFT_BRACE)) {
        bool empty = parser_ahead(parser, 1)->kind == TOKEN_RIGHT_BRACE;
        bool dictionary = !empty && parser_at_dictionary(parser);
        return dictionary ? parse_expression(parser) : parse_block(parser, "block");
    }
    Node *statement = parse_simple_statement(parser, false);
    if (!statement) return NULL;
    if (statement->kind == NODE_EXPRESSION_STATEMENT) return statement->as.expression.value;
    Node *node = node_new(parser, NODE_BLOCK, begin);
    LIST_PUSH(parser, node->as.block.statements.items, node->as.block.statements.count, statement);
    return node_adopt(parser, node, statement) ? node : NULL;
}

// A statement that ends with its own `}` needs nothing behind it.
static bool ends_itself(const Node *node) {
    if (node->kind == NODE_EXPRESSION_STATEMENT) node = node->as.expression.value;
    switch (node->kind) {
    case NODE_IF:
    case NODE_MATCH:
    case NODE_TRY:
    case NODE_BLOCK:
    case NODE_WHILE:
    case NODE_LOOP:
    case NODE_FOR:
    case NODE_WITH:
    case NODE_LEARN: return true;
    default: return node->kind >= NODE_FUNCTION && node->kind != NODE_IMPORT;
    }
}

// How a form that begins with a word is written; NULL for other words.
static const char *written_form(const char *word) {
    static const char *const forms[][2] = {
        {"import", "import \"file.tl\""},
        {"struct", "struct Name { field: type }"},
        {"impl", "impl Name { fn method(self) { ... } }"},
        {"tensor", "tensor name: float32[2, 3] = value"},
        {"test", "test name { ... }"},
        {"bench", "bench name { ... }"},
        {"learn", "learn { objective: loss ... }"},
        {"with", "with device(\"cpu\") { ... }"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i][0], word) == 0) return forms[i][1];
    return NULL;
}

// `"a": 1` or `k: v` where a block's first statement stands.
static bool reads_as_key(const Parser *parser, const Node *value) {
    bool key = value && (value->kind == NODE_NAME || value->kind == NODE_STRING ||
                         value->kind == NODE_INT || value->kind == NODE_BOOL);
    return key && parser->statement_start > 0 &&
           parser->tokens.items[parser->statement_start - 1].kind == TOKEN_LEFT_BRACE;
}

// P { x } and P { x, y }.
static bool is_shorthand(const Parser *parser) {
    TokenKind after = (TokenKind)parser_ahead(parser, 2)->kind;
    ASSERT(parser->at > 0);
    return parser->tokens.items[parser->at - 1].kind == TOKEN_NAME &&
           parser_ahead(parser, 1)->kind == TOKEN_NAME &&
           (after == TOKEN_RIGHT_BRACE || after == TOKEN_COMMA || after == TOKEN_EQUAL);
}

// P { 3 } and P { 3, 4 }.
static bool is_nameless(const Parser *parser) {
    TokenKind value = (TokenKind)parser_ahead(parser, 1)->kind;
    TokenKind after = (TokenKind)parser_ahead(parser, 2)->kind;
    ASSERT(parser->at > 0);
    return parser->tokens.items[parser->at - 1].kind == TOKEN_NAME &&
           (value == TOKEN_INT || value == TOKEN_FLOAT || value == TOKEN_STRING) &&
           (after == TOKEN_RIGHT_BRACE || after == TOKEN_COMMA);
}

// `-- words`.
static bool reads_as_comment(const Parser *parser) {
    const Token *first = &parser->tokens.items[parser->statement_start];
    return first->kind == TOKEN_MINUS && first[1].kind == TOKEN_MINUS && !first[1].space_before;
}

// `elif x` and `elif (x) {`: the word that was meant as a keyword, or NULL. *before: what follows
// it.
static const Word *misused_word(Parser *parser, const Node *value, const char **before) {
    const Token *token = parser_peek(parser);
    if (!value || token->newline_before) return NULL;
    *before = parser_describe(parser, token);
    if (value->kind == NODE_NAME) return &value->as.name.word;
    bool head = value->kind == NODE_CALL && value->as.call.callee->kind == NODE_NAME &&
                token->kind == TOKEN_LEFT_BRACE;
    if (!head) return NULL;
    *before = "`(`";
    return &value->as.call.callee->as.name.word;
}

// objective = mean(e), ...: what should be a setting of a learn block.
static const char *help_of_setting(Parser *parser, const Node *node) {
    const Node *target = node->kind == NODE_ASSIGN ? node->as.assign.target : NULL;
    if (!target || target->kind != NODE_NAME) return NULL;
    const char *name = target->as.name.word.text;
    if (setting_find(name) == SETTING_COUNT) return NULL;
    return parser_say(parser, "a setting of a learn block is written `%s: ...`", name);
}

// main() { ... }
static bool is_main_called(const Node *value) {
    if (!value || value->kind != NODE_CALL || value->as.call.callee->kind != NODE_NAME)
        return false;
    return value->as.call.count == 0 &&
           strcmp(value->as.call.callee->as.name.word.text, "main") == 0;
}

static Node *fail_unfinished(Parser *parser, const Node *node) {
    const Token *token = parser_peek(parser);
    const Node *value = node->kind == NODE_EXPRESSION_STATEMENT ? node->as.expression.value : NULL;
    if (token->kind == TOKEN_ELSE)
        return FAIL(parser, .span = token->span, .message = "`else` without `if`");
    if (token->kind == TOKEN_CATCH)
        return FAIL(parser, .span = token->span, .message = "`catch` without `try`");
    const char *before, *foreign = parser_foreign_help(parser);
    const Word *word = misused_word(parser, value, &before);
    if (word) {
        const char *meant = keyword_suggest(word->text, word->length, foreign != NULL);
        const char *form = written_form(word->text);
        if (meant)
            return FAIL(parser, .span = word->span,
                        .message =
                            parser_say(parser, "unexpected `%s` before %s", word->text, before),
                        .help = form ? parser_say(parser, "this form is written %s", form)
                                     : parser_say(parser, "did you mean `%s`?", meant));
    }
    const char *help = NULL;
    bool argument = token->kind == TOKEN_NAME || token->kind == TOKEN_STRING ||
                    token->kind == TOKEN_FORMAT_STRING || token->kind == TOKEN_INT ||
                    token->kind == TOKEN_FLOAT;
    bool name = value && value->kind == NODE_NAME && !token->newline_before;
    bool builtin =
        name && catalog_find(value->as.name.word.text, value->as.name.word.length) != NULL;
    bool callable = token->kind == TOKEN_NAME ? builtin && !foreign : builtin || (name && !foreign);
    if (argument && callable)
        help = parser_say(parser, "a call is written %s(...)", value->as.name.word.text);
    if (token->kind == TOKEN_COMMA) help = "a tuple is written (a, b)";
    if (token->kind == TOKEN_COMMA && help_of_setting(parser, node))
        help = help_of_setting(parser, node);
    if (token->kind == TOKEN_IF && !token->newline_before)
        help = "a choice is written if c { a } else { b }";
    if (token->kind == TOKEN_COLON && reads_as_key(parser, value))
        help = "a dictionary in this place is written ({...}): braces alone begin a block";
    else if (token->kind == TOKEN_COLON && value && value->kind == NODE_NAME)
        help = "a variable with a type is declared by let name: type = value";
    if (reads_as_comment(parser)) help = "a comment begins with `//`";
    if (parser_factor_help(parser)) help = parser_factor_help(parser);
    if (token->kind == TOKEN_LEFT_BRACE && parser_ahead(parser, 1)->kind == TOKEN_DOT_DOT)
        help = parser_fields_help;
    if (token->kind == TOKEN_LEFT_BRACE && is_main_called(value))
        help = "written main { ... }, without parentheses, it runs by itself";
    if (token->kind == TOKEN_LEFT_BRACE && is_nameless(parser))
        help = "the fields of a struct have names, as in { x: value }";
    if (token->kind == TOKEN_LEFT_BRACE && is_shorthand(parser))
        help = parser_say(parser, "each field is written with its value, as in { %s: %s }",
                          parser_word(parser, parser_ahead(parser, 1)).text,
                          parser_word(parser, parser_ahead(parser, 1)).text);
    if (token->kind == TOKEN_ARROW || token->kind == TOKEN_FAT_ARROW)
        help = "a function without a name is written fn(x) { x * 2 }";
    return parser_fail_expected_help(parser, "a newline or `;` after this statement", help);
}

static void warn_division(Parser *parser) {
    SourcePos end = parser_end(parser);
    diagnostic_list_add(parser->diagnostics,
                        &(Diagnostic){.severity = SEVERITY_WARNING,
                                      .message = "this comment reads as the rest of a division",
                                      .help = parser_division_help,
                                      .span = {end, end}});
}

// Takes what separates statements; false after an error.
static bool end_statement(Parser *parser, const Node *node) {
    if (parser_at_division(parser)) warn_division(parser);
    if (parser_accept(parser, TOKEN_SEMICOLON)) return true;
    if (parser_at_statement_end(parser)) return true;
    if (ends_itself(node) && !parser_at_closer(parser) && !parser_is(parser, TOKEN_ELSE) &&
        !parser_is(parser, TOKEN_CATCH))
        return true;
    return fail_unfinished(parser, node) != NULL;
}

// Goes on to where the next statement begins: a new line or `;` outside the brackets that the
// failed statement had opened, or the `}` of the block around. A line that begins with a
// statement's keyword ends the statement even inside ( and [ , unless a brace was passed over on
// the way there.
static void synchronise(Parser *parser, const Context *context, size_t start) {
    ASSERT(parser->open.count >= context->open_count && start <= parser->at);
    size_t depth = parser->open.count - context->open_count, braces = 0;
    for (size_t i = context->open_count; i < parser->open.count; i++)
        braces += parser->tokens.items[parser->open.items[i]].kind == TOKEN_LEFT_BRACE;
    parser->open.count = context->open_count;
    parser->context = *context;
    if (parser->at == start) parser_next(parser);
    for (; !parser_is(parser, TOKEN_END); parser_next(parser)) {
        const Token *token = parser_peek(parser);
        if (token->newline_before && (depth == 0 || (braces == 0 && token_begins_statement(token))))
            return;
        switch (token->kind) {
        case TOKEN_LEFT_BRACE:
            braces++;
            depth++;
            break;
        case TOKEN_LEFT_PAREN:
        case TOKEN_LEFT_BRACKET: depth++; break;
        case TOKEN_RIGHT_BRACE:
            if (braces == 0) return;
            braces--;
            depth--;
            break;
        case TOKEN_RIGHT_PAREN:
        case TOKEN_RIGHT_BRACKET:
            if (depth > braces) depth--;
            break;
        case TOKEN_SEMICOLON:
            if (depth > 0) break;
            parser_next(parser);
            return;
        default: break;
        }
    }
}

// One statement with its end; NULL when it was given up.
Node *parse_statement(Parser *parser) {
    Context context = parser->context;
    ASSERT(parser->context.open_count <= parser->open.count);
    context.open_count = parser->open.count;
    size_t start = parser->at, outer_start = parser->statement_start;
    parser->statement_start = start;
    Node *node = NULL;
    bool found = false;
    node = parse_logic(parser, &found);
    if (!found) node = parse_declaration(parser, &found);
    if (!found) node = parse_simple_statement(parser, true);
    if (node && !end_statement(parser, node)) node = NULL;
    parser->statement_start = outer_start;
    if (!node) synchronise(parser, &context, start);
    return node;
}

static Node *fail_unclosed(Parser *parser, const Token *opener, const char *what) {
    ASSERT(opener->kind == TOKEN_LEFT_BRACE);
    return FAIL(parser, .span = {parser_end(parser), parser_end(parser)}, .message = "missing `}`",
                .notes[0].text = parser_say(parser, "this %s was opened here", what),
                .notes[0].span = opener->span);
}

static const char *help_of_body(const Parser *parser) {
    if (parser_is(parser, TOKEN_END)) return NULL;
    return parser_is(parser, TOKEN_FAT_ARROW)
               ? "a function without a name is written fn(x) { x * 2 }"
               : "statements that belong together stand in braces";
}

// { statements }, with newlines counting again whatever brackets stand around.
Node *parse_block(Parser *parser, const char *what) {
    if (!parser_is(parser, TOKEN_LEFT_BRACE))
        return parser_fail_expected_help(parser, parser_say(parser, "`{` to begin the %s", what),
                                         help_of_body(parser));
    const Token *opener = parser_peek(parser);
    if (!parser_enter(parser)) return NULL;
    Context outer = parser_open_bracket(parser);
    parser->context.in_block = true;
    NodeList list = {0};
    while (!parser_is(parser, TOKEN_RIGHT_BRACE) && !parser_is(parser, TOKEN_END)) {
        if (parser_accept(parser, TOKEN_SEMICOLON)) continue;
        Node *statement = parse_statement(parser);
        if (statement) LIST_PUSH(parser, list.items, list.count, statement);
    }
    if (parser_is(parser, TOKEN_END)) return fail_unclosed(parser, opener, what);
    parser_close_bracket(parser, &outer, what);
    parser_leave(parser);
    Node *node = node_new(parser, NODE_BLOCK, opener->span.begin);
    node->as.block.statements = list;
    for (size_t i = 0; i < list.count; i++)
        if (!node_adopt(parser, node, list.items[i])) return NULL;
    return node;
}

Node *parse_top_level(Parser *parser) {
    NodeList list = {0};
    while (!parser_is(parser, TOKEN_END)) {
        if (parser_accept(parser, TOKEN_SEMICOLON)) continue;
        if (parser_is(parser, TOKEN_RIGHT_BRACE)) {
            FAIL(parser, .span = parser_peek(parser)->span,
                 .message = "unexpected `}`: no block is open here");
            parser_next(parser);
            continue;
        }
        Node *statement = parse_statement(parser);
        if (statement) LIST_PUSH(parser, list.items, list.count, statement);
    }
    Node *node = node_new(parser, NODE_BLOCK, parser->file->base);
    node->as.block.statements = list;
    for (size_t i = 0; i < list.count; i++)
        if (!node_adopt(parser, node, list.items[i])) break;
    return node;
}
