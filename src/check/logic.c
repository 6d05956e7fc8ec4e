// Clauses: facts, rules, queries. Their atoms are told from conditions, and what a condition
// computes is made a function of the clause's variables where the engine cannot compute it itself.
#include <stdlib.h>

#include "check/logic_checker.h"
#include "logic/plan.h"
#include "parser/walk.h"

// --- expressions

// Names of called functions and of what the expression binds itself are not the clause's.
typedef struct Names {
    ClauseCheck *check;
    VECTOR(const Node *) callees;
    VECTOR(const char *) bound;
    VECTOR(int) variables; // of the clause, each once
} Names;

static bool is_callee(const Names *names, const Node *node) {
    for (size_t i = 0; i < names->callees.count; i++)
        if (names->callees.items[i] == node) return true;
    return false;
}

static bool is_bound(const Names *names, const char *text) {
    for (size_t i = 0; i < names->bound.count; i++)
        if (strcmp(names->bound.items[i], text) == 0) return true;
    return false;
}

static void names_use(Names *names, int variable) {
    for (size_t i = 0; i < names->variables.count; i++)
        if (names->variables.items[i] == variable) return;
    VECTOR_PUSH(&names->variables, variable);
}

void node_make_string(Node *node) {
    Word word = node->as.name.word;
    node->kind = NODE_STRING;
    node->as.string.bytes = word.text;
    node->as.string.length = word.length;
}

static void report_outside(Checker *checker, const Node *node) {
    ReportExtra extra = {.help = "rules see only their own variables: make it a fact, or give it "
                                 "to a query by `where`"};
    report(checker, STATUS_NAME, node->span, &extra,
           "`%s` is a variable of the program, not of "
           "this rule",
           node->as.name.word.text);
}

// A name within an expression: a variable of the clause, a constant, or something of the program.
static void visit_name(Names *names, Node *node) {
    ClauseCheck *check = names->check;
    const Word *word = &node->as.name.word;
    int variable = clause_variable(check->clause, word);
    if (variable >= 0) {
        names_use(names, variable);
        return;
    }
    Binding *binding = name_resolve(check->checker, word);
    if (binding && check->kind == CLAUSE_RULE && binding_is_variable(binding) &&
        !logic_is_constant(check->checker, word)) {
        if (word_is_capital(word))
            names_use(names, clause_variable_get(check, word));
        else
            report_outside(check->checker, node);
        return;
    }
    if (binding && !logic_is_constant(check->checker, word)) return;
    int kind = term_kind_of(check, word);
    if (kind == TERM_NODE_VARIABLE || kind == TERM_NODE_NAME)
        names_use(names, clause_variable_get(check, word));
    else if (kind == TERM_NODE_CONSTANT)
        node_make_string(node);
}

// sum(N) in a body or within an expression would be the sum of the one value that N has there. A
// number stands for it in what is checked further.
static void check_aggregated(const ClauseCheck *check, Node *call) {
    const char *aggregate = aggregate_of(call);
    const Node *value = aggregate ? call->as.call.arguments[0].value : NULL;
    if (!value || value->kind != NODE_NAME) return;
    const Binding *function = name_resolve(check->checker, &call->as.call.callee->as.name.word);
    int variable = clause_variable(check->clause, &value->as.name.word);
    bool builtin = !function || function->kind == BINDING_BUILTIN;
    if (!builtin || variable < 0 || !variable_is_single(check->clause, variable)) return;
    SCOPED_TEXT(help);
    text_format(&help,
                "another rule has it, Other(%s(%s)) <- ...; this one computes with T of Other(T)",
                aggregate, value->as.name.word.text);
    ReportExtra extra = {.help = text_get(&help)};
    report(check->checker, STATUS_TYPE, call->span, &extra,
           "`%s` of `%s` is an aggregate, which stands alone as an argument of a rule's head",
           aggregate, value->as.name.word.text);
    call->kind = NODE_INT;
    call->as.integer = 1;
}

static void visit_expression(void *context, Node *node) {
    Names *names = context;
    check_aggregated(names->check, node);
    if (node->kind == NODE_CALL) VECTOR_PUSH(&names->callees, node->as.call.callee);
    if (node->kind == NODE_NAME && !is_callee(names, node) &&
        !is_bound(names, node->as.name.word.text))
        visit_name(names, node);
}

static void visit_function(void *context, FunctionNode *function) {
    Names *names = context;
    for (size_t i = 0; i < function->parameter_count; i++)
        VECTOR_PUSH(&names->bound, function->parameters[i].name.text);
}

// for x in ... within the expression: x is its own.
static void visit_pattern(void *context, Pattern *pattern) {
    Names *names = context;
    if (pattern->kind == PATTERN_BIND) VECTOR_PUSH(&names->bound, pattern->name.text);
}

// What the engine computes itself: literals, variables, + - * / % and a minus sign.
static bool is_native(const Node *node) {
    switch (node->kind) {
    case NODE_INT:
    case NODE_FLOAT:
    case NODE_BOOL:
    case NODE_STRING:
    case NODE_NAME: return true;
    case NODE_UNARY: return node->op == OPERATOR_NEG && is_native(node->as.binary.left);
    case NODE_BINARY:
        return node->op <= OPERATOR_MOD && is_native(node->as.binary.left) &&
               is_native(node->as.binary.right);
    default: return false;
    }
}

static bool is_comparison(const Node *node) {
    return node->kind == NODE_BINARY && node->op >= OPERATOR_EQ && node->op <= OPERATOR_GE &&
           is_native(node->as.binary.left) && is_native(node->as.binary.right);
}

// Whether a name of the expression is something of the program, not of the clause.
static bool reads_program(const Clause *clause, const Node *node) {
    if (node->kind == NODE_NAME) return clause_variable(clause, &node->as.name.word) < 0;
    if (node->kind == NODE_UNARY) return reads_program(clause, node->as.binary.left);
    return node->kind == NODE_BINARY && (reads_program(clause, node->as.binary.left) ||
                                         reads_program(clause, node->as.binary.right));
}

// fn(X, Y) { value }, of the variables that the value reads.
static void goal_make_function(ClauseCheck *check, GoalNode *goal, const Names *names) {
    Arena *arena = check->checker->arena;
    FunctionNode *function = arena_allocate(arena, sizeof *function);
    function->parameter_count = names->variables.count;
    function->parameters = arena_allocate(arena, names->variables.count * sizeof(Parameter));
    goal->parameters = arena_allocate(arena, names->variables.count * sizeof(int));
    for (size_t i = 0; i < names->variables.count; i++) {
        goal->parameters[i] = names->variables.items[i];
        function->parameters[i].name = check->clause->variables.items[goal->parameters[i]];
    }
    function->what = check->kind == CLAUSE_RULE ? "a rule" : "a query";
    function->body = goal->value;
    function->head = goal->span;
    goal->function = arena_allocate(arena, sizeof *goal->function);
    *goal->function = (Node){.kind = NODE_LAMBDA, .span = goal->span};
    goal->function->as.function = function;
    check_expression(check->checker, goal->function);
}

static void check_value(ClauseCheck *check, GoalNode *goal) {
    Names names = {.check = check};
    Walker walker = {.context = &names,
                     .node = visit_expression,
                     .function = visit_function,
                     .pattern = visit_pattern};
    walk_node(&walker, goal->value);
    bool native = goal->kind == GOAL_NODE_TEST
                      ? is_comparison(goal->value)
                      : goal->kind == GOAL_NODE_BIND && is_native(goal->value);
    if (!native || reads_program(check->clause, goal->value))
        goal_make_function(check, goal, &names);
    VECTOR_FREE(&names.callees);
    VECTOR_FREE(&names.bound);
    VECTOR_FREE(&names.variables);
}

// --- goals

static Node *goal_call(const GoalNode *goal) {
    return goal->kind == GOAL_NODE_NOT ? goal->value->as.binary.left : goal->value;
}

static bool calls_name(const Node *call) {
    return call->kind == NODE_CALL && call->as.call.callee->kind == NODE_NAME;
}

static bool names_nothing(Checker *checker, const Node *call) {
    return calls_name(call) && !name_candidates(checker, &call->as.call.callee->as.name.word);
}

// The call of a relation that `and` or `or` joins with something, or NULL.
static Node *joined_atom(Checker *checker, Node *node) {
    if (node->kind == NODE_UNARY) return joined_atom(checker, node->as.binary.left);
    if (node->kind == NODE_CALL) return logic_relation(checker, node) ? node : NULL;
    if (node->kind != NODE_LOGICAL) return NULL;
    Node *left = joined_atom(checker, node->as.binary.left);
    return left ? left : joined_atom(checker, node->as.binary.right);
}

// Whether it is a condition that holds a goal; that is reported, and no goal is left of it.
static bool report_joined(ClauseCheck *check, GoalNode *goal) {
    bool logical = goal->kind == GOAL_NODE_TEST && goal->value->kind == NODE_LOGICAL;
    Node *call = logical ? joined_atom(check->checker, goal->value) : NULL;
    if (!call) return false;
    bool both = goal->value->op == OPERATOR_AND;
    ReportExtra extra = {.help = both ? "goals that all must hold are separated by commas"
                                      : "what holds in several ways has a rule for each"};
    report(check->checker, STATUS_SYNTAX, goal->value->op_span, &extra,
           "`%s` joins conditions, but %s is a relation", both ? "and" : "or",
           call->as.call.callee->as.name.word.text);
    goal->kind = GOAL_NODE_ATOM;
    goal->atom.call = call;
    return true;
}

// Which goals are atoms must be known before any name is: columns may name variables.
static void goal_find_relation(ClauseCheck *check, GoalNode *goal) {
    if (report_joined(check, goal)) return;
    if (goal->kind != GOAL_NODE_ATOM && goal->kind != GOAL_NODE_NOT) return;
    Node *call = goal_call(goal);
    goal->atom.call = call;
    goal->atom.binding = logic_relation(check->checker, call);
    if (goal->atom.binding) {
        goal->atom.binding->used = true;
        return;
    }
    if (names_nothing(check->checker, call)) {
        report_unknown(check->checker, &call->as.call.callee->as.name.word, WANTED_RELATION);
        return;
    }
    goal->kind = GOAL_NODE_TEST;
}

static void check_goal_name(ClauseCheck *check, GoalNode *goal) {
    const Word *word = &goal->name->as.name.word;
    int kind = term_kind_of(check, word);
    if (kind != TERM_NODE_VARIABLE && kind != TERM_NODE_NAME) {
        ReportExtra extra = {.help = "a variable of a rule begins with a capital letter"};
        report(check->checker, STATUS_NAME, goal->name->span, &extra,
               "`%s` is not a variable of this %s", word->text,
               check->kind == CLAUSE_RULE ? "rule" : "query");
    }
    goal->variable = clause_variable_get(check, word);
}

static void check_goal(ClauseCheck *check, GoalNode *goal) {
    if (goal->kind == GOAL_NODE_ATOM || goal->kind == GOAL_NODE_NOT) {
        if (goal->atom.binding) check_atom(check, &goal->atom, false);
        return;
    }
    if (goal->kind != GOAL_NODE_TEST) check_goal_name(check, goal);
}

// An argument of a rule's atom that is to be computed: a goal of its own that gives a variable.
static void atom_add_goals(ClauseCheck *check, const AtomNode *atom) {
    for (size_t i = 0; i < atom->count; i++) {
        const TermNode *term = &atom->terms[i];
        if (term->kind != TERM_NODE_VALUE) continue;
        Clause *clause = check->clause;
        GoalNode *goals =
            arena_allocate(check->checker->arena, (clause->goal_count + 1) * sizeof *goals);
        memcpy(goals, clause->goals, clause->goal_count * sizeof *goals);
        goals[clause->goal_count] = (GoalNode){.kind = GOAL_NODE_BIND,
                                               .span = term->value->span,
                                               .value = term->value,
                                               .variable = term->variable};
        clause->goals = goals;
        clause->goal_count++;
    }
}

// Whether the rule names variables as its columns are named: then single letters are variables.
static bool is_older(ClauseCheck *check) {
    const Node *call = check->clause->atom.call;
    for (size_t i = 0; i < call->as.call.count; i++) {
        const Node *value = call->as.call.arguments[i].value;
        if (value->kind == NODE_NAME && !word_is_capital(&value->as.name.word) &&
            term_kind_of(check, &value->as.name.word) == TERM_NODE_VARIABLE)
            return true;
    }
    return false;
}

// Solutions of aggregated rules and answers of queries are rows of all variables.
static void check_limits(const ClauseCheck *check) {
    const Clause *clause = check->clause;
    bool rows = check->kind == CLAUSE_QUERY;
    for (size_t i = 0; i < clause->atom.count; i++) rows |= clause->atom.terms[i].aggregate != NULL;
    int most = rows ? ARITY_MAX : VARIABLES_MAX - 1;
    if (clause->variables.count > (size_t)most)
        report(check->checker, STATUS_ARITY, clause->atom.call->span, NULL,
               "this has %zu variables; at most %d are possible", clause->variables.count, most);
    if (clause->goal_count >= POSITIONS_MAX)
        report(check->checker, STATUS_ARITY, clause->atom.call->span, NULL,
               "this has %zu goals; at most %d are possible", clause->goal_count,
               POSITIONS_MAX - 1);
}

static void check_clause(ClauseCheck *check) {
    Clause *clause = check->clause;
    for (size_t i = 0; i < clause->goal_count; i++) goal_find_relation(check, &clause->goals[i]);
    if (check->kind == CLAUSE_RULE) check->older = is_older(check);
    size_t written = clause->goal_count;
    check_atom(check, &clause->atom, check->kind == CLAUSE_RULE);
    for (size_t i = 0; i < written; i++) check_goal(check, &clause->goals[i]);
    check_clause_types(check);
    if (check->kind == CLAUSE_RULE) atom_add_goals(check, &clause->atom);
    for (size_t i = 0; i < written; i++)
        if (check->kind == CLAUSE_RULE) atom_add_goals(check, &clause->goals[i].atom);
    for (size_t i = 0; i < clause->goal_count; i++)
        if (clause->goals[i].kind >= GOAL_NODE_TEST) check_value(check, &clause->goals[i]);
    check_limits(check);
}

// --- statements

static Binding *clause_relation(Checker *checker, const Node *call) {
    Binding *binding = logic_relation(checker, call);
    if (binding) {
        binding->used = true;
    } else if (names_nothing(checker, call)) {
        report_unknown(checker, &call->as.call.callee->as.name.word, WANTED_RELATION);
    } else if (!calls_name(call)) {
        report(checker, STATUS_TYPE, call->as.call.callee->span, NULL,
               "this is not the name of a relation");
    } else {
        report(checker, STATUS_TYPE, call->as.call.callee->span, NULL, "`%s` is not a relation",
               call->as.call.callee->as.name.word.text);
    }
    return binding;
}

static void check_clause_of(ClauseCheck check) {
    check.clause->atom.binding = clause_relation(check.checker, check.clause->atom.call);
    if (check.clause->atom.binding) check_clause(&check);
}

static void check_plain_clause(Checker *checker, Clause *clause, ClauseKind kind) {
    check_clause_of((ClauseCheck){.checker = checker, .clause = clause, .kind = kind});
}

// `Parnt(alice, bob)`: nothing has that name, but all looks like a fact.
static bool looks_like_fact(Checker *checker, const Node *call) {
    if (call->as.call.callee->kind != NODE_NAME || !names_nothing(checker, call) ||
        !word_is_capital(&call->as.call.callee->as.name.word))
        return false;
    for (size_t i = 0; i < call->as.call.count; i++)
        if (call->as.call.arguments[i].name.text) return false;
    return true;
}

bool check_fact(Checker *checker, Node *statement) {
    Node *call = statement->as.expression.value;
    if (call->kind != NODE_CALL) return false;
    if (!logic_relation(checker, call)) {
        if (!looks_like_fact(checker, call)) return false;
        report_unknown(checker, &call->as.call.callee->as.name.word, WANTED_RELATION);
        return true;
    }
    statement->kind = NODE_FACT;
    statement->as.clause = arena_allocate(checker->arena, sizeof(Clause));
    statement->as.clause->atom.call = call;
    logic_note_fact(checker, call, false);
    check_plain_clause(checker, statement->as.clause, CLAUSE_FACT);
    return true;
}

static void check_head(Checker *checker, const Clause *clause) {
    const Binding *binding = clause->atom.binding;
    if (binding && binding->declaration->kind == NODE_ENTITY &&
        binding->declaration->as.entity.closed)
        report(checker, STATUS_TYPE, clause->atom.call->span, NULL,
               "a rule cannot add to %s: the type is closed", binding->word.text);
}

void check_weighted_fact(Checker *checker, Node *node) {
    check_expression(checker, node->as.clause->weight);
    logic_note_fact(checker, node->as.clause->atom.call, false);
    check_plain_clause(checker, node->as.clause, CLAUSE_FACT);
}

// --- facts from tensors

static bool is_argument(const Node *call, const Word *word) {
    for (size_t i = 0; i < call->as.call.count; i++) {
        const Node *value = call->as.call.arguments[i].value;
        if (value->kind == NODE_NAME && strcmp(value->as.name.word.text, word->text) == 0)
            return true;
    }
    return false;
}

// The subscripts that the atom names become slices: each is a dimension of the tensor.
static void take_places(ClauseCheck *check, Node *index) {
    Word *places = arena_allocate(check->checker->arena, index->as.index.count * sizeof *places);
    check->places = places;
    for (size_t i = 0; i < index->as.index.count; i++) {
        Subscript *subscript = &index->as.index.subscripts[i];
        if (subscript->kind != SUBSCRIPT_INDEX)
            report(check->checker, STATUS_SYNTAX, subscript->span, NULL,
                   "behind `~` each index is a name of the fact, or a number");
        if (subscript->kind != SUBSCRIPT_INDEX || subscript->index->kind != NODE_NAME) continue;
        const Word *word = &subscript->index->as.name.word;
        if (scope_find_variable(check->checker, word) ||
            !is_argument(check->clause->atom.call, word))
            continue;
        if (clause_place(check, subscript->index) >= 0)
            report(check->checker, STATUS_NAME, subscript->span, NULL, "`%s` is an index twice",
                   word->text);
        places[check->place_count++] = *word;
        *subscript = (Subscript){.kind = SUBSCRIPT_SLICE, .span = subscript->span};
    }
}

void check_drawn(Checker *checker, Node *node) {
    Clause *clause = node->as.clause;
    ClauseCheck check = {.checker = checker, .clause = clause, .kind = CLAUSE_FACT};
    const Node *call = clause->atom.call;
    take_places(&check, clause->weight);
    if (check.place_count == 0)
        report(checker, STATUS_NAME, clause->weight->span,
               &(ReportExtra){.help = "as in Digit(i, d) ~ P[i, d]"},
               "the fact names no index of this tensor");
    check_expression(checker, clause->weight);
    for (size_t i = 0; i < call->as.call.count; i++)
        if (clause_place(&check, call->as.call.arguments[i].value) < 0)
            logic_note_argument(checker, call->as.call.arguments[i].value, false);
    check_clause_of(check);
}

static bool atom_has_constant(const AtomNode *atom, const Word *word) {
    for (size_t i = 0; i < atom->count; i++) {
        const Node *value = atom->terms[i].value;
        if (atom->terms[i].kind == TERM_NODE_CONSTANT && value->kind == NODE_NAME &&
            strcmp(value->as.name.word.text, word->text) == 0)
            return true;
    }
    return false;
}

// R(x) <- E(x) where no column is called x: a constant, and hardly meant.
static void warn_small_letters(Checker *checker, const Clause *clause) {
    ReportExtra extra = {.help = "a variable of a rule begins with a capital letter"};
    for (size_t i = 0; i < clause->atom.count; i++) {
        const TermNode *term = &clause->atom.terms[i];
        if (term->kind != TERM_NODE_CONSTANT || term->value->kind != NODE_NAME) continue;
        const Word *word = &term->value->as.name.word;
        bool read = false;
        for (size_t j = 0; j < clause->goal_count; j++)
            read |= atom_has_constant(&clause->goals[j].atom, word);
        if (!read || word_is_long(word) || logic_is_constant(checker, word)) continue;
        report_warning(checker, term->value->span, &extra,
                       "`%s` is a constant, which no fact and no entity type names", word->text);
        return; // once a rule
    }
}

void check_rule(Checker *checker, Node *node) {
    check_expression(checker, node->as.clause->weight);
    check_plain_clause(checker, node->as.clause, CLAUSE_RULE);
    check_head(checker, node->as.clause);
    warn_small_letters(checker, node->as.clause);
}

void check_retract(Checker *checker, Node *node) {
    check_plain_clause(checker, node->as.clause, CLAUSE_RETRACT);
}

// `explain R?`: every column is open.
static void fill_columns(Checker *checker, Node *call) {
    const Binding *binding = logic_relation(checker, call);
    size_t count = binding ? relation_columns(binding->declaration) : 0;
    call->as.call.arguments = arena_allocate(checker->arena, count * sizeof(Argument));
    call->as.call.count = count;
    for (size_t i = 0; i < count; i++) {
        Node *name = arena_allocate(checker->arena, sizeof *name);
        *name = (Node){.kind = NODE_NAME, .span = call->span};
        name->as.name.word = (Word){.text = "_", .length = 1, .span = call->span};
        call->as.call.arguments[i].value = name;
    }
}

// A query by embeddings asks for one atom of two columns.
static void check_soft(Checker *checker, const Node *node) {
    QueryKind kind = node->as.query.query;
    const Clause *clause = node->as.query.clause;
    const Node *temperature = node->as.query.temperature;
    if (kind != QUERY_GRADIENT && !temperature) return;
    if (temperature && (kind == QUERY_SYMBOLIC || query_is_about_rows(kind)))
        report(checker, STATUS_TYPE, temperature->span, NULL,
               "only forward, backward and gradient have a temperature: this is exact");
    if (clause->goal_count > 0)
        report(checker, STATUS_TYPE, node->span, NULL,
               "a query by embeddings asks about a relation alone, without `where`");
    if (clause->atom.call->as.call.count != 2)
        report(checker, STATUS_ARITY, clause->atom.call->span, NULL,
               "a query by embeddings asks about a relation with 2 columns, not %zu",
               clause->atom.call->as.call.count);
}

void check_query(Checker *checker, Node *node, bool statement) {
    node->as.query.statement = statement;
    check_expression(checker, node->as.query.program);
    check_expression(checker, node->as.query.temperature);
    check_soft(checker, node);
    Node *call = node->as.query.clause->atom.call;
    bool bare = call->as.call.arguments_span.end == 0;
    if (bare) fill_columns(checker, call);
    bool whole = query_is_about_rows(node->as.query.query);
    check_clause_of((ClauseCheck){
        .checker = checker, .clause = node->as.query.clause, .kind = CLAUSE_QUERY, .whole = whole});
}

void check_ask(Checker *checker, Node *node) {
    node->as.ask.statement = true;
    check_expression(checker, node->as.ask.value);
}

void query_use_value(Node *node) {
    if (!node) return;
    switch (node->kind) {
    case NODE_ASK: node->as.ask.statement = false; break;
    case NODE_QUERY: node->as.query.statement = false; break;
    case NODE_EXPRESSION_STATEMENT: query_use_value(node->as.expression.value); break;
    case NODE_BLOCK:
        if (node->as.block.statements.count > 0)
            query_use_value(node->as.block.statements.items[node->as.block.statements.count - 1]);
        break;
    case NODE_IF:
        query_use_value(node->as.branch.then_branch);
        query_use_value(node->as.branch.else_branch);
        break;
    case NODE_MATCH:
        for (size_t i = 0; i < node->as.match.count; i++)
            query_use_value(node->as.match.arms[i].body);
        break;
    case NODE_TRY:
        query_use_value(node->as.attempt.body);
        query_use_value(node->as.attempt.handler);
        break;
    default: break;
    }
}
