// From checked declarations and clauses to the engine's relations and rules, and what the engine
// says about all of them together.
#include <stdlib.h>

#include "check/logic_checker.h"
#include "logic/analyse.h"
#include "logic/growth.h"

// --- declarations

static Merge merge_of(const char *word) {
    if (!word) return MERGE_NONE;
    if (strcmp(word, "min") == 0) return MERGE_MIN;
    return strcmp(word, "max") == 0 ? MERGE_MAX : MERGE_UNION;
}

static Relation *relation_of_entity(Store *store, const Node *node) {
    Relation *type = entity_type_new(store, node->as.entity.name.text, node->as.entity.closed);
    for (size_t i = 0; i < node->as.entity.member_count; i++) {
        const Word *member = &node->as.entity.members[i];
        Datum constant = constant_text(&store->constants, member->text, member->length);
        fact_add(store, type, &constant);
    }
    return type;
}

static Column column_make(Store *store, const TypeNode *type) {
    Column column = {.kind = column_kind(type)};
    if (type && column.kind == COLUMN_ENTITY)
        column.type = type->binding ? type->binding->relation : store_open_type(store);
    if (!type || type->kind != TYPE_TUPLE) return column;
    column.item_count = (uint32_t)type->argument_count;
    column.items = memory_allocate((type->argument_count + 1) * sizeof *column.items);
    for (size_t i = 0; i < type->argument_count; i++)
        column.items[i] = column_make(store, type->arguments[i]);
    return column;
}

static Relation *relation_of_columns(Store *store, const Node *node) {
    Column columns[ARITY_MAX] = {0};
    for (size_t i = 0; i < node->as.relation.count; i++) {
        columns[i] = column_make(store, node->as.relation.types[i]);
        columns[i].name = node->as.relation.columns[i].text;
        columns[i].merge = merge_of(node->as.relation.merges[i]);
    }
    Relation *relation = relation_new(store, node->as.relation.name.text, columns,
                                      (uint32_t)node->as.relation.count);
    for (size_t i = 0; i < node->as.relation.count; i++) column_free_items(&columns[i]);
    if (node->as.relation.equivalence) relation_make_equivalence(store, relation);
    return relation;
}

static Relation *relation_made(Store *store, const Binding *binding) {
    const Node *node = binding->declaration;
    if (node->kind == NODE_ENTITY) return relation_of_entity(store, node);
    if (node->kind == NODE_RELATION) return relation_of_columns(store, node);
    Column columns[ARITY_MAX] = {0};
    size_t count = node->as.clause->atom.call->as.call.count;
    return relation_new(store, binding->word.text, columns, (uint32_t)count);
}

Relation *relation_of_declaration(Store *store, const Binding *binding) {
    Relation *relation = relation_made(store, binding);
    relation->span = binding->word.span;
    return relation;
}

// --- terms

static Datum constant_of_literal(Store *store, const Node *node) {
    ConstantTable *constants = &store->constants;
    bool negative = node->kind == NODE_UNARY;
    if (negative) node = node->as.binary.left;
    switch (node->kind) {
    case NODE_INT: return constant_int(constants, negative ? -node->as.integer : node->as.integer);
    case NODE_FLOAT:
        return constant_float(constants, negative ? -node->as.number : node->as.number);
    case NODE_BOOL: return constant_bool(constants, node->as.boolean);
    case NODE_STRING:
        return constant_text(constants, node->as.string.bytes, node->as.string.length);
    default: return CONSTANT_NONE;
    }
}

Datum constant_of_term(Store *store, const TermNode *term) {
    const Word *word = &term->value->as.name.word;
    if (term->value->kind == NODE_NAME)
        return constant_text(&store->constants, word->text, word->length);
    return constant_of_literal(store, term->value);
}

// A literal in a float column is a float.
static Datum constant_for(Store *store, const TermNode *term, const Column *column) {
    Datum constant = constant_of_term(store, term);
    if (!column || column->kind != COLUMN_FLOAT ||
        constant_kind(&store->constants, constant) != CONSTANT_INT)
        return constant;
    return constant_float(&store->constants, (double)constant_integer(&store->constants, constant));
}

static Term term_of(Store *store, const TermNode *node, const Column *column) {
    switch (node->kind) {
    case TERM_NODE_ANY: return (Term){.kind = TERM_ANY};
    case TERM_NODE_CONSTANT:
        return (Term){.kind = TERM_CONSTANT, .value = constant_for(store, node, column)};
    default: return (Term){.kind = TERM_VARIABLE, .value = (uint32_t)node->variable};
    }
}

static void terms_of(Store *store, const AtomNode *atom, const Relation *relation, Term *terms) {
    for (size_t i = 0; i < atom->count; i++)
        terms[i] = term_of(store, &atom->terms[i], relation ? &relation->columns[i] : NULL);
}

// --- expressions

typedef struct Making {
    Store *store;
    const Clause *clause;
    Rule *rule;
} Making;

static Expression *expression_new(const Making *making, Arithmetic kind, Span span) {
    Expression *expression = arena_allocate(&making->rule->arena, sizeof *expression);
    expression->kind = kind;
    expression->span = span;
    return expression;
}

static Arithmetic arithmetic_of(Operator op) {
    switch (op) {
    case OPERATOR_ADD: return ARITHMETIC_ADD;
    case OPERATOR_SUB: return ARITHMETIC_SUB;
    case OPERATOR_MUL: return ARITHMETIC_MUL;
    case OPERATOR_DIV: return ARITHMETIC_DIV;
    default: return ARITHMETIC_MOD;
    }
}

static Expression *expression_of(const Making *making, const Node *node) {
    Expression *expression = expression_new(making, ARITHMETIC_CONSTANT, node->span);
    switch (node->kind) {
    case NODE_NAME:
        expression->kind = ARITHMETIC_VARIABLE;
        expression->value = (uint32_t)clause_variable(making->clause, &node->as.name.word);
        break;
    case NODE_UNARY:
        expression->kind = ARITHMETIC_NEG;
        expression->left = expression_of(making, node->as.binary.left);
        break;
    case NODE_BINARY:
        expression->kind = arithmetic_of(node->op);
        expression->left = expression_of(making, node->as.binary.left);
        expression->right = expression_of(making, node->as.binary.right);
        break;
    default: expression->value = constant_of_literal(making->store, node);
    }
    return expression;
}

static Expression *expression_of_host(const Making *making, const GoalNode *goal) {
    Expression *expression = expression_new(making, ARITHMETIC_HOST, goal->span);
    size_t count = goal->function->as.function->parameter_count;
    expression->host = (void *)(uintptr_t)goal->function;
    expression->variable_count = (uint32_t)count;
    expression->variables =
        arena_allocate(&making->rule->arena, count * sizeof *expression->variables);
    for (size_t i = 0; i < count; i++) expression->variables[i] = (uint32_t)goal->parameters[i];
    return expression;
}

// --- goals

static Comparison comparison_of(Operator op) {
    switch (op) {
    case OPERATOR_EQ: return COMPARE_EQ;
    case OPERATOR_NE: return COMPARE_NE;
    case OPERATOR_LT: return COMPARE_LT;
    case OPERATOR_LE: return COMPARE_LE;
    case OPERATOR_GT: return COMPARE_GT;
    default: return COMPARE_GE;
    }
}

static void goal_of_value(const Making *making, const GoalNode *node, Goal *goal) {
    static const enum GoalKind kinds[] = {[GOAL_NODE_TEST] = GOAL_TEST,
                                          [GOAL_NODE_BIND] = GOAL_BIND,
                                          [GOAL_NODE_MEMBER] = GOAL_MEMBER};
    goal->kind = kinds[node->kind];
    goal->variable = (uint32_t)node->variable;
    if (node->function) {
        goal->left = expression_of_host(making, node);
    } else if (node->kind == GOAL_NODE_BIND) {
        goal->left = expression_of(making, node->value);
    } else {
        goal->kind = GOAL_COMPARE;
        goal->comparison = comparison_of(node->value->op);
        goal->left = expression_of(making, node->value->as.binary.left);
        goal->right = expression_of(making, node->value->as.binary.right);
    }
}

static void goal_of_atom(const Making *making, const AtomNode *atom, Goal *goal) {
    goal->relation = atom->binding->relation;
    goal->terms = arena_allocate(&making->rule->arena, atom->count * sizeof *goal->terms);
    terms_of(making->store, atom, goal->relation, goal->terms);
}

static void goal_of(const Making *making, const GoalNode *node, Goal *goal) {
    goal->span = node->span;
    goal->kind = node->kind == GOAL_NODE_NOT ? GOAL_NOT : GOAL_ATOM;
    if (node->kind <= GOAL_NODE_NOT)
        goal_of_atom(making, &node->atom, goal);
    else
        goal_of_value(making, node, goal);
}

// --- clauses

static void aggregates_of(const Making *making) {
    static const char *const words[] = {"", "count", "sum", "min", "max", "avg"};
    const AtomNode *head = &making->clause->atom;
    for (size_t i = 0; i < head->count; i++) {
        if (!head->terms[i].aggregate) continue;
        Aggregate **aggregates = &making->rule->aggregates;
        if (!*aggregates)
            *aggregates = arena_allocate(&making->rule->arena, head->count * sizeof **aggregates);
        size_t word = AGGREGATE_COUNT;
        while (strcmp(words[word], head->terms[i].aggregate) != 0) word++;
        (*aggregates)[i] = (Aggregate)word;
    }
}

// What answers of a query hold: its named variables in the order in which they appear.
static uint32_t outputs_of(const Clause *clause, Term *head) {
    uint32_t count = 0;
    for (size_t i = 0; i < clause->variables.count; i++)
        if (clause->variables.items[i].text)
            head[count++] = (Term){.kind = TERM_VARIABLE, .value = (uint32_t)i};
    return count;
}

static void names_of(const Making *making) {
    const Clause *clause = making->clause;
    Rule *rule = making->rule;
    for (size_t i = 0; i < clause->variables.count; i++) {
        const Word *name = &clause->variables.items[i];
        if (name->text)
            rule->variable_names[i] = arena_copy_string(&rule->arena, name->text, name->length);
    }
}

Rule *rule_of_clause(Store *store, const Clause *clause, Span span) {
    Rule *rule = rule_new((uint32_t)clause->variables.count, (uint32_t)clause->atom.count,
                          (uint32_t)clause->goal_count);
    Making making = {store, clause, rule};
    rule->relation = clause->atom.binding->relation;
    rule->span = span;
    rule->block = clause->block;
    names_of(&making);
    terms_of(store, &clause->atom, rule->relation, rule->head);
    aggregates_of(&making);
    for (size_t i = 0; i < clause->goal_count; i++)
        goal_of(&making, &clause->goals[i], &rule->goals[i]);
    return rule;
}

Rule *rule_of_query(Store *store, const Node *node) {
    const Clause *clause = node->as.query.clause;
    bool rows = query_is_about_rows(node->as.query.query);
    size_t arity = rows ? clause->atom.count : clause->variables.count;
    Rule *rule = rule_new((uint32_t)clause->variables.count, (uint32_t)arity,
                          (uint32_t)clause->goal_count + 1);
    Making making = {store, clause, rule};
    rule->span = node->span;
    names_of(&making);
    rule->goals->kind = GOAL_ATOM;
    rule->goals->span = clause->atom.call->span;
    goal_of_atom(&making, &clause->atom, rule->goals);
    if (rows)
        terms_of(store, &clause->atom, clause->atom.binding->relation, rule->head);
    else
        rule->arity = outputs_of(clause, rule->head);
    for (size_t i = 0; i < clause->goal_count; i++)
        goal_of(&making, &clause->goals[i], &rule->goals[i + 1]);
    return rule;
}

// --- all rules of the files together

typedef struct Programs {
    Store *store;
    Checker *checker;
} Programs;

static void bind_entities(void *context, Node *node) {
    Programs *programs = context;
    if (node->kind != NODE_ENTITY) return;
    Binding *binding = node->as.entity.binding;
    binding->relation = relation_of_declaration(programs->store, binding);
}

static void bind_relation(void *context, Node *node) {
    Programs *programs = context;
    Binding *binding = node->kind == NODE_RELATION ? node->as.relation.binding
                       : node->kind == NODE_RULE   ? node->as.clause->atom.binding
                                                   : NULL;
    bool own = binding && binding->declaration == node; // a rule: it declares its head
    if (own) binding->relation = relation_of_declaration(programs->store, binding);
}

static void add_rule(void *context, Node *node) {
    Programs *programs = context;
    if (node->kind != NODE_RULE) return;
    store_add_rule(programs->store, rule_of_clause(programs->store, node->as.clause, node->span));
}

static Status no_host(void *context, void *host, const Datum *arguments, Datum *out) {
    (void)context, (void)host, (void)arguments;
    *out = CONSTANT_NONE;
    return STATUS_OK;
}

static void report_analysis(Checker *checker, Span span) {
    const ErrorRecord *error = error_current();
    ReportExtra extra = {.help = error->help[0] ? error->help : NULL};
    report(checker, error->code, span, &extra, "%s", error->message);
    error_clear();
}

static void warn_growth(Checker *checker, const Store *store) {
    ReportExtra extra = {.help =
                             "a comparison (`N < 1000`) or a relation that has the values would "
                             "bound them; Ctrl-C and `--time-limit` end it"};
    for (size_t i = 0; i < store->rules.count; i++) {
        const Rule *rule = store->rules.items[i];
        uint32_t column;
        if (!rule_grows(store, rule, true, &column)) continue;
        const char *name = rule->relation->columns[column].name;
        SCOPED_TEXT(which);
        if (*name)
            text_format(&which, "`%s`", name);
        else
            text_format(&which, "column %u", column + 1);
        report_warning(checker, rule->span, &extra,
                       "nothing bounds this recursion: each round gives %s further values of %s",
                       rule->relation->name, text_get(&which));
    }
}

void check_logic_programs(ModuleTable *table) {
    StoreHost host = {.evaluate = no_host};
    Programs programs = {.store = store_new(&host)};
    LogicVisit *const visits[] = {bind_entities, bind_relation, add_rule};
    for (size_t i = 0; i < sizeof visits / sizeof *visits; i++)
        for (size_t j = 0; j < table->modules.count; j++)
            logic_visit(table->modules.items[j]->program, visits[i], &programs);
    Span span = {0, 0};
    Checker *checker = table->modules.items[table->modules.count - 1]->checker;
    if (store_analyse(programs.store, &span) == STATUS_OK)
        warn_growth(checker, programs.store);
    else
        report_analysis(checker, span);
    store_free(programs.store);
}
