// A row stands where its round, then the first rule that gives it in that round, then the rows of
// that rule's first solution put it. Rows of solutions are compared in the same way.
#define _GNU_SOURCE // qsort_r
#include "logic/upkeep/order.h"

#include <stdlib.h>

#include "logic/plan.h"
#include "logic/run.h"
#include "logic/upkeep/upkeep.h"

enum { DEPTH_MAX = 500 };

typedef struct Proof { // the first one of a row
    const Rule *rule;
    size_t path; // where its rows begin
} Proof;

typedef struct Ordering {
    Store *store;
    Table *known; // relation, row: the number of the proof
    VECTOR(Proof) proofs;
    VECTOR(uint32_t) paths;
    uint64_t steps, most;
    uint32_t depth;
    bool gave_up;
    Status status;
} Ordering;

typedef struct Solutions { // of one rule, for one row
    Ordering *ordering;
    uint32_t width;
    bool any; // where no goal goes through rows, a path has no positions
    VECTOR(uint32_t) paths;
} Solutions;

static Status solution_found(Run *run) {
    Solutions *solutions = run->context;
    for (uint32_t i = 0; i < solutions->width; i++) VECTOR_PUSH(&solutions->paths, run->path[i]);
    solutions->any = true;
    run->done = ++solutions->ordering->steps > solutions->ordering->most;
    return STATUS_OK;
}

static void extents_set(const Rule *rule, Extent *extents) {
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        Relation *relation = rule->goals[i].relation;
        if (!relation) continue;
        extents[i] = (Extent){.table = relation_table(relation)};
        extents[i].high = extents[i].table->count;
        bool along = relation_is_derived(relation) && relation->stratum == rule->relation->stratum;
        if (along) relation_measure(relation);
        if (along) extents[i].heights = relation->heights.items;
    }
}

// All solutions of the rule that give these values from rows below a height.
static Status solutions_find(Ordering *ordering, const Rule *rule, const Datum *values,
                             Height below, Solutions *out) {
    SCOPED_MEMORY Run *run = memory_allocate_zeroed(1, sizeof *run);
    Status status = STATUS_OK;
    if (head_unify(rule, values, run->variables)) {
        SCOPED_MEMORY Extent *extents =
            memory_allocate_zeroed(rule->goal_count + 1, sizeof *extents);
        Plan plan;
        PlanStart start = {.goal = NO_POSITION};
        extents_set(rule, extents);
        plan_make_from(rule, extents, &start, &plan);
        for (uint32_t i = 0; i < plan.count; i++) plan.steps[i].once = false;
        plan_set(&plan, extents);
        out->width = plan.positions;
        run->store = ordering->store;
        run->plan = &plan;
        run->found = solution_found;
        run->context = out;
        run->below = below;
        status = plan_run(run);
        ordering->steps += run->ticks;
        plan_free(&plan);
    }
    return status;
}

static int rows_compare(Ordering *ordering, Relation *relation, uint32_t a, uint32_t b);

static int paths_compare(Ordering *ordering, const Rule *rule, const uint32_t *a,
                         const uint32_t *b) {
    uint32_t position = 0;
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        if (goal->kind != GOAL_ATOM && goal->kind != GOAL_MEMBER) continue;
        uint32_t x = a[position], y = b[position++];
        int order = x < y ? -1 : x > y;
        if (order != 0 && goal->kind == GOAL_ATOM)
            order = rows_compare(ordering, goal->relation, x, y);
        if (order != 0) return order;
    }
    return 0;
}

// The first of the solutions becomes the row's proof.
static void proof_keep(Ordering *ordering, const Rule *rule, const Solutions *solutions,
                       const Datum *key) {
    const uint32_t *best = solutions->paths.items;
    size_t count = solutions->paths.count, width = solutions->width;
    for (size_t i = width; i < count && !ordering->gave_up; i += width)
        if (paths_compare(ordering, rule, solutions->paths.items + i, best) < 0)
            best = solutions->paths.items + i;
    Datum row[] = {key[0], key[1]};
    uint32_t number = table_append(ordering->known, row);
    ASSERT(number == ordering->proofs.count);
    VECTOR_PUSH(&ordering->proofs, ((Proof){rule, ordering->paths.count}));
    for (size_t i = 0; i < width; i++) VECTOR_PUSH(&ordering->paths, best[i]);
}

// Solutions of an aggregated rule tell the group, not the value: with other rules it is not known
// whose row it is.
static bool has_aggregates(const Relation *relation) {
    for (size_t i = 0; i < relation->rules.count; i++)
        if (relation->rules.items[i]->aggregates) return true;
    return false;
}

// The number of the row's first proof; the row is not a fact.
static uint32_t proof_of(Ordering *ordering, Relation *relation, uint32_t row) {
    Datum key[] = {relation->number, row}, values[ARITY_MAX];
    uint32_t number = table_find(ordering->known, key);
    if (number != ROW_NONE) return number;
    table_read(relation->derived, row, values);
    ordering->gave_up |= relation->rules.count > 1 && has_aggregates(relation);
    for (size_t i = 0; i < relation->rules.count && !ordering->gave_up; i++) {
        Solutions solutions = {.ordering = ordering};
        const Rule *rule = relation->rules.items[i];
        Status status =
            solutions_find(ordering, rule, values, relation->heights.items[row], &solutions);
        if (status != STATUS_OK) ordering->status = status;
        ordering->gave_up |= status != STATUS_OK || ordering->steps > ordering->most;
        bool found = solutions.any && !ordering->gave_up;
        if (found) proof_keep(ordering, rule, &solutions, key);
        VECTOR_FREE(&solutions.paths);
        if (found) return table_find(ordering->known, key);
    }
    ordering->gave_up = true;
    return ROW_NONE;
}

static int proofs_compare(Ordering *ordering, Relation *relation, uint32_t a, uint32_t b) {
    uint32_t x = proof_of(ordering, relation, a), y = proof_of(ordering, relation, b);
    if (ordering->gave_up) return 0;
    Proof first = ordering->proofs.items[x], second = ordering->proofs.items[y];
    if (first.rule != second.rule) return first.rule->number < second.rule->number ? -1 : 1;
    // The lists grow while rows are compared.
    uint32_t left[POSITIONS_MAX], right[POSITIONS_MAX], width = 0;
    for (uint32_t i = 0; i < first.rule->goal_count; i++) {
        enum GoalKind kind = first.rule->goals[i].kind;
        width += kind == GOAL_ATOM || kind == GOAL_MEMBER;
    }
    memcpy(left, ordering->paths.items + first.path, width * sizeof *left);
    memcpy(right, ordering->paths.items + second.path, width * sizeof *right);
    return paths_compare(ordering, first.rule, left, right);
}

static int facts_compare(const Relation *relation, uint32_t a, uint32_t b) {
    Datum values[ARITY_MAX];
    table_read(relation->derived, a, values);
    uint32_t x = table_find(relation->facts, values);
    table_read(relation->derived, b, values);
    uint32_t y = table_find(relation->facts, values);
    return x < y ? -1 : x > y;
}

static int rows_compare(Ordering *ordering, Relation *relation, uint32_t a, uint32_t b) {
    if (a == b || ordering->gave_up) return 0;
    if (!relation_is_derived(relation) || !relation->unordered) return a < b ? -1 : 1;
    ordering->gave_up |= relation->heights.count == 0; // of best values nobody knows the rounds
    if (ordering->gave_up) return 0;
    Height x = relation->heights.items[a], y = relation->heights.items[b];
    if (x != y) return x < y ? -1 : 1;
    if (x == 0) return facts_compare(relation, a, b);
    if (++ordering->depth > DEPTH_MAX) ordering->gave_up = true;
    int order = proofs_compare(ordering, relation, a, b);
    ASSERT(ordering->depth > 0);
    ordering->depth--;
    return order;
}

typedef struct Sorting {
    Ordering *ordering;
    Relation *relation;
} Sorting;

static int compare(const void *a, const void *b, void *context) {
    const Sorting *sorting = context;
    return rows_compare(sorting->ordering, sorting->relation, *(const uint32_t *)a,
                        *(const uint32_t *)b);
}

Status rows_order(Store *store, Relation *relation, uint32_t *rows, uint32_t count, bool *done) {
    enum { STEPS_MIN = 10000 };
    *done = false;
    if (count > 1) TRY(store_tighten(store));
    if (!relation->derived) return STATUS_OK;
    Ordering ordering = {.store = store, .known = table_new(2, columns_all(2))};
    ordering.most = STEPS_MIN + relation->derived->count;
    Sorting sorting = {&ordering, relation};
    if (count > 1) qsort_r(rows, count, sizeof *rows, compare, &sorting);
    *done = !ordering.gave_up;
    table_free(ordering.known);
    VECTOR_FREE(&ordering.proofs);
    VECTOR_FREE(&ordering.paths);
    if (ordering.status == STATUS_INTERRUPT) return ordering.status;
    if (ordering.status != STATUS_OK) error_clear(); // making it anew meets it again
    return STATUS_OK;
}

// Rounds as evaluation leaves them; heights are in the new order.
static void rounds_make(Relation *relation) {
    const Height *heights = relation->heights.items;
    uint32_t count = relation->derived->count, row = 0;
    for (uint32_t round = 0; row < count || round == 0; round++) {
        while (row < count && heights[row] == height_of_round(round)) row++;
        VECTOR_PUSH(&relation->rounds, row);
    }
    relation->unordered = false;
}

static void rows_permute(Relation *relation, const uint32_t *rows) {
    uint32_t count = relation->derived->count;
    Height *heights = memory_allocate((count + 1) * sizeof *heights);
    for (uint32_t i = 0; i < count; i++) heights[i] = relation->heights.items[rows[i]];
    for (uint32_t i = 0; i < count; i++) relation->heights.items[i] = heights[i];
    free(heights);
    table_permute(relation->derived, 0, rows);
    table_compact(relation->derived); // indexes go: rows have other numbers
    rounds_make(relation);
}

Status relation_order(Store *store, Relation *relation) {
    enum { ROWS_MAX = 5000 };
    if (!relation->derived || !relation->unordered) return STATUS_OK;
    TRY(store_tighten(store));
    if (!relation->derived) return STATUS_OK;
    bool done = false;
    uint32_t *rows = NULL;
    Status status = STATUS_OK;
    if (relation->derived->dead > 0) relation_compact(relation);
    uint32_t count = relation->derived->count;
    bool measured = relation->heights.count == count; // not those of best values
    if (count <= ROWS_MAX && measured) {
        rows = memory_allocate((count + 1) * sizeof *rows);
        for (uint32_t i = 0; i < count; i++) rows[i] = i;
        status = rows_order(store, relation, rows, count, &done);
    }
    if (done)
        rows_permute(relation, rows);
    else
        relation_changed(relation);
    free(rows);
    return status;
}
