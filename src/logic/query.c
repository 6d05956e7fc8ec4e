// Queries: the rows that they need are made, then their goals are gone through once.
#include <stdlib.h>

#include "logic/analyse.h"
#include "logic/classes.h"
#include "logic/closure.h"
#include "logic/collect.h"
#include "logic/demand.h"
#include "logic/evaluate.h"
#include "logic/matrix.h"
#include "logic/profile.h"
#include "logic/query.h"
#include "logic/reach.h"
#include "logic/run.h"
#include "logic/upkeep/order.h"

static Status row_found(Run *run) {
    Datum values[ARITY_MAX];
    run_head(run, values);
    collector_add(run->context, run->store, values, run->path);
    run->done = run->plan->rule->arity == 0; // one way to be true is enough
    return STATUS_OK;
}

static void extents_set(const Rule *query, Extent *extents) {
    for (uint32_t i = 0; i < query->goal_count; i++) {
        if (!query->goals[i].relation) continue;
        extents[i].table = relation_table(query->goals[i].relation);
        ASSERT(extents[i].table != NULL);
        extents[i].high = extents[i].table->count;
    }
}

// Goes through the goals once.
static Status goals_follow(Store *store, const Rule *query, const Datum *initial, Collector *into,
                           Status (*found)(Run *)) {
    SCOPED_MEMORY Extent *extents = memory_allocate_zeroed(query->goal_count + 1, sizeof *extents);
    extents_set(query, extents);
    Plan plan;
    plan_make(query, extents, initial, &plan);
    plan_set(&plan, extents);
    collector_begin_rule(into, !plan.ordered, plan.positions);
    SCOPED_MEMORY Run *run = memory_allocate(sizeof *run);
    *run = (Run){.store = store, .plan = &plan, .found = found, .context = into};
    memcpy(run->variables, initial, query->variable_count * sizeof *initial);
    if (store->profile) run->costs = profile_plan(store->profile, store, &plan, NULL);
    Status status = plan_run(run);
    collector_end_rule(into);
    plan_free(&plan);
    return status;
}

static Status goals_run(Store *store, const Rule *query, const Datum *initial, Table *out) {
    Collector collector = {.table = out};
    Status status = goals_follow(store, query, initial, &collector, row_found);
    collector_free(&collector);
    return status;
}

// --- answers from a relation that is not in order

// The only relation that the query goes through, if it is not in order.
static Relation *unordered_relation(const Rule *query) {
    Relation *only = NULL;
    for (uint32_t i = 0; i < query->goal_count; i++) {
        if (query->goals[i].kind != GOAL_ATOM) continue;
        if (only) return NULL;
        only = query->goals[i].relation;
    }
    return only && only->unordered ? only : NULL;
}

// Several relations are joined in their order.
static Status goals_order(Store *store, const Rule *query) {
    if (unordered_relation(query)) return STATUS_OK;
    for (uint32_t i = 0; i < query->goal_count; i++) {
        Relation *relation = query->goals[i].relation;
        bool there = !relation || !relation_is_derived(relation) || relation->derived;
        if (there && !(relation && relation->unordered)) continue;
        TRY(store_complete(store, relation));
        i = UINT32_MAX; // this may have made others forgotten: from the beginning
    }
    return STATUS_OK;
}

// A row of the relation and the answer that it gives, as a row of a table of its own.
static Status row_noted(Run *run) {
    Collector *collector = run->context;
    Datum values[ARITY_MAX];
    run_head(run, values);
    values[run->plan->rule->arity] = run->path[0];
    table_append(collector->table, values);
    run->done = run->plan->rule->arity == 0;
    return STATUS_OK;
}

static int compare_numbers(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

// Answers in the order of the rows that they come from; several of one row stay as they are.
static Status answers_order(Store *store, Relation *relation, const Table *noted, Table *out,
                            bool *done) {
    uint32_t arity = out->arity, count = 0;
    ASSERT(noted->arity == arity + 1);
    SCOPED_MEMORY uint32_t *rows = memory_allocate((noted->count + 1) * sizeof *rows);
    if (noted->count > 0) memcpy(rows, noted->columns[arity], noted->count * sizeof *rows);
    qsort(rows, noted->count, sizeof *rows, compare_numbers);
    for (uint32_t i = 0; i < noted->count; i++)
        if (i == 0 || rows[i] != rows[count - 1]) rows[count++] = rows[i];
    Status status = rows_order(store, relation, rows, count, done);
    Table *by_row = (Table *)(uintptr_t)noted;
    const Index *index = count ? table_index(by_row, 1u << arity, noted->count) : NULL;
    Datum values[ARITY_MAX];
    for (uint32_t i = 0; i < count && status == STATUS_OK && *done; i++) {
        values[arity] = rows[i];
        for (uint32_t at = index_first(noted, index, values); at != ROW_NONE;
             at = index_next(index, at)) {
            table_read(noted, at, values);
            if (!table_has(out, values)) table_append(out, values);
        }
    }
    return status;
}

static Status goals_sort(Store *store, const Rule *query, const Datum *initial, Table *out) {
    Relation *relation = unordered_relation(query);
    ASSERT(query->arity <= ARITY_MAX);
    bool done = false;
    if (query->arity < ARITY_MAX) {
        Table *noted = table_new(query->arity + 1, columns_all(query->arity + 1));
        Collector collector = {.table = noted};
        Status status = goals_follow(store, query, initial, &collector, row_noted);
        if (status == STATUS_OK) status = answers_order(store, relation, noted, out, &done);
        collector_free(&collector);
        table_free(noted);
        TRY(status);
    }
    if (done) return STATUS_OK;
    TRY(store_complete(store, relation));
    return goals_run(store, query, initial, out);
}

static void relation_note_completed(Relation *relation) {
    enum { DOUBLINGS_MAX = 32 };
    if (relation->completed < DOUBLINGS_MAX) relation->completed++;
    relation->asked = relation->asked_rows = relation->recounts = 0;
}

// Whether a relation that is asked again and again should rather be complete: when all of its rows,
// guessed from those that the questions so far have made, are not many, nor, where edits came
// between, many more than those. What edits do not keep complete is asked twice as often before.
static bool is_worth_completing(const Store *store, Relation *relation) {
    ASSERT(relation_is_derived(relation));
    enum { QUESTIONS_MIN = 64, MORE_MAX = 4, ROWS_MAX = 4000000 };
    uint64_t constants = store->constants.entries.count;
    if (relation->asked++ == 0) relation->asked_version = store->version;
    if (relation->asked <= (uint64_t)QUESTIONS_MIN << relation->completed) return false;
    bool edited = relation->asked_version != store->version;
    if (edited && relation->asked * MORE_MAX < constants) return false;
    if (relation->asked_rows / relation->asked * constants >= ROWS_MAX) return false;
    relation_note_completed(relation);
    return true;
}

// Makes the rows that the goal needs: those with its values, where that is possible; else all. The
// goal may get another relation, which is the demand's.
static Status goal_prepare(Store *store, Goal *goal, Question question, Demand **demand) {
    Relation *relation = goal->relation;
    *demand = NULL;
    if (!relation) return STATUS_OK;
    bool asks = goal->kind == GOAL_ATOM && relation_is_derived(relation) && !relation->derived;
    Datum values[ARITY_MAX];
    bool whole = false;
    if (asks) {
        TRY(store_prepare(store));
        goal_values(goal, question.initial, values);
        question.relation = relation;
        question.values = values;
        if (relation->equivalence && !question_is_ground(&question))
            TRY(classes_are_small(store, relation, &whole));
    }
    if (asks && !whole && (relation->grows || !is_worth_completing(store, relation)))
        TRY(demand_evaluate(store, &question, demand));
    if (!*demand) return store_gather(store, relation);
    goal->relation = demand_relation(*demand);
    relation->asked_rows += demand_rows_made(*demand);
    return STATUS_OK;
}

static Status goals_ask(Store *store, Rule *query, const Datum *initial, Table **out) {
    SCOPED_MEMORY Demand **demands =
        memory_allocate_zeroed(query->goal_count + 1, sizeof(Demand *));
    SCOPED_MEMORY Relation **relations =
        memory_allocate_zeroed(query->goal_count + 1, sizeof(Relation *));
    Status status = store_prepare(store);
    for (uint32_t i = 0; i < query->goal_count && status == STATUS_OK; i++) {
        relations[i] = query->goals[i].relation;
        const Question question = {.rule = query, .goal = i, .initial = initial};
        status = goal_prepare(store, &query->goals[i], question, &demands[i]);
    }
    if (status == STATUS_OK) status = goals_order(store, query);
    if (status == STATUS_OK) {
        *out = table_new(query->arity, columns_all(query->arity));
        table_give_room(*out, &store->room);
        status = unordered_relation(query) ? goals_sort(store, query, initial, *out)
                                           : goals_run(store, query, initial, *out);
    }
    for (uint32_t i = 0; i < query->goal_count; i++) {
        if (relations[i]) query->goals[i].relation = relations[i];
        demand_free(demands[i]);
    }
    return status;
}

Status store_query(Store *store, Rule *query, const Datum *initial, Table **out) {
    *out = NULL;
    Span span;
    if (rule_check_safe(query, initial, &span) != STATUS_OK) {
        error_place(span);
        return error_current()->code;
    }
    Status status = goals_ask(store, query, initial, out);
    if (status == STATUS_OK) return status;
    table_free(*out);
    *out = NULL;
    return status;
}

Status store_has(Store *store, Relation *relation, const Datum *values, bool *out) {
    ASSERT(relation->arity <= ARITY_MAX);
    Term terms[ARITY_MAX];
    Goal goal = {.kind = GOAL_ATOM, .relation = relation, .terms = terms};
    Demand *demand;
    for (uint32_t i = 0; i < relation->arity; i++)
        terms[i] = (Term){.kind = TERM_CONSTANT, .value = values[i]};
    TRY(store_prepare(store));
    if (classes_fit(relation) && !relation->derived)
        return classes_join(store, relation, values, out);
    TRY(goal_prepare(store, &goal, (Question){0}, &demand));
    const Table *table = relation_table(goal.relation);
    *out = table_has(table, values);
    if (*out && table->key != columns_all(table->arity)) { // the key finds any best value
        uint32_t row = table_find(table, values);
        for (uint32_t i = 0; i < table->arity; i++) *out &= table_at(table, row, i) == values[i];
    }
    demand_free(demand);
    return STATUS_OK;
}

// Pairs of a closure, or of a chain of relations, without making them; *done: false where the rules
// are others.
static Status pairs_count(Store *store, Relation *relation, uint64_t *out, bool *done) {
    Relation *base = closure_base_of_set(relation);
    *done = base || relation->counted_version == store->version;
    *out = relation->counted;
    if (relation->counted_version == store->version) return STATUS_OK;
    if (base) {
        TRY(store_complete(store, base));
        TRY(reach_count(store, base, out));
    } else if (classes_fit(relation)) {
        *done = true;
        TRY(classes_count(store, relation, out));
    } else {
        TRY(matrix_count(store, relation, out, done));
    }
    relation->counted = *out;
    if (*done) relation->counted_version = store->version;
    return STATUS_OK;
}

// Whether pairs that are counted after one edit and another should rather be there, where edits
// change them. Those of an equivalence are counted by its members.
static bool is_worth_keeping(const Store *store, Relation *relation) {
    enum { COUNTS_MIN = 16, ROWS_MAX = 1000000 };
    if (relation->counted_version == 0 || relation->counted_version == store->version) return false;
    relation->recounts++;
    if (classes_fit(relation) || relation->counted > ROWS_MAX ||
        relation->recounts <= (uint64_t)COUNTS_MIN << relation->completed)
        return false;
    relation_note_completed(relation);
    return true;
}

Status store_count(Store *store, Relation *relation, uint64_t *out) {
    TRY(store_prepare(store));
    bool done = false;
    if (!relation->derived && !is_worth_keeping(store, relation))
        TRY(pairs_count(store, relation, out, &done));
    if (done) return STATUS_OK;
    TRY(store_gather(store, relation));
    *out = table_live(relation_table(relation));
    return STATUS_OK;
}
