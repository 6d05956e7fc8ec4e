// Queries: the rows that they need are made, then their goals are gone through once.
#include <stdlib.h>

#include "logic/closure.h"
#include "logic/collect.h"
#include "logic/demand.h"
#include "logic/profile.h"
#include "logic/reach.h"

static Status row_found(Run *run) {
    Datum values[ARITY_MAX];
    run_head(run, values);
    collector_add(run->context, run->store, values, run->path);
    run->done = run->plan->rule->arity == 0; // one way to be true is enough
    return STATUS_OK;
}

static Status goals_run(Store *store, const Rule *query, const Datum *initial, Table *out) {
    Extent *extents = memory_allocate_zeroed(query->goal_count + 1, sizeof *extents);
    for (uint32_t i = 0; i < query->goal_count; i++) {
        if (!query->goals[i].relation) continue;
        extents[i].table = relation_table(query->goals[i].relation);
        extents[i].high = extents[i].table->count;
    }
    Plan plan;
    plan_make(query, extents, initial, &plan);
    plan_set(&plan, extents);
    Collector collector = {.table = out};
    collector_begin_rule(&collector, !plan.ordered, plan.positions);
    Run *run = memory_allocate(sizeof *run);
    *run = (Run){.store = store, .plan = &plan, .found = row_found, .context = &collector};
    memcpy(run->variables, initial, query->variable_count * sizeof *initial);
    if (store->profile) run->costs = profile_plan(store->profile, store, &plan, NULL);
    Status status = plan_run(run);
    collector_end_rule(&collector);
    collector_free(&collector);
    free(run);
    plan_free(&plan);
    free(extents);
    return status;
}

// The values that the query's goal has before it is gone through.
static void goal_values(const Goal *goal, const Datum *initial, Datum *values) {
    for (uint32_t i = 0; i < goal->relation->arity; i++) {
        const Term *term = &goal->terms[i];
        values[i] = term->kind == TERM_CONSTANT   ? term->value
                    : term->kind == TERM_VARIABLE ? initial[term->value]
                                                  : CONSTANT_NONE;
    }
}

// Whether a relation that is asked again and again should rather be complete: when all of its rows,
// guessed from those that the questions so far have made, are not many.
static bool is_worth_completing(const Store *store, Relation *relation) {
    enum { QUESTIONS_MIN = 64, ROWS_MAX = 4000000 };
    if (relation->asked_version != store->version) relation->asked = 0;
    if (relation->asked == 0) relation->asked_rows = 0;
    relation->asked_version = store->version;
    if (++relation->asked <= QUESTIONS_MIN) return false;
    return relation->asked_rows / relation->asked * store->constants.entries.count < ROWS_MAX;
}

// Makes the rows that the goal needs: those with its values, where that is possible; else all. The
// goal may get another relation, which is the demand's.
static Status goal_prepare(Store *store, Goal *goal, const Datum *initial, Demand **demand) {
    Relation *relation = goal->relation;
    *demand = NULL;
    if (!relation) return STATUS_OK;
    bool asks = goal->kind == GOAL_ATOM && relation_is_derived(relation) && !relation->derived;
    if (asks && !is_worth_completing(store, relation)) {
        Datum values[ARITY_MAX];
        goal_values(goal, initial, values);
        TRY(store_prepare(store));
        TRY(demand_evaluate(store, relation, values, demand));
    }
    if (!*demand) return store_complete(store, relation);
    goal->relation = demand_relation(*demand);
    relation->asked_rows += relation_table(goal->relation)->count;
    return STATUS_OK;
}

static Status goals_ask(Store *store, Rule *query, const Datum *initial, Table **out) {
    Demand **demands = memory_allocate_zeroed(query->goal_count + 1, sizeof(Demand *));
    Relation **relations = memory_allocate_zeroed(query->goal_count + 1, sizeof(Relation *));
    Status status = STATUS_OK;
    for (uint32_t i = 0; i < query->goal_count && status == STATUS_OK; i++) {
        relations[i] = query->goals[i].relation;
        status = goal_prepare(store, &query->goals[i], initial, &demands[i]);
    }
    if (status == STATUS_OK) {
        *out = table_new(query->arity, columns_all(query->arity));
        status = goals_run(store, query, initial, *out);
    }
    for (uint32_t i = 0; i < query->goal_count; i++) {
        if (relations[i]) query->goals[i].relation = relations[i];
        demand_free(demands[i]);
    }
    free(demands);
    free(relations);
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

Status store_count(Store *store, Relation *relation, uint64_t *out) {
    TRY(store_prepare(store));
    Relation *base = relation->derived ? NULL : closure_base(relation);
    if (base) {
        TRY(store_complete(store, base));
        return reach_count(store, base, out);
    }
    TRY(store_complete(store, relation));
    *out = table_live(relation_table(relation));
    return STATUS_OK;
}
