// Proofs of a row that is there, and the rows that may have rested on it.
#include "logic/upkeep/prove.h"
#include "logic/upkeep/groups.h"

static Status head_may_fall(Run *run) {
    Upkeep *upkeep = run->context;
    Datum values[ARITY_MAX];
    run_head(run, values);
    upkeep->steps++;
    const Relation *relation = upkeep->rule->rule->relation;
    uint32_t row = table_find(relation->derived, values);
    if (row == ROW_NONE) return STATUS_OK;
    Height height = relation->heights.items[row];
    if (height > upkeep->at.height && height <= upkeep->high)
        queue_push(&upkeep->queue, (Entry){height, upkeep->rule->relation, row});
    return STATUS_OK;
}

const Direction heads_falling = {from_lost, head_may_fall};

Height path_height(const Run *run) {
    Height highest = 0;
    for (uint32_t i = 0; i < run->plan->count; i++) {
        const Step *step = &run->plan->steps[i];
        if (step->goal->kind != GOAL_ATOM || !step->heights) continue;
        Height height = step->heights[run->path[step->position]];
        highest = height > highest ? height : highest;
    }
    return highest;
}

static bool rests_on_itself(const Run *run, const Upkeep *upkeep) {
    const Relation *own = upkeep->kept.items[upkeep->at.relation].relation;
    for (uint32_t i = 0; i < run->plan->count; i++) {
        const Step *step = &run->plan->steps[i];
        if (step->goal->kind == GOAL_ATOM && step->goal->relation == own &&
            run->path[step->position] == upkeep->at.row)
            return true;
    }
    return false;
}

static Status proof_found(Run *run) {
    Upkeep *upkeep = run->context;
    Height height = path_height(run);
    upkeep->steps++;
    if (height >= upkeep->lowest || rests_on_itself(run, upkeep)) return STATUS_OK;
    upkeep->lowest = run->below = height;
    run->done = height < upkeep->at.height;
    return STATUS_OK;
}

// Whether the row is that of its group.
static Status group_proves(Upkeep *upkeep, RuleUpkeep *rule, const Datum *values, bool *out) {
    Table *row;
    TRY(group_row(upkeep, rule, values, &row));
    *out = row_is_in(row, values);
    table_free(row);
    return STATUS_OK;
}

Status proofs_find(Upkeep *upkeep, const Datum *values, Height below) {
    upkeep->lowest = HEIGHT_NONE;
    for (size_t i = 0; i < upkeep->rules.count; i++) {
        RuleUpkeep *rule = &upkeep->rules.items[i];
        if (rule->relation != upkeep->at.relation) continue;
        if (upkeep->lowest < upkeep->at.height) break;
        if (!rule->groups) {
            below = upkeep->lowest < below ? upkeep->lowest : below;
            TRY(from_head(upkeep, rule, values, below, proof_found));
            continue;
        }
        bool proved;
        TRY(group_proves(upkeep, rule, values, &proved));
        if (proved) upkeep->lowest = 0;
    }
    return STATUS_OK;
}
