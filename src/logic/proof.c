// Proofs and refutations by running the rules once more, backwards from what is asked.
#include "logic/proof.h"

#include <stdlib.h>

#include "logic/demand.h"
#include "logic/evaluate.h"
#include "logic/narrow.h"
#include "logic/plan.h"
#include "logic/run.h"

enum { INDENT = 2 };

// In a chain each row is a level deeper than the last: deep ones have their level's number instead.
void proof_indent(uint32_t level, Text *out) {
    enum { LEVELS_MAX = 40 };
    uint32_t shown = level < LEVELS_MAX ? level : LEVELS_MAX;
    text_append_repeated(out, ' ', shown * INDENT);
    if (level > LEVELS_MAX) text_format(out, "[%u] ", level);
}

void atom_print(const Store *store, const Relation *relation, const Datum *values, Text *out) {
    ASSERT(relation->arity <= ARITY_MAX);
    text_format(out, "%s(", relation->name);
    for (uint32_t i = 0; i < relation->arity; i++) {
        if (i > 0) text_append_string(out, ", ");
        if (values[i] == CONSTANT_NONE)
            text_append_char(out, '_');
        else
            constant_print(&store->constants, values[i], out);
    }
    text_append_char(out, ')');
}

// --- running a rule for one row of its head

// What was there before `round` of the rule's stratum.
static void extents_before(const Rule *rule, uint32_t round, Extent *extents) {
    ASSERT(round > 0); // facts follow from nothing
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Relation *relation = rule->goals[i].relation;
        if (!relation) continue;
        extents[i] = (Extent){.table = relation_table(relation)};
        ASSERT(extents[i].table != NULL);
        extents[i].high = extents[i].table->count;
        bool along = relation_is_derived(relation) && rule->relation &&
                     relation->stratum == rule->relation->stratum;
        if (along && round - 1 < relation->rounds.count)
            extents[i].high = relation->rounds.items[round - 1];
    }
}

static Status solution_found(Run *run) {
    run->done = true;
    return STATUS_OK;
}

// The first solution of the first `steps` steps; its variables are left in the run.
static Status solution_find(Run *run, const Plan *plan, uint32_t steps, const Datum *initial,
                            bool *found) {
    Plan part = *plan;
    ASSERT(steps <= plan->count);
    Store *store = run->store;
    part.count = steps;
    *run = (Run){.store = store, .plan = &part, .found = solution_found};
    memcpy(run->variables, initial, plan->rule->variable_count * sizeof *initial);
    Status status = plan_run(run);
    *found = run->done;
    return status;
}

// --- proofs

typedef struct Line {         // of a proof that is still to be written
    const Relation *relation; // NULL: `text` alone
    uint32_t row, indent;
    char *text;
} Line;

typedef struct Proof {
    Store *store;
    Text *out;
    VECTOR(Line) lines; // the next one last
    Table *shown;       // relation and row
} Proof;

static uint32_t round_of(const Relation *relation, uint32_t row) {
    ASSERT(relation->rounds.count > 0);
    uint32_t low = 0, high = (uint32_t)relation->rounds.count - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (relation->rounds.items[middle] > row)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void goal_print(const Store *store, const Goal *goal, const Datum *variables, Text *out) {
    Datum values[ARITY_MAX];
    size_t length;
    if (goal->relation) {
        goal_values(goal, variables, values);
        if (goal->kind == GOAL_NOT) text_append_string(out, "not ");
        atom_print(store, goal->relation, values, out);
        return;
    }
    const char *source = source_text(goal->span, &length);
    text_append(out, source, length);
}

void goal_print_open(const Store *store, const Rule *rule, const Goal *goal, Text *out) {
    if (!goal->relation) {
        goal_print(store, goal, NULL, out);
        return;
    }
    text_format(out, "%s%s(", goal->kind == GOAL_NOT ? "not " : "", goal->relation->name);
    for (uint32_t i = 0; i < goal->relation->arity; i++) {
        const Term *term = &goal->terms[i];
        const char *name = term->kind == TERM_VARIABLE ? rule->variable_names[term->value] : NULL;
        if (i > 0) text_append_string(out, ", ");
        if (term->kind == TERM_CONSTANT)
            constant_print(&store->constants, term->value, out);
        else
            text_append_string(out, name ? name : "_");
    }
    text_append_char(out, ')');
}

// The goals of a solution, as lines below the one that rests on them.
static void push_goals(Proof *proof, const Rule *rule, const Run *run, uint32_t indent) {
    uint32_t position = 0;
    size_t first = proof->lines.count;
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        Line line = {.indent = indent};
        if (goal->kind == GOAL_ATOM) {
            ASSERT(position < POSITIONS_MAX);
            line.relation = goal->relation;
            line.row = run->path[position];
        } else {
            Text text = {0};
            goal_print(proof->store, goal, run->variables, &text);
            line.text = text_take(&text);
        }
        position += goal->kind == GOAL_ATOM || goal->kind == GOAL_MEMBER;
        // What computes an argument is not a goal that a script has written.
        bool hidden = goal->kind == GOAL_BIND && !rule->variable_names[goal->variable];
        hidden |= goal->relation && goal->relation->question;
        if (hidden) free(line.text);
        if (!hidden) VECTOR_PUSH(&proof->lines, line);
    }
    for (size_t low = first, high = proof->lines.count; low + 1 < high; low++) { // next one last
        Line line = proof->lines.items[low];
        proof->lines.items[low] = proof->lines.items[--high];
        proof->lines.items[high] = line;
    }
}

// A row of the head of rules, as a line of the proof.
typedef struct Derived {
    Datum values[ARITY_MAX];
    uint32_t round, indent;
} Derived;

static Status rule_derive(Proof *proof, const Rule *rule, const Derived *row, bool *found) {
    *found = false;
    Datum initial[VARIABLES_MAX];
    if (!head_unify(rule, row->values, initial)) return STATUS_OK;
    SCOPED_MEMORY Extent *extents = memory_allocate_zeroed(rule->goal_count + 1, sizeof *extents);
    extents_before(rule, row->round, extents);
    Plan plan;
    plan_make(rule, extents, initial, &plan);
    plan_set(&plan, extents);
    SCOPED_MEMORY Run *run = memory_allocate_zeroed(1, sizeof *run);
    run->store = proof->store;
    Status status = solution_find(run, &plan, plan.count, initial, found);
    if (*found)
        text_append_string(proof->out, rule->aggregates ? "   of all its solutions\n" : "\n");
    if (*found && !rule->aggregates) push_goals(proof, rule, run, row->indent + 1);
    plan_free(&plan);
    return status;
}

static Status row_prove(Proof *proof, const Line *line) {
    const Relation *relation = line->relation;
    ASSERT(relation && line->row < relation_table(relation)->count);
    uint32_t round = relation_is_derived(relation) ? round_of(relation, line->row) : 0;
    Derived row = {.round = round, .indent = line->indent};
    table_read(relation_table(relation), line->row, row.values);
    atom_print(proof->store, relation, row.values, proof->out);
    Datum key[] = {relation->number, line->row};
    bool shown = table_has(proof->shown, key);
    bool found = false;
    if (!shown) table_append(proof->shown, key);
    if (round > 0 && shown) text_append_string(proof->out, "   as above");
    if (round == 0) text_append_string(proof->out, "   fact");
    for (size_t i = 0; round > 0 && !shown && i < relation->rules.count && !found; i++)
        TRY(rule_derive(proof, relation->rules.items[i], &row, &found));
    if (!found) text_append_char(proof->out, '\n');
    return STATUS_OK;
}

static Status proof_print(Store *store, const Relation *relation, const Datum *values, Text *out) {
    Proof proof = {.store = store, .out = out, .shown = table_new(2, columns_all(2))};
    Line first = {.relation = relation, .row = table_find(relation_table(relation), values)};
    ASSERT(first.row != ROW_NONE);
    VECTOR_PUSH(&proof.lines, first);
    Status status = STATUS_OK;
    while (proof.lines.count > 0) {
        Line line = proof.lines.items[--proof.lines.count];
        if (status == STATUS_OK) proof_indent(line.indent + 1, out);
        if (status == STATUS_OK && line.relation)
            status = row_prove(&proof, &line);
        else if (status == STATUS_OK)
            text_format(out, "%s\n", line.text);
        free(line.text);
    }
    VECTOR_FREE(&proof.lines);
    table_free(proof.shown);
    return status;
}

// The relation and all that its rules read, directly or not.
static void relation_below(Relation *relation, RelationList *below) {
    relation->wanted = true;
    VECTOR_PUSH(below, relation);
    for (size_t i = 0; i < below->count; i++) {
        const RuleList *rules = &below->items[i]->rules;
        for (size_t j = 0; j < rules->count; j++) {
            for (uint32_t k = 0; k < rules->items[j]->goal_count; k++) {
                Relation *read = rules->items[j]->goals[k].relation;
                if (!read || read->wanted) continue;
                read->wanted = true;
                VECTOR_PUSH(below, read);
            }
        }
    }
    for (size_t i = 0; i < below->count; i++) below->items[i]->wanted = false;
}

// Rounds lead through a proof: whatever the relation rests on gets those that edits have left it
// without. To make one relation may mean to forget another, so it goes on until all have them.
static Status rounds_restore(Store *store, Relation *relation) {
    SCOPED_MEMORY RelationList below = {0};
    Relation *without = NULL;
    Status status = STATUS_OK;
    relation_below(relation, &below);
    do {
        without = NULL;
        for (size_t i = 0; i < below.count && !without; i++)
            if (below.items[i]->unordered) without = below.items[i];
        if (without) status = store_complete(store, without);
    } while (without && status == STATUS_OK);
    return status;
}

// Of a relation whose rows may have no end as many as have these among them.
static Status rows_reach(Store *store, Relation *relation, const Table *rows, bool *done) {
    Datum row[ARITY_MAX];
    const Question question = {.relation = relation, .values = row};
    *done = rows->count > 0;
    for (uint32_t i = 0; i < rows->count && *done && !relation->derived; i++) {
        table_read(rows, i, row);
        TRY(store_answer(store, &question, done));
    }
    return STATUS_OK;
}

static Status proofs_print(Store *store, const Relation *relation, const Table *rows, Text *out) {
    Datum row[ARITY_MAX];
    for (uint32_t i = 0; i < rows->count; i++) {
        table_read(rows, i, row);
        TRY(proof_print(store, relation, row, out));
    }
    return STATUS_OK;
}

// What is not complete is made as far as the rows rest on it.
Status store_prove(Store *store, Relation *relation, const Datum *values, const Table *rows,
                   Text *out) {
    Demand *demand = NULL;
    Status status = STATUS_OK;
    TRY(rounds_restore(store, relation));
    bool missing = relation_is_derived(relation) && !relation->derived, reached = false;
    if (missing) TRY(rows_reach(store, relation, rows, &reached));
    if (missing && !reached) status = demand_evaluate_rules(store, relation, values, &demand);
    if (status == STATUS_OK && !demand && !reached) status = store_complete(store, relation);
    begun_show(store);
    if (status == STATUS_OK)
        status = proofs_print(store, demand ? demand_relation(demand) : relation, rows, out);
    begun_hide(store);
    demand_free(demand);
    return status;
}

// --- refutations

// How many steps of the plan have a solution; the variables of the longest are left in the run.
static Status steps_solved(Run *run, const Plan *plan, const Datum *initial, uint32_t *out) {
    ASSERT(plan->rule->variable_count <= VARIABLES_MAX);
    SCOPED_MEMORY Run *best = memory_allocate_zeroed(1, sizeof *best);
    memcpy(best->variables, initial, plan->rule->variable_count * sizeof *initial);
    Status status = STATUS_OK;
    bool found = true;
    for (*out = 0; found && status == STATUS_OK && *out < plan->count; *out += found) {
        status = solution_find(run, plan, *out + 1, initial, &found);
        if (found) *best = *run;
    }
    *run = *best;
    return status;
}

void rule_print(const Rule *rule, Text *out) {
    size_t length;
    const char *source = source_text(rule->span, &length);
    if (length == 0) {
        text_format(out, "a rule of %s", rule->relation->name); // of an equivalence
        return;
    }
    for (size_t i = 0; i < length; i++)
        if (source[i] != '\n') text_append_char(out, source[i]);
}

// What the head's values leave of each goal: all that the rule could take. To make one relation may
// mean to forget another, so they are gone through until all are there.
static Status goals_reach(Store *store, const Rule *rule, const Datum *variables,
                          Demand **demands) {
    ASSERT(rule->goal_count <= POSITIONS_MAX);
    Datum values[ARITY_MAX];
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        Relation *relation = goal_whole(&rule->goals[i]);
        if (!relation || demands[i] || relation_table(relation)) continue;
        goal_values(&rule->goals[i], variables, values);
        const Question question = {relation, values, rule, i, variables, false};
        TRY(demand_evaluate(store, &question, &demands[i]));
        if (demands[i]) continue;
        TRY(store_complete(store, relation));
        i = UINT32_MAX;
    }
    return STATUS_OK;
}

static void extents_reach(const Rule *rule, Demand *const *demands, Extent *extents) {
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        Relation *relation = goal_whole(&rule->goals[i]);
        if (!relation) continue;
        extents[i].table = relation_table(demands[i] ? demand_relation(demands[i]) : relation);
        ASSERT(extents[i].table != NULL);
        extents[i].high = extents[i].table->count;
    }
}

// Of an expression that stands in the head: what it is to be.
static void head_value_print(const Store *store, const Rule *rule, const Goal *goal,
                             const Datum *variables, Text *out) {
    bool stands = goal->kind == GOAL_BIND && !rule->variable_names[goal->variable];
    if (!stands || variables[goal->variable] == CONSTANT_NONE) return;
    text_append_string(out, " = ");
    constant_print(&store->constants, variables[goal->variable], out);
}

static Status goals_refute(Store *store, const Rule *rule, const Extent *extents,
                           const Datum *initial, Text *out) {
    Plan plan;
    plan_make_in_order(rule, extents, initial, &plan);
    plan_set(&plan, extents);
    SCOPED_MEMORY Run *run = memory_allocate_zeroed(1, sizeof *run);
    run->store = store;
    uint32_t solved;
    Status status = steps_solved(run, &plan, initial, &solved);
    ASSERT(status != STATUS_OK || solved <= plan.count);
    if (status == STATUS_OK && solved < plan.count) {
        text_append_string(out, ": nothing satisfies ");
        goal_print(store, plan.steps[solved].goal, run->variables, out);
        head_value_print(store, rule, plan.steps[solved].goal, run->variables, out);
        text_append_char(out, '\n');
    } else if (status == STATUS_OK) {
        text_append_string(out, ": what it gives is another value\n"); // of an aggregate
    }
    plan_free(&plan);
    return status;
}

static Status rule_refute(Store *store, const Rule *rule, const Datum *values, Text *out) {
    Datum initial[VARIABLES_MAX];
    proof_indent(1, out);
    rule_print(rule, out);
    if (!head_unify(rule, values, initial)) {
        text_append_string(out, ": its head is about something else\n");
        return STATUS_OK;
    }
    SCOPED_MEMORY Extent *extents = memory_allocate_zeroed(rule->goal_count + 1, sizeof *extents);
    SCOPED_MEMORY Demand **demands = memory_allocate_zeroed(rule->goal_count + 1, sizeof(Demand *));
    Status status = goals_reach(store, rule, initial, demands);
    if (status == STATUS_OK) extents_reach(rule, demands, extents);
    if (status == STATUS_OK) status = goals_refute(store, rule, extents, initial, out);
    for (uint32_t i = 0; i < rule->goal_count; i++) demand_free(demands[i]);
    return status;
}

Status store_refute(Store *store, Relation *relation, const Datum *values, Text *out) {
    ASSERT(relation->rules.count == 0 || relation_is_derived(relation));
    if (relation->equivalence) {
        text_append_string(out, "  no facts and rules connect the two\n");
        return STATUS_OK;
    }
    if (!relation_is_derived(relation)) text_append_string(out, "  it is not among the facts\n");
    for (size_t i = 0; i < relation->rules.count; i++)
        TRY(rule_refute(store, relation->rules.items[i], values, out));
    return STATUS_OK;
}
