// A change touches the groups of the solutions that it adds or takes away.
#include "logic/upkeep/groups.h"
#include "logic/aggregate.h"
#include "logic/run.h"
#include "logic/upkeep/follow.h"

static Status group_found(Run *run) {
    Upkeep *upkeep = run->context;
    const Rule *rule = upkeep->rule->rule;
    Datum values[ARITY_MAX];
    run_head(run, values);
    upkeep->steps++;
    for (uint32_t i = 0; i < rule->arity; i++)
        if (rule->aggregates[i] != AGGREGATE_NONE) values[i] = CONSTANT_NONE;
    if (!table_has(upkeep->rule->groups, values)) table_append(upkeep->rule->groups, values);
    return STATUS_OK;
}

// What a negated goal loses is gained, and the other way round.
static Status groups_from(Upkeep *upkeep, RuleUpkeep *rule, uint32_t goal, const Table *rows,
                          bool lost) {
    Datum values[ARITY_MAX];
    for (uint32_t row = 0; rows && row < rows->count; row++) {
        if (table_is_dead(rows, row)) continue;
        table_read(rows, row, values);
        TRY(lost ? from_lost(upkeep, rule, goal, values, group_found)
                 : from_gained(upkeep, rule, goal, values, group_found));
    }
    return STATUS_OK;
}

Status groups_find(Upkeep *upkeep) {
    for (size_t i = 0; i < upkeep->rules.count; i++) {
        RuleUpkeep *rule = &upkeep->rules.items[i];
        for (uint32_t goal = 0; rule->groups && goal < rule->rule->goal_count; goal++) {
            const Goal *read = &rule->rule->goals[goal];
            if (!read->relation) continue;
            bool negated = read->kind == GOAL_NOT;
            TRY(groups_from(upkeep, rule, goal, read->relation->lost, !negated));
            TRY(groups_from(upkeep, rule, goal, read->relation->gained, negated));
        }
    }
    return STATUS_OK;
}

static Status solution_found(Run *run) {
    Upkeep *upkeep = run->context;
    upkeep->steps++;
    if (!table_has(upkeep->solutions, run->variables))
        table_append(upkeep->solutions, run->variables);
    return STATUS_OK;
}

// Sums of floats depend on the order in which they are added.
static bool order_matters(const Store *store, const Rule *rule, const Table *solutions) {
    for (uint32_t i = 0; i < rule->arity; i++) {
        bool sums = rule->aggregates[i] == AGGREGATE_SUM || rule->aggregates[i] == AGGREGATE_AVG;
        bool variable = rule->head[i].kind == TERM_VARIABLE;
        for (uint32_t row = 0; sums && variable && row < solutions->count; row++)
            if (constant_kind(&store->constants, table_at(solutions, row, rule->head[i].value)) ==
                CONSTANT_FLOAT)
                return true;
    }
    return false;
}

Status group_row(Upkeep *upkeep, RuleUpkeep *rule, const Datum *values, Table **out) {
    uint32_t variables = rule->rule->variable_count, arity = rule->rule->arity;
    Collector collector = {.table = *out = table_new(arity, columns_all(arity))};
    upkeep->solutions = table_new(variables, columns_all(variables));
    Status status = from_head(upkeep, rule, values, HEIGHT_NONE, solution_found);
    if (status == STATUS_OK && order_matters(upkeep->store, rule->rule, upkeep->solutions))
        status = fail_costs();
    if (status == STATUS_OK)
        status = aggregate_rows(upkeep->store, rule->rule, upkeep->solutions, &collector);
    collector_free(&collector);
    table_free(upkeep->solutions);
    if (status == STATUS_OK) return status;
    table_free(*out);
    *out = NULL;
    return status;
}

// The rows that changed groups had.
void groups_fall(Upkeep *upkeep) {
    Datum values[ARITY_MAX];
    for (size_t i = 0; i < upkeep->rules.count; i++) {
        const RuleUpkeep *rule = &upkeep->rules.items[i];
        Relation *relation = rule->rule->relation;
        Table *derived = relation->derived;
        for (uint32_t group = 0; rule->groups && group < rule->groups->count; group++) {
            Columns plain = aggregate_plain_columns(rule->rule);
            const Index *index = plain ? table_index(derived, plain, derived->count) : NULL;
            table_read(rule->groups, group, values);
            uint32_t row = index ? index_first(derived, index, values) : 0;
            while (row < derived->count) {
                if (!table_is_dead(derived, row))
                    queue_push(&upkeep->queue,
                               (Entry){relation->heights.items[row], rule->relation, row});
                row = index ? index_next(index, row) : row + 1;
            }
        }
    }
}
