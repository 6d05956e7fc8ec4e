// Queries: what they read is made complete, then their goals are gone through once.
#include <stdlib.h>

#include "logic/collect.h"

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
    Status status = plan_run(run);
    collector_end_rule(&collector);
    collector_free(&collector);
    free(run);
    plan_free(&plan);
    free(extents);
    return status;
}

Status store_query(Store *store, const Rule *query, const Datum *initial, Table **out) {
    *out = NULL;
    Span span;
    if (rule_check_safe(query, initial, &span) != STATUS_OK) {
        error_place(span);
        return error_current()->code;
    }
    for (uint32_t i = 0; i < query->goal_count; i++)
        if (query->goals[i].relation) TRY(store_complete(store, query->goals[i].relation));
    *out = table_new(query->arity, columns_all(query->arity));
    Status status = goals_run(store, query, initial, *out);
    if (status == STATUS_OK) return status;
    table_free(*out);
    *out = NULL;
    return status;
}
