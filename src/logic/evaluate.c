// Bottom-up evaluation of the relations that one needs: strata from below, in each the rounds of
// naive evaluation, of which only what the last round added is looked at again. A relation that is
// complete already takes part by its rounds, as if it were evaluated along.
#include <stdlib.h>

#include "logic/aggregate.h"
#include "logic/analyse.h"
#include "logic/classes.h"
#include "logic/collect.h"
#include "logic/evaluate.h"
#include "logic/growth.h"
#include "logic/parts.h"
#include "logic/profile.h"
#include "logic/room.h"
#include "logic/run.h"
#include "logic/seek.h"
#include "logic/transitive.h"
#include "logic/upkeep/order.h"
#include "logic/upkeep/upkeep.h"

typedef struct Variant { // one way to see the new rows of a rule: in this goal's relation
    uint32_t goal;       // NO_GOAL: the first round, which sees everything
    Plan plan;
    uint32_t planned; // the round in which the plan was made; 0: there is none
    bool alone;       // its plan has been tried on several threads in vain
} Variant;

enum { NO_GOAL = UINT32_MAX };

typedef struct RuleWork {
    const Rule *rule;
    Collector *collector; // of its relation
    Extent *extents;      // one a goal
    Variant *variants;
    uint32_t variant_count;
    Transitive *transitive; // of the rule of that name; NULL until it has run
} RuleWork;

typedef struct Group { // what is evaluated together
    Store *store;
    uint32_t stratum, round;
    RelationList relations;
    Collector *collectors; // one a relation
    RuleWork *works;
    uint32_t work_count;
} Group;

// --- which rows take part

static bool is_along(const Group *group, const Relation *relation) {
    return relation->stratum == group->stratum && relation_is_derived(relation);
}

// Rows that the relation has after `round` rounds.
static uint32_t rows_after(const Relation *relation, uint32_t round) {
    ASSERT(relation->rounds.count > 0);
    size_t last = relation->rounds.count - 1;
    return relation->rounds.items[round < last ? round : last];
}

static Extent extent_whole(const Group *group, const Relation *relation) {
    Extent extent = {.table = relation_table(relation)};
    extent.high =
        is_along(group, relation) ? rows_after(relation, group->round - 1) : extent.table->count;
    return extent;
}

static bool has_new(const Group *group, const Relation *relation) {
    return rows_after(relation, group->round - 1) > rows_after(relation, group->round - 2);
}

// The variant's goal sees what the last round added, goals before it what was there before.
static void extents_set(const Group *group, RuleWork *work, uint32_t delta) {
    for (uint32_t i = 0; i < work->rule->goal_count; i++) {
        const Goal *goal = &work->rule->goals[i];
        if (!goal->relation) continue;
        work->extents[i] = extent_whole(group, goal->relation);
        ASSERT(work->extents[i].low <= work->extents[i].high);
        if (delta == NO_GOAL || goal->kind != GOAL_ATOM || !is_along(group, goal->relation))
            continue;
        uint32_t before = rows_after(goal->relation, group->round - 2);
        if (i == delta) work->extents[i].low = before;
        if (i < delta) work->extents[i].high = before;
    }
}

// --- one rule in one round

typedef struct Target {
    Collector *collector;
    Table *solutions; // of an aggregated rule
} Target;

static Status row_found(Run *run) {
    Datum values[ARITY_MAX];
    run_head(run, values);
    collector_add(run->context, run->store, values, run->path);
    return STATUS_OK;
}

static Status solution_found(Run *run) {
    collector_add(run->context, run->store, run->variables, run->path);
    return STATUS_OK;
}

static bool variant_is_active(const Group *group, const RuleWork *work, const Variant *variant) {
    ASSERT(variant->goal == NO_GOAL || variant->goal < work->rule->goal_count);
    if (variant->goal == NO_GOAL) return group->round == 1;
    return group->round > 1 && has_new(group, work->rule->goals[variant->goal].relation);
}

// Sizes change: plans are made anew in the first round after each power of two in which the variant
// is active. What is asked of closures is active in every second round only.
static void variant_prepare(const Group *group, RuleWork *work, Variant *variant) {
    ASSERT(variant->goal == NO_GOAL || work->rule->goals[variant->goal].relation);
    extents_set(group, work, variant->goal);
    uint32_t power = 1u << (31 - __builtin_clz(group->round));
    if (variant->planned < power) {
        if (variant->planned) plan_free(&variant->plan);
        plan_make(work->rule, work->extents, NULL, &variant->plan);
        variant->planned = group->round;
        variant->alone = false;
    }
    plan_set(&variant->plan, work->extents);
}

static StepCost *variant_costs(const Group *group, const Variant *variant) {
    if (!group->store->profile) return NULL;
    bool first = variant->goal == NO_GOAL;
    const Rule *rule = variant->plan.rule;
    return profile_plan(group->store->profile, group->store, &variant->plan,
                        first ? NULL : &rule->goals[variant->goal]);
}

static Status variant_run(Variant *variant, Run *run) {
    Parting parting = PARTING_NONE;
    if (!variant->alone) TRY(parts_run(run, &parting));
    variant->alone |= parting == PARTING_VAIN;
    return parting == PARTING_DONE ? STATUS_OK : plan_run(run);
}

static Status variants_run(Group *group, RuleWork *work, Collector *collector, bool solutions) {
    uint32_t active = 0;
    bool ordered = true;
    for (uint32_t i = 0; i < work->variant_count; i++) {
        if (!variant_is_active(group, work, &work->variants[i])) continue;
        variant_prepare(group, work, &work->variants[i]);
        ordered &= work->variants[i].plan.ordered;
        active++;
    }
    if (active == 0) return STATUS_OK;
    collector_begin_rule(collector, !ordered || active > 1, work->variants[0].plan.positions);
    Run *run = memory_allocate(sizeof *run);
    Status status = STATUS_OK;
    for (uint32_t i = 0; i < work->variant_count && status == STATUS_OK; i++) {
        Variant *variant = &work->variants[i];
        if (!variant_is_active(group, work, variant)) continue;
        if (active > 1) { // the other variants have set other rows in the same goals
            extents_set(group, work, variant->goal);
            plan_set(&variant->plan, work->extents);
        }
        *run = (Run){.store = group->store, .plan = &variant->plan, .context = collector};
        run->found = solutions ? solution_found : row_found;
        run->costs = variant_costs(group, variant);
        status = variant_run(variant, run);
        work->rule->relation->effort += run->ticks;
    }
    free(run);
    collector_end_rule(collector);
    return status;
}

// All solutions first, in their order; then the groups.
static Status aggregate_run(Group *group, RuleWork *work, Collector *collector) {
    uint32_t count = work->rule->variable_count;
    ASSERT(work->rule->aggregates && count <= ARITY_MAX);
    if (group->round > 1) return STATUS_OK;
    Collector solutions = {.table = table_new(count, columns_all(count))};
    collector_begin_round(&solutions);
    Status status = variants_run(group, work, &solutions, true);
    collector_begin_rule(collector, false, 0);
    if (status == STATUS_OK)
        status = aggregate_rows(group->store, work->rule, solutions.table, collector);
    table_free(solutions.table);
    collector_free(&solutions);
    return status;
}

// The transitive law has a way of its own.
static Status transitive_run(Group *group, RuleWork *work, Collector *collector) {
    Relation *relation = work->rule->relation;
    Variant *variant = &work->variants[group->round > 1];
    if (!variant_is_active(group, work, variant)) return STATUS_OK;
    uint64_t begin = profile_clock(), steps;
    uint32_t high = rows_after(relation, group->round - 1);
    if (!work->transitive) work->transitive = transitive_new(group->store, relation);
    TRY(transitive_round(work->transitive, high, collector, &steps));
    relation->effort += steps;
    variant_prepare(group, work, variant);
    StepCost *costs = variant_costs(group, variant);
    if (!costs) return STATUS_OK;
    costs[0].nanoseconds += profile_clock() - begin;
    costs[1].calls += high;
    costs[2].calls += steps;
    return STATUS_OK;
}

// --- rounds

// A value that improves in round n rests on n rows. Where there are fewer, one of them rests on
// itself with a worse value, and so it goes on. Sums of floats may take some rounds to settle.
static Status values_have_ends(const Group *group) {
    enum { SETTLING = 64 };
    if (group->round <= SETTLING) return STATUS_OK;
    size_t rows = SETTLING;
    const RelationList *relations = &group->store->relations;
    for (size_t i = 0; i < relations->count; i++)
        if (is_along(group, relations->items[i]) && relations->items[i]->derived)
            rows += table_live(relations->items[i]->derived);
    if (group->round <= rows) return STATUS_OK;
    for (uint32_t i = 0; i < group->work_count; i++) {
        const Rule *rule = group->works[i].rule;
        const Collector *collector = group->works[i].collector;
        if (!collector->columns || !collector->changed || group->works[i].variant_count == 1)
            continue;
        fail(STATUS_VALUE, "the best values of %s have no end: every round improves them",
             rule->relation->name);
        Status status = fail_help("a cycle improves them each time it is gone through, as one of "
                                  "negative length does with shortest ways");
        error_place(rule->span);
        return status;
    }
    return STATUS_OK;
}

static Status round_run(Group *group) {
    for (size_t i = 0; i < group->relations.count; i++)
        collector_begin_round(&group->collectors[i]);
    for (uint32_t i = 0; i < group->work_count; i++) {
        RuleWork *work = &group->works[i];
        Collector *collector = work->collector;
        TRY(work->rule->transitive   ? transitive_run(group, work, collector)
            : work->rule->aggregates ? aggregate_run(group, work, collector)
                                     : variants_run(group, work, collector, false));
    }
    for (size_t i = 0; i < group->relations.count; i++) {
        collector_end_round(&group->collectors[i]);
        VECTOR_PUSH(&group->relations.items[i]->rounds, group->collectors[i].table->count);
    }
    TRY(values_have_ends(group));
    return room_ask(group->store);
}

// Whether the next round can see anything new: in relations evaluated here or complete before.
static bool goes_on(const Group *group) {
    for (uint32_t i = 0; i < group->work_count; i++)
        for (uint32_t j = 0; j < group->works[i].variant_count; j++) {
            uint32_t goal = group->works[i].variants[j].goal;
            if (goal == NO_GOAL) continue;
            const Relation *relation = group->works[i].rule->goals[goal].relation;
            // what it gains in this round or later
            if (rows_after(relation, UINT32_MAX) > rows_after(relation, group->round - 1))
                return true;
        }
    return false;
}

// The facts are round 0.
static void facts_begin(Group *group, Relation *relation, Collector *collector) {
    ASSERT(relation->rounds.count == 0);
    relation->effort = relation->facts->count;
    collector_begin_round(collector);
    collector_begin_rule(collector, false, 0);
    Datum values[ARITY_MAX];
    for (uint32_t row = 0; row < relation->facts->count; row++) {
        if (table_is_dead(relation->facts, row)) continue;
        table_read(relation->facts, row, values);
        collector_add(collector, group->store, values, NULL);
    }
    collector_end_round(collector);
    VECTOR_PUSH(&relation->rounds, relation->derived->count);
}

static void relation_begin(Group *group, size_t number) {
    ASSERT(number < group->relations.count);
    Relation *relation = group->relations.items[number];
    Collector *collector = &group->collectors[number];
    bool merges = relation->key != columns_all(relation->arity);
    bool begun = relation->derived;
    if (!begun) relation->derived = table_new(relation->arity, relation->key);
    *collector =
        (Collector){.table = relation->derived, .columns = merges ? relation->columns : NULL};
    if (begun) return;
    table_give_room(relation->derived, &group->store->room);
    facts_begin(group, relation, collector);
}

static void work_begin(const Group *group, RuleWork *work, const Rule *rule) {
    ASSERT(rule->relation->stratum == group->stratum);
    work->rule = rule;
    work->extents = memory_allocate_zeroed(rule->goal_count + 1, sizeof *work->extents);
    work->variants = memory_allocate_zeroed(rule->goal_count + 1, sizeof *work->variants);
    work->variants[work->variant_count++].goal = NO_GOAL;
    for (uint32_t i = 0; i < rule->goal_count; i++)
        if (rule->goals[i].kind == GOAL_ATOM && is_along(group, rule->goals[i].relation))
            work->variants[work->variant_count++].goal = i;
}

// Goes on with what a question has ended: with the same relations, or not at all.
static void begun_take(Group *group) {
    RelationList *begun = &group->store->begun;
    bool same = begun->count == group->relations.count, touches = false;
    for (size_t i = 0; i < group->relations.count; i++) {
        touches |= group->relations.items[i]->begun != NULL;
        same = same && begun->items[i] == group->relations.items[i];
    }
    if (touches && !same) store_forget_begun(group->store);
    if (!touches || !same) return;
    group->round = (uint32_t)begun->items[0]->rounds.count - 1;
    begun_show(group->store);
    VECTOR_FREE(begun);
}

// The rows so far are kept, for further questions.
static void begun_leave(Group *group, Edge edge) {
    store_forget_begun(group->store);
    group->store->edge = edge;
    for (size_t i = 0; i < group->relations.count; i++)
        VECTOR_PUSH(&group->store->begun, group->relations.items[i]);
    begun_hide(group->store);
}

static int compare_rules(const void *a, const void *b) {
    const Rule *x = ((const RuleWork *)a)->rule, *y = ((const RuleWork *)b)->rule;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void group_begin(Group *group) {
    size_t rules = 0;
    group->collectors = memory_allocate_zeroed(group->relations.count + 1, sizeof(Collector));
    begun_take(group);
    for (size_t i = 0; i < group->relations.count; i++) {
        relation_begin(group, i);
        rules += group->relations.items[i]->rules.count;
    }
    group->works = memory_allocate_zeroed(rules + 1, sizeof *group->works);
    for (size_t i = 0; i < group->relations.count; i++) {
        const RuleList *list = &group->relations.items[i]->rules;
        for (size_t j = 0; j < list->count; j++) {
            RuleWork *work = &group->works[group->work_count++];
            work->collector = &group->collectors[i];
            work_begin(group, work, list->items[j]);
        }
    }
    qsort(group->works, group->work_count, sizeof *group->works, compare_rules);
}

// After a failure nothing half made is left.
static void group_end(Group *group, bool failed) {
    for (size_t i = 0; i < group->relations.count; i++) {
        Relation *relation = group->relations.items[i];
        collector_free(&group->collectors[i]);
        if (!failed) continue;
        table_free(relation->derived);
        relation->derived = NULL;
        VECTOR_FREE(&relation->rounds);
    }
    for (uint32_t i = 0; i < group->work_count; i++) {
        RuleWork *work = &group->works[i];
        for (uint32_t j = 0; j < work->variant_count; j++)
            if (work->variants[j].planned) plan_free(&work->variants[j].plan);
        transitive_free(work->transitive);
        free(work->extents);
        free(work->variants);
    }
    free(group->works);
    free(group->collectors);
}

static const Rule *endless_find(const Group *group) {
    const Rule *endless = NULL;
    for (uint32_t i = 0; i < group->work_count && !endless; i++)
        endless = rule_endless(group->store, group->works[i].rule);
    return endless;
}

// What ended the evaluation is said at the rule that gives further values in every round.
static void failure_place(Status status, const Rule *endless) {
    if (!endless || (status != STATUS_INTERRUPT && status != STATUS_MEMORY)) return;
    const char *name = endless->relation->name;
    if (status == STATUS_MEMORY)
        (void)fail_label("each round gives %s further values", name);
    else
        (void)fail_help("each round gives %s further values, and nothing in its rules bounds them",
                        name);
    error_place(endless->span);
}

static Seek *seek_begin(Group *group) {
    const Question *question = group->store->question;
    bool inside = false;
    for (size_t i = 0; question && i < group->relations.count; i++)
        inside |= group->relations.items[i] == question->relation;
    if (!inside) return NULL;
    return seek_new(group->store, &group->relations, question);
}

static Status group_run(Group *group) {
    group_begin(group);
    const Rule *endless = endless_find(group);
    group->store->making = &group->relations;
    group->store->endless = endless;
    Seek *seek = seek_begin(group);
    Status status = STATUS_OK;
    bool going = group->round == 0 || goes_on(group);
    while (status == STATUS_OK && going && !(seek && seek_ends(seek))) {
        group->round++;
        status = round_run(group);
        going = goes_on(group);
    }
    const Edge edge = seek ? seek_edge(seek) : (Edge){0};
    seek_free(seek);
    group->store->making = NULL;
    failure_place(status, endless);
    group_end(group, status != STATUS_OK);
    if (status == STATUS_OK && going) begun_leave(group, edge);
    return status;
}

// Ancestor: 12 tuples, 416 bytes, 3 rounds; Path: 5000 tuples as dense bits, 41416 bytes, 9 rounds
static void relations_describe(const RelationList *relations, Text *out) {
    for (size_t i = 0; i < relations->count; i++) {
        const Relation *relation = relations->items[i];
        const Table *table = relation->derived ? relation->derived : relation->begun;
        ASSERT(table && relation->rounds.count > 0);
        uint32_t rows = table_live(table);
        size_t rounds = relation->rounds.count - 1;
        const Cells *cells = table->cells;
        text_format(out, "%s%s: %u tuple%s%s%s, %zu bytes, %zu round%s%s", i > 0 ? "; " : "",
                    relation->name, rows, rows == 1 ? "" : "s", cells ? " as " : "",
                    cells ? cells_name(cells) : "", table_bytes(table), rounds,
                    rounds == 1 ? "" : "s", relation->begun ? ", as far as they are asked" : "");
    }
}

Status relations_evaluate(Store *store, const RelationList *relations, uint32_t stratum) {
    const double MILLISECOND = 1e6;
    Group group = {.store = store, .stratum = stratum, .relations = *relations};
    if (!store->profile) return group_run(&group);
    size_t section = profile_begin_section(store->profile);
    uint64_t begin = profile_clock();
    TRY(group_run(&group));
    SCOPED_TEXT(text);
    relations_describe(relations, &text);
    profile_name_section(store->profile, section, "%s, %.3f ms", text_get(&text),
                         (double)(profile_clock() - begin) / MILLISECOND);
    return STATUS_OK;
}

// --- what is needed

// What is read is read in its order. *again: something was forgotten that may have been passed.
static Status want(Store *store, Relation *relation, RelationList *wanted, bool *again) {
    if (relation->wanted || !relation_is_derived(relation)) return STATUS_OK;
    bool there = relation->derived;
    TRY(relation_order(store, relation));
    *again |= there && !relation->derived;
    if (relation->derived) return STATUS_OK;
    relation->wanted = true;
    VECTOR_PUSH(wanted, relation);
    return STATUS_OK;
}

static int compare_strata(const void *a, const void *b) {
    const Relation *x = *(Relation *const *)a, *y = *(Relation *const *)b;
    if (x->stratum != y->stratum) return x->stratum < y->stratum ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static Status want_all(Store *store, RelationList *wanted, bool *again) {
    Status status = STATUS_OK;
    for (size_t i = 0; i < wanted->count; i++) {
        const RuleList *rules = &wanted->items[i]->rules;
        for (size_t j = 0; j < rules->count; j++)
            for (uint32_t k = 0; k < rules->items[j]->goal_count && status == STATUS_OK; k++)
                if (rules->items[j]->goals[k].relation)
                    status = want(store, rules->items[j]->goals[k].relation, wanted, again);
    }
    for (size_t i = 0; i < wanted->count; i++) wanted->items[i]->wanted = false;
    return status;
}

// The relations that must be made, from below.
static Status wanted_find(Store *store, Relation *relation, RelationList *wanted) {
    Status status = STATUS_OK;
    for (bool again = true; again && status == STATUS_OK;) {
        again = false;
        wanted->count = 0;
        status = want(store, relation, wanted, &again);
        if (status == STATUS_OK) status = want_all(store, wanted, &again);
    }
    if (wanted->count) qsort(wanted->items, wanted->count, sizeof *wanted->items, compare_strata);
    return status;
}

Status store_prepare(Store *store) {
    Span span;
    Status status = store_analyse(store, &span);
    if (status != STATUS_OK) error_place(span);
    return status == STATUS_OK ? store_settle(store) : status;
}

// Equivalences among them are made whole: asked for some rows, their rules go through a class with
// the cube of its size.
Status store_order_inputs(Store *store, Relation *relation) {
    SCOPED_MEMORY RelationList wanted = {0};
    TRY(wanted_find(store, relation, &wanted));
    for (size_t i = 0; i < wanted.count; i++) {
        bool apart = wanted.items[i]->component != relation->component, small = false;
        if (apart && wanted.items[i]->equivalence)
            TRY(classes_are_small(store, wanted.items[i], &small));
        if (small) TRY(store_complete(store, wanted.items[i]));
    }
    return STATUS_OK;
}

// The first of them, which are of one stratum.
static void together_find(const RelationList *wanted, size_t first, RelationList *together) {
    for (size_t i = first; i < wanted->count; i++)
        if (wanted->items[i]->stratum == wanted->items[first]->stratum)
            VECTOR_PUSH(together, wanted->items[i]);
}

Status store_complete(Store *store, Relation *relation) {
    TRY(store_prepare(store));
    SCOPED_MEMORY RelationList wanted = {0};
    Status status = wanted_find(store, relation, &wanted);
    for (size_t i = 0, count; i < wanted.count && status == STATUS_OK; i += count) {
        SCOPED_MEMORY RelationList together = {0};
        together_find(&wanted, i, &together);
        count = together.count;
        status = relations_evaluate(store, &together, together.items[0]->stratum);
    }
    return status;
}

// Lower strata are made for it in any case.
static Status can_stop(Store *store, const Question *question, bool *out) {
    SCOPED_MEMORY RelationList wanted = {0};
    SCOPED_MEMORY RelationList together = {0};
    Status status = wanted_find(store, question->relation, &wanted);
    *out = status == STATUS_OK && wanted.count > 0;
    for (size_t i = 0; i < wanted.count && *out; i++) {
        Relation *relation = wanted.items[i];
        bool below = relation->stratum != question->relation->stratum;
        if (below) status = store_complete(store, relation);
        if (!below) VECTOR_PUSH(&together, relation);
        bool plain = below || relation->key == columns_all(relation->arity);
        *out = status == STATUS_OK && plain;
    }
    if (*out) *out = question_has_end(store, &together, question);
    return status;
}

Status store_answer(Store *store, const Question *question, bool *done) {
    *done = false;
    if (!question->relation->grows) return STATUS_OK;
    *done = question_is_answered(store, question);
    if (*done) return STATUS_OK;
    TRY(can_stop(store, question, done));
    if (!*done) return STATUS_OK;
    const Question *around = store->question;
    store->question = question;
    Status status = store_complete(store, question->relation);
    store->question = around;
    return status;
}

Status store_gather(Store *store, Relation *relation) {
    TRY(store_prepare(store));
    return relation->derived ? STATUS_OK : store_complete(store, relation);
}
