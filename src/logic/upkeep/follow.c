// The queue of upkeep, and its runs of rules.
#include "logic/upkeep/follow.h"

#include <stdlib.h>

#include "logic/run.h"

// The columns of best values, which a row of the head is asked for.
static Columns relation_merged(const Relation *relation) {
    return columns_all(relation->arity) & ~relation->key;
}

bool row_is_in(const Table *table, const Datum *values) {
    return table && table_has(table, values);
}

// --- the queue: a binary heap, the lowest first

static bool entry_is_less(const Entry *a, const Entry *b) {
    if (a->height != b->height) return a->height < b->height;
    return a->relation != b->relation ? a->relation < b->relation : a->row < b->row;
}

void queue_push(Queue *queue, Entry entry) {
    VECTOR_PUSH(queue, entry);
    size_t at = queue->count - 1;
    for (; at > 0 && entry_is_less(&entry, &queue->items[(at - 1) / 2]); at = (at - 1) / 2)
        queue->items[at] = queue->items[(at - 1) / 2];
    queue->items[at] = entry;
}

Entry queue_pop(Queue *queue) {
    Entry first = queue->items[0], last = queue->items[--queue->count];
    size_t at = 0;
    for (size_t child; (child = at * 2 + 1) < queue->count; at = child) {
        bool right = child + 1 < queue->count &&
                     entry_is_less(&queue->items[child + 1], &queue->items[child]);
        child += right;
        if (!entry_is_less(&queue->items[child], &last)) break;
        queue->items[at] = queue->items[child];
    }
    queue->items[at] = last;
    return first;
}

// --- running a rule from one row

bool is_of_stratum(const Upkeep *upkeep, const Relation *relation) {
    return relation->stratum == upkeep->stratum && relation_is_derived(relation);
}

// `old`: what was there before takes part as well.
static void extents_set(const Upkeep *upkeep, const RuleUpkeep *rule, bool old) {
    for (uint32_t i = 0; i < rule->rule->goal_count; i++) {
        const Relation *relation = rule->rule->goals[i].relation;
        if (!relation) continue;
        Extent *extent = &rule->extents[i];
        *extent = (Extent){.table = relation_table(relation)};
        extent->high = extent->table->count;
        if (old) extent->extra = relation->lost;
        if (is_of_stratum(upkeep, relation)) extent->heights = relation->heights.items;
    }
}

// How low a proof is depends on which row of the stratum it takes.
static void plan_look_everywhere(const Upkeep *upkeep, Plan *plan) {
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].goal->relation && is_of_stratum(upkeep, plan->steps[i].goal->relation))
            plan->steps[i].once = false;
}

static void plan_prepare(Upkeep *upkeep, const RuleUpkeep *rule, const PlanStart *start, bool old,
                         Plan *plan) {
    extents_set(upkeep, rule, old);
    if (!plan->steps) {
        plan_make_from(rule->rule, rule->extents, start, plan);
        plan_look_everywhere(upkeep, plan);
    }
    plan_set(plan, rule->extents);
}

Status fail_costs(void) {
    return fail(STATUS_VALUE, "making it anew costs less");
}

// The variables are in the run; those that nothing gives a value yet are without one.
static Status plan_go(Upkeep *upkeep, const RuleUpkeep *rule, const Plan *plan,
                      Status (*found)(Run *)) {
    Run *run = upkeep->run;
    upkeep->rule = rule;
    run->plan = plan;
    run->found = found;
    run->done = false;
    TRY(plan_run(run));
    upkeep->steps++;
    return upkeep->steps + run->ticks > upkeep->most ? fail_costs() : STATUS_OK;
}

Status from_lost(Upkeep *upkeep, RuleUpkeep *rule, uint32_t goal, const Datum *values,
                 Status (*found)(Run *)) {
    const Goal *start = &rule->rule->goals[goal];
    if (!goal_unify(rule->rule, start, values, upkeep->run->variables)) return STATUS_OK;
    PlanStart from = {.goal = goal, .positive = true};
    plan_prepare(upkeep, rule, &from, true, &rule->lose[goal]);
    upkeep->run->below = UINT32_MAX;
    return plan_go(upkeep, rule, &rule->lose[goal], found);
}

Status from_gained(Upkeep *upkeep, RuleUpkeep *rule, uint32_t goal, const Datum *values,
                   Status (*found)(Run *)) {
    const Goal *start = &rule->rule->goals[goal];
    if (!goal_unify(rule->rule, start, values, upkeep->run->variables)) return STATUS_OK;
    PlanStart from = {.goal = goal};
    plan_prepare(upkeep, rule, &from, false, &rule->gain[goal]);
    upkeep->run->below = UINT32_MAX;
    return plan_go(upkeep, rule, &rule->gain[goal], found);
}

Status from_head(Upkeep *upkeep, RuleUpkeep *rule, const Datum *values, uint32_t below,
                 Status (*found)(Run *)) {
    upkeep->run->done = false;
    if (!head_unify(rule->rule, values, upkeep->run->variables)) return STATUS_OK;
    PlanStart from = {.goal = NO_POSITION, .open = relation_merged(rule->rule->relation)};
    plan_prepare(upkeep, rule, &from, false, &rule->prove);
    upkeep->run->below = below;
    return plan_go(upkeep, rule, &rule->prove, found);
}

void row_note(Table **table, const Relation *relation, const Datum *values) {
    if (!*table) *table = table_new(relation->arity, columns_all(relation->arity));
    if (!table_has(*table, values)) table_append(*table, values);
}

Status heads_follow(Upkeep *upkeep, Direction direction, const Relation *relation,
                    enum GoalKind kind, const Datum *values) {
    for (size_t i = 0; i < upkeep->rules.count; i++) {
        RuleUpkeep *rule = &upkeep->rules.items[i];
        for (uint32_t goal = 0; !rule->groups && goal < rule->rule->goal_count; goal++)
            if (rule->rule->goals[goal].relation == relation &&
                rule->rule->goals[goal].kind == kind)
                TRY(direction.from(upkeep, rule, goal, values, direction.found));
    }
    return STATUS_OK;
}

Status rows_follow(Upkeep *upkeep, Direction direction, const Relation *relation, const Table *rows,
                   enum GoalKind kind) {
    Datum values[ARITY_MAX];
    for (uint32_t row = 0; rows && row < rows->count; row++) {
        if (table_is_dead(rows, row)) continue;
        table_read(rows, row, values);
        TRY(heads_follow(upkeep, direction, relation, kind, values));
    }
    return STATUS_OK;
}
