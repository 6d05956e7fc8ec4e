// What an upkeep has at hand, its queue, and its runs of rules.
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

// --- relations that are brought up to date together

bool is_best(const Relation *relation) {
    return relation->key != columns_all(relation->arity);
}

void upkeep_begin(Upkeep *upkeep, Store *store, const RelationList *reached) {
    // Rows gone through: to make relations anew takes as long, with as many of theirs for each.
    enum { STEPS_MIN = 10000, STEPS_EACH = 4 };
    *upkeep = (Upkeep){.store = store, .most = STEPS_MIN, .high = HEIGHT_NONE};
    upkeep->run = memory_allocate_zeroed(1, sizeof *upkeep->run);
    upkeep->run->store = store;
    upkeep->run->context = upkeep;
    for (size_t i = 0; i < reached->count; i++)
        upkeep->most += reached->items[i]->effort / STEPS_EACH;
}

void upkeep_end(Upkeep *upkeep) {
    upkeep->store->followed += upkeep->steps + upkeep->run->ticks;
    free(upkeep->run);
    VECTOR_FREE(&upkeep->heads);
}

static void rule_begin(Upkeep *upkeep, const Rule *rule, uint32_t relation) {
    uint32_t goals = rule->goal_count + 1;
    RuleUpkeep upkept = {.rule = rule, .relation = relation};
    upkept.extents = memory_allocate_zeroed(goals, sizeof *upkept.extents);
    upkept.lose = memory_allocate_zeroed(goals, sizeof *upkept.lose);
    upkept.gain = memory_allocate_zeroed(goals, sizeof *upkept.gain);
    if (rule->aggregates) upkept.groups = table_new(rule->arity, columns_all(rule->arity));
    VECTOR_PUSH(&upkeep->rules, upkept);
}

static void rule_end(RuleUpkeep *rule) {
    for (uint32_t i = 0; i < rule->rule->goal_count; i++) {
        plan_free(&rule->lose[i]);
        plan_free(&rule->gain[i]);
    }
    plan_free(&rule->prove);
    free(rule->extents);
    free(rule->lose);
    free(rule->gain);
    table_free(rule->groups);
}

void stratum_begin(Upkeep *upkeep, Relation *const *relations, size_t count) {
    upkeep->stratum = relations[0]->stratum;
    upkeep->component = relations[0]->component;
    upkeep->fallen = 0;
    for (size_t i = 0; i < count; i++) {
        VECTOR_PUSH(&upkeep->kept, ((Kept){relations[i], .before = relations[i]->derived->count}));
        if (!is_best(relations[i])) relation_measure(relations[i]);
        for (size_t j = 0; j < relations[i]->rules.count; j++)
            rule_begin(upkeep, relations[i]->rules.items[j], (uint32_t)i);
    }
    // Relations that only take part need heights as well.
    for (size_t i = 0; i < upkeep->rules.count; i++) {
        const Rule *rule = upkeep->rules.items[i].rule;
        for (uint32_t j = 0; j < rule->goal_count; j++) {
            Relation *relation = rule->goals[j].relation;
            if (relation && is_within(upkeep, relation) && !is_best(relation))
                relation_measure(relation);
        }
    }
}

void stratum_end(Upkeep *upkeep) {
    for (size_t i = 0; i < upkeep->rules.count; i++) rule_end(&upkeep->rules.items[i]);
    for (size_t i = 0; i < upkeep->kept.count; i++) {
        VECTOR_FREE(&upkeep->kept.items[i].offers);
        table_free(upkeep->kept.items[i].raised);
    }
    VECTOR_FREE(&upkeep->rules);
    VECTOR_FREE(&upkeep->kept);
    VECTOR_FREE(&upkeep->queue);
    VECTOR_FREE(&upkeep->removed);
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

static Entry queue_take(Queue *queue) {
    ASSERT(queue->count > 0);
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

Entry queue_pop(Queue *queue) {
    Entry first = queue_take(queue);
    while (queue->count > 0 && memcmp(&queue->items[0], &first, sizeof first) == 0)
        queue_take(queue);
    return first;
}

// --- running a rule from one row

bool is_within(const Upkeep *upkeep, const Relation *relation) {
    return relation->stratum == upkeep->stratum && relation_is_derived(relation) &&
           (upkeep->together || relation->component == upkeep->component);
}

static bool is_kept(const Upkeep *upkeep, const Relation *relation) {
    for (size_t i = 0; i < upkeep->kept.count; i++)
        if (upkeep->kept.items[i].relation == relation) return true;
    return false;
}

// `old`: what was there before takes part as well. Of the relations themselves only what is still
// there: of a proof's rows the first to go was followed while the others were.
static void extents_set(const Upkeep *upkeep, const RuleUpkeep *rule, bool old) {
    for (uint32_t i = 0; i < rule->rule->goal_count; i++) {
        const Relation *relation = rule->rule->goals[i].relation;
        if (!relation) continue;
        Extent *extent = &rule->extents[i];
        *extent = (Extent){.table = relation_table(relation)};
        extent->high = extent->table->count;
        if (old && !is_kept(upkeep, relation)) extent->extra = relation->lost;
        if (is_within(upkeep, relation)) extent->heights = relation->heights.items;
    }
}

// How low a proof is depends on which rows along it takes.
static void plan_look_everywhere(const Upkeep *upkeep, Plan *plan) {
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].goal->relation && is_within(upkeep, plan->steps[i].goal->relation))
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
    upkeep->run->below = upkeep->high;
    return plan_go(upkeep, rule, &rule->lose[goal], found);
}

Status from_gained(Upkeep *upkeep, RuleUpkeep *rule, uint32_t goal, const Datum *values,
                   Status (*found)(Run *)) {
    const Goal *start = &rule->rule->goals[goal];
    if (!goal_unify(rule->rule, start, values, upkeep->run->variables)) return STATUS_OK;
    PlanStart from = {.goal = goal};
    plan_prepare(upkeep, rule, &from, false, &rule->gain[goal]);
    upkeep->run->below = HEIGHT_NONE;
    return plan_go(upkeep, rule, &rule->gain[goal], found);
}

Status from_head(Upkeep *upkeep, RuleUpkeep *rule, const Datum *values, Height below,
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
