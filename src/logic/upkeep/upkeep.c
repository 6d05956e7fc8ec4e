// One stratum at a time, from below. First what is lost: rows whose proofs rested on something that
// has gone, lowest first; each is kept when a proof from lower rows is left. Then what is gained:
// new proofs, lowest first, as in Dijkstra's algorithm. A row that a new proof would make lower is
// noted: heights are made the lowest when an order is asked for.
#include "logic/upkeep/upkeep.h"

#include <stdlib.h>

#include "logic/run.h"
#include "logic/upkeep/best.h"
#include "logic/upkeep/follow.h"
#include "logic/upkeep/groups.h"
#include "logic/upkeep/stratum.h"

// --- what has changed

// Of a relation without rules: facts that are there now and were not, and the other way round.
static void facts_compare(Relation *relation) {
    Datum row[ARITY_MAX];
    for (uint32_t i = 0; i < relation->touched->count; i++) {
        table_read(relation->touched, i, row);
        bool was = row[relation->arity], is = table_has(relation->facts, row);
        if (was && !is) row_note(&relation->lost, relation, row);
        if (is && !was) row_note(&relation->gained, relation, row);
    }
}

// --- what is lost

// The highest row of the stratum in the solution's path; 0: none.
static uint32_t path_height(const Run *run) {
    uint32_t highest = 0;
    for (uint32_t i = 0; i < run->plan->count; i++) {
        const Step *step = &run->plan->steps[i];
        if (step->goal->kind != GOAL_ATOM || !step->heights) continue;
        uint32_t height = step->heights[run->path[step->position]];
        highest = height > highest ? height : highest;
    }
    return highest;
}

static Status head_may_fall(Run *run) {
    Upkeep *upkeep = run->context;
    Datum values[ARITY_MAX];
    run_head(run, values);
    upkeep->steps++;
    const Relation *relation = upkeep->rule->rule->relation;
    uint32_t row = table_find(relation->derived, values);
    if (row == ROW_NONE || relation->heights.items[row] <= upkeep->height) return STATUS_OK;
    Entry entry = {relation->heights.items[row], upkeep->rule->relation, row};
    queue_push(&upkeep->queue, entry);
    return STATUS_OK;
}

static const Direction falling = {from_lost, head_may_fall};

static Status proof_found(Run *run) {
    run->done = true;
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

static Status row_is_proved(Upkeep *upkeep, uint32_t number, const Datum *values, uint32_t height,
                            bool *out) {
    *out = row_is_in(upkeep->kept.items[number].relation->facts, values);
    if (height == 0 || *out) return STATUS_OK;
    for (size_t i = 0; i < upkeep->rules.count && !*out; i++) {
        RuleUpkeep *rule = &upkeep->rules.items[i];
        if (rule->relation != number) continue;
        if (rule->groups) {
            TRY(group_proves(upkeep, rule, values, out));
        } else {
            TRY(from_head(upkeep, rule, values, height, proof_found));
            *out = upkeep->run->done;
        }
    }
    return STATUS_OK;
}

static Status row_check(Upkeep *upkeep, Entry entry) {
    Relation *relation = upkeep->kept.items[entry.relation].relation;
    Datum values[ARITY_MAX];
    bool proved;
    if (table_is_dead(relation->derived, entry.row)) return STATUS_OK;
    table_read(relation->derived, entry.row, values);
    TRY(row_is_proved(upkeep, entry.relation, values, entry.height, &proved));
    if (proved) return STATUS_OK;
    table_remove(relation->derived, entry.row);
    row_note(&relation->lost, relation, values);
    upkeep->height = entry.height;
    return heads_follow(upkeep, falling, relation, GOAL_ATOM, values);
}

// Facts of the relations themselves, and proofs that rested on lower strata.
static Status losses_begin(Upkeep *upkeep) {
    Datum values[ARITY_MAX];
    for (uint32_t i = 0; i < upkeep->kept.count; i++) {
        const Relation *relation = upkeep->kept.items[i].relation;
        for (uint32_t j = 0; relation->touched && j < relation->touched->count; j++) {
            table_read(relation->touched, j, values);
            uint32_t row = table_find(relation->derived, values);
            if (row == ROW_NONE || !values[relation->arity]) continue;
            queue_push(&upkeep->queue, (Entry){relation->heights.items[row], i, row});
        }
    }
    upkeep->height = 0;
    for (size_t i = 0; i < upkeep->store->relations.count; i++) {
        const Relation *relation = upkeep->store->relations.items[i];
        if (relation->stratum >= upkeep->stratum) continue;
        TRY(rows_follow(upkeep, falling, relation, relation->lost, GOAL_ATOM));
        TRY(rows_follow(upkeep, falling, relation, relation->gained, GOAL_NOT));
    }
    return STATUS_OK;
}

static Status losses_follow(Upkeep *upkeep) {
    TRY(groups_find(upkeep));
    groups_fall(upkeep);
    TRY(losses_begin(upkeep));
    Entry last = {UINT32_MAX, 0, 0};
    while (upkeep->queue.count > 0) {
        Entry entry = queue_pop(&upkeep->queue);
        if (memcmp(&entry, &last, sizeof entry) != 0) TRY(row_check(upkeep, entry));
        last = entry;
    }
    return STATUS_OK;
}

// --- what is gained

static void row_offer(Upkeep *upkeep, uint32_t number, const Datum *values, uint32_t height) {
    Kept *kept = &upkeep->kept.items[number];
    uint32_t row = table_find(kept->relation->derived, values);
    if (row != ROW_NONE && kept->relation->heights.items[row] <= height) return;
    if (row != ROW_NONE && !upkeep->tightens) {
        row_note(&kept->relation->loose, kept->relation, values);
        return;
    }
    uint32_t offer = table_find(kept->offered, values);
    if (offer == ROW_NONE) {
        offer = table_append(kept->offered, values);
        VECTOR_PUSH(&kept->heights, height);
    } else if (kept->heights.items[offer] <= height) {
        return;
    }
    kept->heights.items[offer] = height;
    queue_push(&upkeep->queue, (Entry){height, number, offer});
}

static Status head_is_proved(Run *run) {
    Upkeep *upkeep = run->context;
    Datum values[ARITY_MAX];
    uint32_t height = path_height(run);
    upkeep->steps++;
    run_head(run, values);
    height = height > upkeep->height ? height : upkeep->height;
    row_offer(upkeep, upkeep->rule->relation, values, height + 1);
    return STATUS_OK;
}

static const Direction rising = {from_gained, head_is_proved};

static Status lower_proof_found(Run *run) {
    Upkeep *upkeep = run->context;
    uint32_t height = path_height(run);
    upkeep->steps++;
    if (height >= upkeep->best) return STATUS_OK;
    upkeep->best = run->below = height;
    run->done = height == 0;
    return STATUS_OK;
}

// What is lost may have other, higher proofs: that of a group is as low as any but a fact's.
static Status row_recover(Upkeep *upkeep, uint32_t number, const Datum *values) {
    upkeep->best = UINT32_MAX;
    for (size_t i = 0; i < upkeep->rules.count; i++) {
        RuleUpkeep *rule = &upkeep->rules.items[i];
        if (rule->relation != number) continue;
        if (!rule->groups) {
            TRY(from_head(upkeep, rule, values, upkeep->best, lower_proof_found));
            continue;
        }
        bool proved;
        TRY(group_proves(upkeep, rule, values, &proved));
        if (proved) upkeep->best = 0;
    }
    if (upkeep->best != UINT32_MAX) row_offer(upkeep, number, values, upkeep->best + 1);
    return STATUS_OK;
}

// Groups as they are now.
static Status groups_rise(Upkeep *upkeep) {
    Datum values[ARITY_MAX];
    for (size_t i = 0; i < upkeep->rules.count; i++) {
        RuleUpkeep *rule = &upkeep->rules.items[i];
        for (uint32_t group = 0; rule->groups && group < rule->groups->count; group++) {
            Table *row;
            table_read(rule->groups, group, values);
            TRY(group_row(upkeep, rule, values, &row));
            if (row->count > 0) table_read(row, 0, values);
            if (row->count > 0) row_offer(upkeep, rule->relation, values, 1);
            table_free(row);
        }
    }
    return STATUS_OK;
}

static Status gains_begin(Upkeep *upkeep) {
    Datum values[ARITY_MAX];
    TRY(groups_rise(upkeep));
    for (uint32_t i = 0; i < upkeep->kept.count; i++) {
        const Relation *relation = upkeep->kept.items[i].relation;
        for (uint32_t j = 0; relation->touched && j < relation->touched->count; j++) {
            table_read(relation->touched, j, values);
            if (row_is_in(relation->facts, values)) row_offer(upkeep, i, values, 0);
        }
        for (uint32_t j = 0; relation->lost && j < relation->lost->count; j++) {
            table_read(relation->lost, j, values);
            TRY(row_recover(upkeep, i, values));
        }
    }
    upkeep->height = 0;
    for (size_t i = 0; i < upkeep->store->relations.count; i++) {
        const Relation *relation = upkeep->store->relations.items[i];
        if (relation->stratum >= upkeep->stratum) continue;
        TRY(rows_follow(upkeep, rising, relation, relation->gained, GOAL_ATOM));
        TRY(rows_follow(upkeep, rising, relation, relation->lost, GOAL_NOT));
    }
    return STATUS_OK;
}

// The row is there from now on, at its height.
static void row_settle(Relation *relation, const Datum *values, uint32_t height) {
    uint32_t row = table_find(relation->derived, values);
    if (row != ROW_NONE) {
        relation->heights.items[row] = height;
        return;
    }
    table_append(relation->derived, values);
    VECTOR_PUSH(&relation->heights, height);
    if (row_is_in(relation->lost, values))
        table_remove(relation->lost, table_find(relation->lost, values));
    else
        row_note(&relation->gained, relation, values);
}

static Status offers_settle(Upkeep *upkeep) {
    while (upkeep->queue.count > 0) {
        Entry entry = queue_pop(&upkeep->queue);
        Kept *kept = &upkeep->kept.items[entry.relation];
        if (kept->heights.items[entry.row] != entry.height) continue; // a lower one came later
        Datum values[ARITY_MAX];
        table_read(kept->offered, entry.row, values);
        row_settle(kept->relation, values, entry.height);
        upkeep->height = entry.height;
        TRY(heads_follow(upkeep, rising, kept->relation, GOAL_ATOM, values));
    }
    return STATUS_OK;
}

static Status gains_follow(Upkeep *upkeep) {
    TRY(gains_begin(upkeep));
    return offers_settle(upkeep);
}

// --- the lowest heights

// What may be lower is offered its lowest proof.
static Status loose_follow(Upkeep *upkeep) {
    Datum values[ARITY_MAX];
    upkeep->tightens = true;
    for (uint32_t i = 0; i < upkeep->kept.count; i++) {
        const Relation *relation = upkeep->kept.items[i].relation;
        for (uint32_t j = 0; relation->loose && j < relation->loose->count; j++) {
            table_read(relation->loose, j, values);
            if (!table_has(relation->derived, values)) continue;
            if (row_is_in(relation->facts, values)) row_offer(upkeep, i, values, 0);
            TRY(row_recover(upkeep, i, values));
        }
    }
    return offers_settle(upkeep);
}

// --- one stratum

void rule_begin(Upkeep *upkeep, const Rule *rule, uint32_t relation) {
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

void stratum_end(Upkeep *upkeep) {
    for (size_t i = 0; i < upkeep->rules.count; i++) rule_end(&upkeep->rules.items[i]);
    for (size_t i = 0; i < upkeep->kept.count; i++) {
        table_free(upkeep->kept.items[i].offered);
        VECTOR_FREE(&upkeep->kept.items[i].heights);
    }
    VECTOR_FREE(&upkeep->rules);
    VECTOR_FREE(&upkeep->kept);
    VECTOR_FREE(&upkeep->queue);
}

// Relations that only take part need heights as well.
static void neighbours_measure(const Upkeep *upkeep) {
    for (size_t i = 0; i < upkeep->rules.count; i++) {
        const Rule *rule = upkeep->rules.items[i].rule;
        for (uint32_t j = 0; j < rule->goal_count; j++) {
            Relation *relation = rule->goals[j].relation;
            if (relation && is_of_stratum(upkeep, relation)) relation_measure(relation);
        }
    }
}

// Of one stratum, with best values left out.
static void stratum_begin(Upkeep *upkeep, Relation *const *relations, size_t count) {
    upkeep->stratum = relations[0]->stratum;
    for (size_t i = 0; i < count; i++) {
        Kept kept = {.relation = relations[i]};
        kept.offered = table_new(relations[i]->arity, columns_all(relations[i]->arity));
        VECTOR_PUSH(&upkeep->kept, kept);
        relation_measure(relations[i]);
        relations[i]->unordered = true;
        VECTOR_FREE(&relations[i]->rounds);
        for (size_t j = 0; j < relations[i]->rules.count; j++)
            rule_begin(upkeep, relations[i]->rules.items[j], (uint32_t)i);
    }
    neighbours_measure(upkeep);
}

static Status stratum_settle(Upkeep *upkeep, Relation *const *relations, size_t count) {
    stratum_begin(upkeep, relations, count);
    Status status = losses_follow(upkeep);
    if (status == STATUS_OK) status = gains_follow(upkeep);
    stratum_end(upkeep);
    return status;
}

// What could not be made lower within the limit is forgotten.
static Status stratum_tighten(Upkeep *upkeep, Relation *const *relations, size_t count) {
    stratum_begin(upkeep, relations, count);
    Status status = loose_follow(upkeep);
    stratum_end(upkeep);
    for (size_t i = 0; i < count; i++) {
        if (status != STATUS_OK && relations[i]->loose) relation_changed(relations[i]);
        table_free(relations[i]->loose);
        relations[i]->loose = NULL;
    }
    if (status == STATUS_OK || status == STATUS_INTERRUPT) return status;
    error_clear();
    return STATUS_OK;
}

// --- all of them

static bool is_best(const Relation *relation) {
    return relation->key != columns_all(relation->arity);
}

static void reach_readers(Relation *relation, RelationList *reached) {
    for (size_t i = 0; i < relation->readers.count; i++) {
        Relation *reader = relation->readers.items[i];
        if (reader->wanted || !reader->derived) continue;
        reader->wanted = true;
        VECTOR_PUSH(reached, reader);
    }
}

static int compare_strata(const void *a, const void *b) {
    const Relation *x = *(Relation *const *)a, *y = *(Relation *const *)b;
    if (x->stratum != y->stratum) return x->stratum < y->stratum ? -1 : 1;
    if (is_best(x) != is_best(y)) return is_best(x) ? 1 : -1; // they may read the others
    if (is_best(x) && x->component != y->component) return x->component < y->component ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

// The complete relations that depend on what was touched, in the order of their strata. Opaque ones
// are forgotten, and with them what depends on them.
static void reached_find(Store *store, RelationList *reached) {
    for (size_t i = 0; i < store->relations.count; i++) {
        Relation *relation = store->relations.items[i];
        if (!relation->touched) continue;
        if (relation->derived && !relation->wanted) {
            relation->wanted = true;
            VECTOR_PUSH(reached, relation);
        }
        reach_readers(relation, reached);
    }
    for (size_t i = 0; i < reached->count; i++) reach_readers(reached->items[i], reached);
    for (size_t i = 0; i < reached->count; i++) {
        reached->items[i]->wanted = false;
        if (reached->items[i]->derived && is_best(reached->items[i]) &&
            !best_can_follow(store, reached->items[i]))
            relation_changed(reached->items[i]);
    }
    size_t kept = 0;
    for (size_t i = 0; i < reached->count; i++)
        if (reached->items[i]->derived) reached->items[kept++] = reached->items[i];
    reached->count = kept;
    if (kept) qsort(reached->items, kept, sizeof *reached->items, compare_strata);
}

static bool is_settled_with(const Relation *a, const Relation *b) {
    return a->stratum == b->stratum && is_best(a) == is_best(b) &&
           (!is_best(a) || a->component == b->component);
}

static void upkeep_begin(Upkeep *upkeep, Store *store, const RelationList *reached) {
    // Rows gone through: to make relations anew takes as long, with as many of theirs for each.
    enum { STEPS_MIN = 10000, STEPS_EACH = 4 };
    *upkeep = (Upkeep){.store = store, .most = STEPS_MIN};
    upkeep->run = memory_allocate_zeroed(1, sizeof *upkeep->run);
    upkeep->run->store = store;
    upkeep->run->context = upkeep;
    for (size_t i = 0; i < reached->count; i++)
        upkeep->most += reached->items[i]->effort / STEPS_EACH;
}

static void upkeep_end(Upkeep *upkeep) {
    free(upkeep->run);
    VECTOR_FREE(&upkeep->heads);
}

static Status reached_settle(Store *store, const RelationList *reached) {
    Upkeep upkeep;
    upkeep_begin(&upkeep, store, reached);
    Status status = STATUS_OK;
    for (size_t i = 0, next; i < reached->count && status == STATUS_OK; i = next) {
        Relation *const *first = &reached->items[i];
        for (next = i + 1; next < reached->count; next++)
            if (!is_settled_with(reached->items[next], *first)) break;
        status = is_best(*first) ? best_settle(&upkeep, first, next - i)
                                 : stratum_settle(&upkeep, first, next - i);
    }
    upkeep_end(&upkeep);
    return status;
}

// `failed`: what depends on the changes is forgotten.
static void changes_end(Store *store, bool failed) {
    enum { DEAD_MIN = 32 };
    for (size_t i = 0; i < store->relations.count; i++) {
        Relation *relation = store->relations.items[i];
        if (failed && relation->touched) relation_changed(relation);
        table_free(relation->touched);
        table_free(relation->lost);
        table_free(relation->gained);
        relation->touched = relation->lost = relation->gained = NULL;
        bool sparse = relation->unordered && relation->derived->dead > DEAD_MIN &&
                      relation->derived->dead * 2 > relation->derived->count;
        if (sparse) relation_compact(relation);
    }
    store->unsettled = false;
}

Status store_settle(Store *store) {
    if (!store->unsettled) return STATUS_OK;
    RelationList reached = {0};
    reached_find(store, &reached);
    for (size_t i = 0; i < store->relations.count; i++) {
        Relation *relation = store->relations.items[i];
        if (relation->touched && !relation_is_derived(relation)) facts_compare(relation);
    }
    Status status = reached_settle(store, &reached);
    VECTOR_FREE(&reached);
    changes_end(store, status != STATUS_OK);
    if (status == STATUS_OK || status == STATUS_INTERRUPT) return status;
    error_clear(); // evaluation from the beginning meets it again, if it is one
    return STATUS_OK;
}

// The relations of the stratum that are not in order.
static void unordered_find(const Store *store, uint32_t stratum, RelationList *found) {
    found->count = 0;
    for (size_t i = 0; i < store->relations.count; i++) {
        Relation *relation = store->relations.items[i];
        if (relation->stratum != stratum || !relation->unordered || is_best(relation)) continue;
        VECTOR_PUSH(found, relation);
    }
}

Status store_tighten(Store *store) {
    Status status = STATUS_OK;
    RelationList together = {0};
    for (size_t i = 0; i < store->relations.count && status == STATUS_OK; i++) {
        if (!store->relations.items[i]->loose) continue;
        unordered_find(store, store->relations.items[i]->stratum, &together);
        ASSERT(together.count > 0);
        Upkeep upkeep;
        upkeep_begin(&upkeep, store, &together);
        status = stratum_tighten(&upkeep, together.items, together.count);
        upkeep_end(&upkeep);
    }
    VECTOR_FREE(&together);
    return status;
}
