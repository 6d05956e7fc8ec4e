// Logic programs: entities, relations, rules, retractions, queries. A fact is a call as the parser
// sees it; check knows which calls name relations.
#include <stdlib.h>

#include "parser/state.h"

// Word Name, with the name on the same line.
static bool at_named(const Parser *parser, const char *word) {
    const Token *next = parser_ahead(parser, 1);
    return parser_is_name(parser_peek(parser), word) && next->kind == TOKEN_NAME &&
           !next->newline_before;
}

// At Name(...): the token behind the closing parenthesis, or NULL.
static const Token *behind_call(const Parser *parser, size_t ahead) {
    const Token *open = parser_ahead(parser, ahead + 1);
    if (parser_ahead(parser, ahead)->kind != TOKEN_NAME || open->kind != TOKEN_LEFT_PAREN ||
        open->newline_before || open->value.partner == TOKEN_NO_PARTNER)
        return NULL;
    return &parser->tokens.items[open->value.partner + 1];
}

static bool is_arrow(const Token *token) {
    return token->kind == TOKEN_LESS && token[1].kind == TOKEN_MINUS && !token[1].space_before;
}

// --- declarations

// entity Person = {alice, bob}, entity City
static Node *parse_entity(Parser *parser) {
    ASSERT(parser_is_name(parser_peek(parser), "entity"));
    SourcePos begin = parser_skip(parser);
    Node *node = node_new(parser, NODE_ENTITY, begin);
    node->as.entity.name = parser_word(parser, parser_next(parser));
    node->as.entity.closed = parser_accept(parser, TOKEN_EQUAL);
    if (node->as.entity.closed) {
        if (!parser_is(parser, TOKEN_LEFT_BRACE))
            return parser_fail_expected(parser, "`{` to begin the names of the type");
        Context outer = parser_open_bracket(parser);
        while (!parser_at_closer(parser)) {
            Word name;
            if (!parser_take_name(parser, "the name of an entity", &name)) return NULL;
            LIST_PUSH(parser, node->as.entity.members, node->as.entity.member_count, name);
            if (!parser_accept(parser, TOKEN_COMMA)) break;
        }
        if (!parser_close_bracket(parser, &outer, "entity type")) return NULL;
    } else if (parser_is(parser, TOKEN_LEFT_BRACE) && !parser_at_new_line(parser)) {
        return parser_fail_expected_help(
            parser, "`=` before the names of the type",
            parser_say(parser, "a closed type is written entity %s = {first, second}",
                       node->as.entity.name.text));
    }
    return node_finish(parser, node);
}

static bool ends_column(const Parser *parser) {
    return parser_is(parser, TOKEN_COMMA) || parser_at_closer(parser);
}

// The word before a column's type that says what becomes of several values, or NULL.
static const char *take_merge(Parser *parser) {
    static const char *const words[] = {"min", "max", "union"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!parser_is_name(parser_peek(parser), words[i])) continue;
        parser_next(parser);
        return words[i];
    }
    return NULL;
}

// x: Person, d: min int
static bool parse_column(Parser *parser, Node *node) {
    Word name;
    const char *merge = NULL;
    TypeNode *type = NULL;
    if (!parser_take_name(parser, "the name of a column", &name)) return false;
    if (parser_accept(parser, TOKEN_COLON)) {
        merge = take_merge(parser);
        if (!(merge && ends_column(parser)) && !(type = parse_type(parser))) return false;
        if (parser_is(parser, TOKEN_NAME) && !parser_at_new_line(parser)) {
            parser_fail_expected_help(parser, "`,` or `)` behind the type of this column",
                                      "`min`, `max` and `union` may stand in front of a type");
            return false;
        }
    }
    size_t count = node->as.relation.count, again = count, third = count;
    LIST_PUSH(parser, node->as.relation.columns, count, name);
    LIST_PUSH(parser, node->as.relation.types, again, type);
    LIST_PUSH(parser, node->as.relation.merges, third, merge);
    node->as.relation.count = count;
    return true;
}

// embed float32[64] learnable
static bool parse_embed(Parser *parser, Node *node) {
    ASSERT(parser_is_name(parser_peek(parser), "embed"));
    parser_next(parser);
    TypeNode *type = parse_type(parser);
    if (!type) return false;
    type->learnable = parser_take_learnable(parser);
    node->as.relation.embed = type;
    return true;
}

// relation Parent(x: Person, y: Person) equivalence
static Node *parse_relation(Parser *parser) {
    ASSERT(parser_is_name(parser_peek(parser), "relation"));
    SourcePos begin = parser_skip(parser);
    Node *node = node_new(parser, NODE_RELATION, begin);
    node->as.relation.name = parser_word(parser, parser_next(parser));
    if (!parser_is(parser, TOKEN_LEFT_PAREN))
        return parser_fail_expected(parser, "`(` to begin the columns");
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        if (!parse_column(parser, node)) return NULL;
        if (!parser_accept(parser, TOKEN_COMMA)) break;
    }
    if (!parser_close_bracket(parser, &outer, "relation")) return NULL;
    const Token *token = parser_peek(parser);
    if (parser_is_name(token, "embed") && !parser_at_new_line(parser) && !parse_embed(parser, node))
        return NULL;
    if (parser_is_name(token, "equivalence") && !parser_at_new_line(parser)) {
        parser_next(parser);
        node->as.relation.equivalence = true;
    } else if (parser_is(parser, TOKEN_NAME) && !parser_at_new_line(parser)) {
        return parser_fail_expected_help(parser, "the end of this relation",
                                         "`equivalence` or `embed` may stand behind its columns");
    }
    return node_finish(parser, node);
}

// --- clauses

static Clause *clause_new(Parser *parser, Node *call) {
    ASSERT(call->kind == NODE_CALL);
    Clause *clause = arena_allocate(parser->arena, sizeof *clause);
    clause->atom.call = call;
    return clause;
}

// Name(a, b) alone, without what may follow a call.
static Node *parse_atom(Parser *parser) {
    SourcePos begin = parser_begin(parser);
    if (!parser_is(parser, TOKEN_NAME)) return parser_fail_expected(parser, "a relation");
    Node *callee = node_new(parser, NODE_NAME, begin);
    callee->as.name.word = parser_word(parser, parser_next(parser));
    callee->span.end = parser_end(parser);
    if (!parser_is(parser, TOKEN_LEFT_PAREN))
        return parser_fail_expected(parser, "`(` to begin what the relation is about");
    return parse_call(parser, callee, begin);
}

// The variable of `N = M + 1` may stand on either side.
static bool parse_binding(Parser *parser, GoalNode *goal) {
    ASSERT(goal->value != NULL);
    parser_next(parser);
    Node *right = parse_expression(parser);
    if (!right) return false;
    bool swap = goal->value->kind != NODE_NAME && right->kind == NODE_NAME;
    goal->kind = GOAL_NODE_BIND;
    goal->name = swap ? right : goal->value;
    goal->value = swap ? goal->value : right;
    if (goal->name->kind == NODE_NAME) return true;
    FAIL(parser, .span = goal->name->span, .message = "`=` gives a value to a variable",
         .help = "to compare two values, write `==`");
    return false;
}

static bool parse_goal(Parser *parser, GoalNode *goal) {
    SourcePos begin = parser_begin(parser);
    *goal = (GoalNode){.kind = GOAL_NODE_TEST, .value = parse_expression(parser)};
    Node *value = goal->value;
    if (!value) return false;
    if (value->kind == NODE_CALL && value->as.call.callee->kind == NODE_NAME) {
        goal->kind = GOAL_NODE_ATOM;
    } else if (value->kind == NODE_UNARY && value->op == OPERATOR_NOT &&
               value->as.binary.left->kind == NODE_CALL &&
               value->as.binary.left->as.call.callee->kind == NODE_NAME) {
        goal->kind = GOAL_NODE_NOT;
    } else if (value->kind == NODE_BINARY && value->op == OPERATOR_IN &&
               value->as.binary.left->kind == NODE_NAME) {
        goal->kind = GOAL_NODE_MEMBER;
        goal->name = value->as.binary.left;
        goal->value = value->as.binary.right;
    }
    if (parser_is(parser, TOKEN_EQUAL) && !parse_binding(parser, goal)) return false;
    goal->span = (Span){begin, parser_end(parser)};
    return true;
}

static bool parse_goals(Parser *parser, Clause *clause, bool several) {
    do {
        GoalNode goal;
        if (!parse_goal(parser, &goal)) return false;
        LIST_PUSH(parser, clause->goals, clause->goal_count, goal);
    } while (several && parser_accept(parser, TOKEN_COMMA));
    return true;
}

static Node *clause_node(Parser *parser, Node *node, const Clause *clause) {
    ASSERT(clause->atom.call != NULL);
    node->span.end = parser_end(parser);
    bool fits = node_adopt(parser, node, clause->atom.call);
    for (size_t i = 0; i < clause->goal_count && fits; i++)
        fits = node_adopt(parser, node, clause->goals[i].value);
    return fits ? node : NULL;
}

// Head(X, Y) <- Goal(X, Z), Goal(Z, Y)
static Node *parse_rule(Parser *parser) {
    Node *node = node_new(parser, NODE_RULE, parser_begin(parser));
    Node *call = parse_atom(parser);
    if (!call) return NULL;
    node->as.clause = clause_new(parser, call);
    parser_next(parser);
    parser_next(parser); // the two tokens of the arrow
    if (!parse_goals(parser, node->as.clause, true)) return NULL;
    return clause_node(parser, node, node->as.clause);
}

// w :: Fact(a), w :: Head(X) <- Goal(X): a `::` with a space before it on the line of the weight.
static bool is_weighted(const Parser *parser, const Token *token) {
    for (bool first = true; first || !token->newline_before; token++, first = false) {
        if (token->kind == TOKEN_COLON_COLON && token->space_before)
            return !first && token[-1].kind != TOKEN_GREATER; // Box<int> ::new()
        if (token->kind == TOKEN_EQUAL) return false;
        if (token->kind == TOKEN_END || token->kind == TOKEN_SEMICOLON ||
            token->kind == TOKEN_RIGHT_BRACE || token->kind == TOKEN_LEFT_BRACE)
            return false;
        bool opens = token->kind == TOKEN_LEFT_PAREN || token->kind == TOKEN_LEFT_BRACKET;
        if (opens && token->value.partner != TOKEN_NO_PARTNER)
            token = &parser->tokens.items[token->value.partner];
    }
    return false;
}

static Node *parse_weighted_clause(Parser *parser) {
    SourcePos begin = parser_begin(parser);
    bool outer = parser->context.in_weight;
    parser->context.in_weight = true;
    Node *weight = parse_expression(parser);
    parser->context.in_weight = outer;
    if (!weight) return NULL;
    Span mark = parser_peek(parser)->span;
    if (!parser_accept(parser, TOKEN_COLON_COLON))
        return parser_fail_expected(parser, "`::` behind the weight");
    const Token *behind = behind_call(parser, 0);
    Node *node = NULL;
    if (behind && is_arrow(behind)) {
        node = parse_rule(parser);
    } else {
        Node *call = parse_atom(parser);
        if (!call) return NULL;
        node = node_new(parser, NODE_FACT, begin);
        node->as.clause = clause_new(parser, call);
        node = clause_node(parser, node, node->as.clause);
    }
    if (!node) return NULL;
    node->span.begin = begin;
    node->op_span = mark;
    node->as.clause->weight = weight;
    return node_adopt(parser, node, weight) ? node : NULL;
}

// Behind a weighted fact: `;` and one more on the same line.
static bool at_alternative(const Parser *parser) {
    const Token *next = parser_ahead(parser, 1);
    return parser_is(parser, TOKEN_SEMICOLON) && !parser_at_new_line(parser) &&
           !next->newline_before && is_weighted(parser, next);
}

// 0.2 :: Fact(a); 0.8 :: Fact(b)
static Node *parse_weighted(Parser *parser) {
    SourcePos begin = parser_begin(parser);
    Node *fact = parse_weighted_clause(parser);
    if (!fact || fact->kind != NODE_FACT || !at_alternative(parser)) return fact;
    Node *node = node_new(parser, NODE_ONE_OF, begin);
    while (true) {
        if (fact->kind != NODE_FACT)
            return FAIL(parser, .span = fact->span,
                        .message = "one of several is a fact, not a rule",
                        .help = "a rule stands on a line of its own");
        if (!node_adopt(parser, node, fact)) return NULL;
        LIST_PUSH(parser, node->as.alternatives.items, node->as.alternatives.count, fact);
        if (!at_alternative(parser)) break;
        parser_next(parser);
        if (!(fact = parse_weighted_clause(parser))) return NULL;
    }
    return node_finish(parser, node);
}

// Digit(i, d) ~ P[i, d]
static Node *parse_drawn(Parser *parser) {
    Node *node = node_new(parser, NODE_DRAWN, parser_begin(parser));
    Node *call = parse_atom(parser);
    if (!call) return NULL;
    node->op_span = parser_next(parser)->span;
    Node *tensor = parse_expression(parser);
    if (!tensor) return NULL;
    if (tensor->kind != NODE_INDEX)
        return FAIL(parser, .span = tensor->span,
                    .message = "behind `~` stands a tensor with its indexes",
                    .help = "as in Digit(i, d) ~ P[i, d]: row i says how probable each d is");
    node->as.clause = clause_new(parser, call);
    node->as.clause->weight = tensor;
    return node_adopt(parser, node, tensor) ? clause_node(parser, node, node->as.clause) : NULL;
}

static Node *parse_retract(Parser *parser) {
    Node *node = node_new(parser, NODE_RETRACT, parser_begin(parser));
    parser_next(parser);
    Node *call = parse_atom(parser);
    if (!call) return NULL;
    node->as.clause = clause_new(parser, call);
    return clause_node(parser, node, node->as.clause);
}

// --- queries

Node *parse_query(Parser *parser, Node *call, SourcePos begin) {
    ASSERT(call->kind == NODE_CALL && parser_is(parser, TOKEN_QUESTION));
    Node *node = node_new(parser, NODE_QUERY, begin);
    node->as.query.clause = clause_new(parser, call);
    parser_next(parser);
    if (parser_is_name(parser_peek(parser), "where") && !parser_at_new_line(parser)) {
        parser_next(parser);
        // Within brackets a comma belongs to these.
        bool several = !parser->context.newlines_free;
        if (!parse_goals(parser, node->as.query.clause, several)) return NULL;
    }
    return clause_node(parser, node, node->as.query.clause);
}

// A call of a method that asks the program block which is its receiver.
Node *parse_weighed_query(Parser *parser, Node *method, SourcePos begin) {
    ASSERT(method->kind == NODE_METHOD_CALL);
    Node *callee = node_new(parser, NODE_NAME, method->as.method.name.span.begin);
    callee->as.name.word = method->as.method.name;
    callee->span.end = method->as.method.name.span.end;
    Node *call = node_new(parser, NODE_CALL, callee->span.begin);
    call->span.end = method->span.end;
    call->as.call.callee = callee;
    call->as.call.arguments = method->as.method.arguments;
    call->as.call.count = method->as.method.count;
    call->as.call.arguments_span = method->as.method.arguments_span;
    call->height = method->height;
    Node *node = parse_query(parser, call, begin);
    if (!node) return NULL;
    node->as.query.program = method->as.method.receiver;
    return node;
}

static const struct {
    const char *word;
    QueryKind kind;
} modes[] = {{"forward", QUERY_FORWARD},
             {"backward", QUERY_BACKWARD},
             {"symbolic", QUERY_SYMBOLIC},
             {"gradient", QUERY_GRADIENT}};

static bool take_mode(Parser *parser, QueryKind *kind) {
    const Token *token = parser_peek(parser);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (!parser_is_name(token, modes[i].word)) continue;
        *kind = modes[i].kind;
        parser_next(parser);
        return true;
    }
    return parser_fail_expected(parser, "forward, backward, symbolic or gradient") != NULL;
}

// `explain Name?` is about every row: a call without arguments, which check fills in.
static Node *parse_bare_atom(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_NAME));
    SourcePos begin = parser_begin(parser);
    Node *callee = node_new(parser, NODE_NAME, begin);
    callee->as.name.word = parser_word(parser, parser_next(parser));
    callee->span.end = parser_end(parser);
    Node *call = node_new(parser, NODE_CALL, begin);
    call->as.call.callee = callee;
    call->span.end = callee->span.end;
    return node_adopt(parser, call, callee) ? call : NULL;
}

// Name. of a program block that weighs what is asked.
static Node *parse_program_name(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_NAME));
    Node *name = node_new(parser, NODE_NAME, parser_begin(parser));
    name->as.name.word = parser_word(parser, parser_next(parser));
    name->span.end = parser_end(parser);
    parser_next(parser);
    return name;
}

// Name(...)? where ...
static Node *parse_asked(Parser *parser, QueryKind kind, SourcePos begin) {
    bool member = parser_is(parser, TOKEN_NAME) && parser_ahead(parser, 1)->kind == TOKEN_DOT;
    Node *program = member ? parse_program_name(parser) : NULL;
    bool bare = parser_ahead(parser, 1)->kind == TOKEN_QUESTION;
    Node *call = bare ? parse_bare_atom(parser) : parse_atom(parser);
    if (!call) return NULL;
    if (!parser_is(parser, TOKEN_QUESTION))
        return parser_fail_expected(parser, "`?` to end the query");
    Node *node = parse_query(parser, call, begin);
    if (!node) return NULL;
    node->as.query.query = kind;
    node->as.query.program = program;
    if (program && kind != QUERY_WHY)
        return FAIL(parser, .span = program->span,
                    .message = "only queries and `why` ask a program block",
                    .help = "leave out the name before the point");
    bool why = kind == QUERY_WHY || kind == QUERY_WHY_NOT;
    if (why && node->as.query.clause->goal_count > 0)
        return FAIL(parser, .span = node->span, .message = "`why` asks about a relation alone",
                    .help = "leave out `where`; name the values that are meant");
    if (!parser_is_name(parser_peek(parser), "with") ||
        !parser_is_name(parser_ahead(parser, 1), "temperature"))
        return node;
    parser_next(parser);
    parser_next(parser);
    Node *temperature = node->as.query.temperature = parse_expression(parser);
    node->span.end = parser_end(parser);
    return temperature && node_adopt(parser, node, temperature) ? node : NULL;
}

// `query` before what is asked, which changes nothing.
static void skip_query(Parser *parser) {
    if (at_named(parser, "query")) parser_next(parser);
}

static bool at_infer(const Parser *parser) {
    bool query = parser_is_name(parser_ahead(parser, 2), "query") &&
                 parser_ahead(parser, 3)->kind == TOKEN_NAME;
    const Token *behind = behind_call(parser, query ? 3 : 2);
    return at_named(parser, "infer") && behind;
}

static bool at_why(const Parser *parser) {
    if (!parser_is_name(parser_peek(parser), "why")) return false;
    size_t ahead = parser_ahead(parser, 1)->kind == TOKEN_NOT ? 2 : 1;
    const Token *behind = behind_call(parser, ahead);
    if (parser_ahead(parser, ahead + 1)->kind == TOKEN_DOT) behind = behind_call(parser, ahead + 2);
    return behind;
}

// explain Name(..)?, explain Name?
static bool at_explain(const Parser *parser) {
    if (!at_named(parser, "explain")) return false;
    const Token *behind = behind_call(parser, 1);
    return behind || parser_ahead(parser, 2)->kind == TOKEN_QUESTION;
}

bool parser_at_inference(const Parser *parser) {
    return at_infer(parser) || at_why(parser) || at_explain(parser) || at_named(parser, "query");
}

Node *parse_inference(Parser *parser) {
    SourcePos begin = parser_begin(parser);
    QueryKind kind = QUERY_WHY;
    const Token *word = parser_next(parser);
    if (parser_is_name(word, "query")) {
        kind = QUERY_ASK;
    } else if (parser_is_name(word, "infer")) {
        if (!take_mode(parser, &kind)) return NULL;
        skip_query(parser);
    } else if (parser_is_name(word, "explain")) {
        kind = QUERY_EXPLAIN;
    } else if (parser_accept(parser, TOKEN_NOT)) {
        kind = QUERY_WHY_NOT;
    }
    return parse_asked(parser, kind, begin);
}

// infer { ... } and infer forward { ... }
static bool at_infer_block(const Parser *parser) {
    const Token *next = parser_ahead(parser, 1), *behind = parser_ahead(parser, 2);
    return parser_is_name(parser_peek(parser), "infer") &&
           (next->kind == TOKEN_LEFT_BRACE ||
            (at_named(parser, "infer") && behind->kind == TOKEN_LEFT_BRACE));
}

// infer { forward P(..)?  symbolic: query Q(..)? }, infer forward { P(..)? Q(..)? }
static Node *parse_infer_block(Parser *parser) {
    Node *node = node_new(parser, NODE_INFER, parser_begin(parser));
    QueryKind shared = QUERY_ASK;
    parser_next(parser);
    if (!parser_is(parser, TOKEN_LEFT_BRACE) && !take_mode(parser, &shared)) return NULL;
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        if (parser_accept(parser, TOKEN_SEMICOLON) || parser_accept(parser, TOKEN_COMMA)) continue;
        SourcePos begin = parser_begin(parser);
        QueryKind kind = shared;
        bool bare = parser_ahead(parser, 1)->kind == TOKEN_LEFT_PAREN || at_named(parser, "query");
        if (!bare && !take_mode(parser, &kind)) return NULL;
        if (!bare) parser_accept(parser, TOKEN_COLON);
        skip_query(parser);
        Node *query = parse_asked(parser, kind, begin);
        if (!query || !node_adopt(parser, node, query)) return NULL;
        LIST_PUSH(parser, node->as.inferred.items, node->as.inferred.count, query);
    }
    if (!parser_close_bracket(parser, &outer, "infer block")) return NULL;
    return node_finish(parser, node);
}

Node *parse_logic(Parser *parser, bool *found) {
    const Token *behind = behind_call(parser, 0);
    *found = true;
    if (behind && is_arrow(behind)) return parse_rule(parser);
    if (behind && behind->kind == TOKEN_TILDE) return parse_drawn(parser);
    if (is_weighted(parser, parser_peek(parser))) return parse_weighted(parser);
    if (at_named(parser, "entity")) return parse_entity(parser);
    if (at_named(parser, "relation")) return parse_relation(parser);
    if (at_named(parser, "retract")) return parse_retract(parser);
    if (at_infer_block(parser)) return parse_infer_block(parser);
    if (parser_at_program(parser)) return parse_program_block(parser);
    if (parser_at_embedding(parser)) return parse_embedding(parser);
    *found = false;
    return NULL;
}
