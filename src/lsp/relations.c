// Relations of a text, evaluated while it is being written: how many rows its facts and rules give,
// and how they would be kept. What only a run knows is left out.
#include "base/timing.h"
#include "check/logic.h"
#include "logic/analyse.h"
#include "logic/closure.h"
#include "logic/query.h"
#include "lsp/features.h"
#include "parser/walk.h"

static const double SECONDS_MAX = 0.05; // nobody waits longer for a hover

typedef struct Trial {
    Store *store;
    double end; // when it is given up
    bool whole; // nothing was left out
} Trial;

static Status stop_late(void *context) {
    const Trial *trial = context;
    return timing_now() < trial->end ? STATUS_OK : STATUS_INTERRUPT;
}

static void bind_type(void *context, Node *node) {
    const Trial *trial = context;
    if (node->kind != NODE_ENTITY) return;
    Binding *binding = node->as.entity.binding;
    binding->relation = relation_of_declaration(trial->store, binding);
}

static void bind_relation(void *context, Node *node) {
    const Trial *trial = context;
    Binding *binding = node->kind == NODE_RELATION ? node->as.relation.binding
                       : node->kind == NODE_RULE   ? node->as.clause->atom.binding
                                                   : NULL;
    bool own = binding && binding->declaration == node;
    if (own) binding->relation = relation_of_declaration(trial->store, binding);
}

static void add_rule(void *context, Node *node) {
    Trial *trial = context;
    if (node->kind != NODE_RULE) return;
    for (size_t i = 0; i < node->as.clause->goal_count; i++)
        if (node->as.clause->goals[i].function) trial->whole = false;
    if (!trial->whole) return;
    store_add_rule(trial->store, rule_of_clause(trial->store, node->as.clause, node->span));
}

static void add_fact(void *context, Node *node) {
    Trial *trial = context;
    Datum values[ARITY_MAX];
    if (node->kind == NODE_DRAWN) trial->whole = false;
    if (node->kind != NODE_FACT) return;
    const AtomNode *atom = &node->as.clause->atom;
    for (size_t i = 0; i < atom->count; i++) {
        if (atom->terms[i].kind != TERM_NODE_CONSTANT) {
            trial->whole = false;
            return;
        }
        values[i] = constant_of_term(trial->store, &atom->terms[i]);
        if (column_fit(trial->store, atom->binding->relation, (uint32_t)i, &values[i]) !=
            STATUS_OK) {
            error_clear();
            return;
        }
    }
    fact_add(trial->store, atom->binding->relation, values);
}

static void visit_programs(const Analysis *analysis, LogicVisit *visit, Trial *trial) {
    const Program *program = analysis->program;
    for (size_t i = 0; i < program->imported.count; i++)
        logic_visit(program->imported.items[i], visit, trial);
    logic_visit(analysis->program, visit, trial);
}

static const char *kept_as(const Relation *relation) {
    ASSERT(relation != NULL);
    if (relation->equivalence) return "classes";
    if (closure_base_of_set(relation)) return "a closure, counted by bits";
    const Table *table = relation_table(relation);
    return cells_name(table ? table->cells : NULL);
}

static void append_rows(Text *out, Trial *trial, Relation *relation) {
    uint64_t count;
    Span span;
    if (store_analyse(trial->store, &span) != STATUS_OK ||
        store_count(trial->store, relation, &count) != STATUS_OK) {
        error_clear();
        text_append_string(out, "\nmore rows than a hover can count");
        return;
    }
    unsigned long long rows = count;
    if (relation->entities)
        text_format(out, "\n%llu member%s, as %s", rows, rows == 1 ? "" : "s", kept_as(relation));
    else
        text_format(out, "\n%llu row%s follow%s from them, as %s", rows, rows == 1 ? "" : "s",
                    rows == 1 ? "s" : "", kept_as(relation));
}

void feature_append_rows(Text *out, const Analysis *analysis, const Binding *binding) {
    for (size_t i = 0; i < analysis->diagnostics.count; i++)
        if (analysis->diagnostics.items[i].severity == SEVERITY_ERROR) return;
    Trial trial = {.end = timing_now() + SECONDS_MAX, .whole = true};
    StoreHost host = {.context = &trial, .interrupted = stop_late};
    trial.store = store_new(&host);
    LogicVisit *const visits[] = {bind_type, bind_relation, add_rule};
    for (size_t i = 0; i < sizeof visits / sizeof *visits; i++)
        visit_programs(analysis, visits[i], &trial);
    walk_node(&(Walker){.context = &trial, .node = add_fact}, analysis->program->top);
    if (trial.whole && binding->relation) append_rows(out, &trial, binding->relation);
    store_free(trial.store);
}
