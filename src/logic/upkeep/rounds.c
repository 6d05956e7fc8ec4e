// Heights become the rounds of naive evaluation. What may be of another round is that which edits
// have looked at; what rests on it in turn is found here. First those that have no proof from
// earlier rounds lose theirs, the earliest first; then each gets its own, the earliest first again,
// as in Dijkstra's algorithm.
#include <stdlib.h>

#include "logic/upkeep/prove.h"

typedef VECTOR(Entry) EntryList;

static const Height HEIGHT_LAST = HEIGHT_NONE - 1; // that a row can have

// --- rows that lose theirs

static Status round_forget(Upkeep *upkeep, Entry entry, const Datum *values, EntryList *rows) {
    Relation *relation = upkeep->kept.items[entry.relation].relation;
    VECTOR_PUSH(rows, entry);
    upkeep->at = entry;
    upkeep->high = HEIGHT_LAST;
    Status status = heads_follow(upkeep, heads_falling, relation, GOAL_ATOM, values);
    upkeep->high = HEIGHT_NONE;
    relation->heights.items[entry.row] = HEIGHT_NONE; // it takes part with its own until here
    return status;
}

static Status round_look(Upkeep *upkeep, Entry entry, EntryList *rows) {
    const Relation *relation = upkeep->kept.items[entry.relation].relation;
    Datum values[ARITY_MAX];
    if (relation->heights.items[entry.row] != entry.height) return STATUS_OK;
    upkeep->at = entry;
    table_read(relation->derived, entry.row, values);
    TRY(proofs_find(upkeep, values, entry.height));
    if (upkeep->lowest != HEIGHT_NONE || row_is_in(relation->facts, values)) return STATUS_OK;
    return round_forget(upkeep, entry, values, rows);
}

// Adds to `rows` those that were noted, and those that have lost their rounds.
static Status rounds_fall(Upkeep *upkeep, EntryList *rows) {
    Datum values[ARITY_MAX];
    for (uint32_t i = 0; i < upkeep->kept.count; i++) {
        const Relation *relation = upkeep->kept.items[i].relation;
        for (uint32_t j = 0; relation->loose && j < relation->loose->count; j++) {
            table_read(relation->loose, j, values);
            uint32_t row = table_find(relation->derived, values);
            if (row == ROW_NONE || relation->heights.items[row] == HEIGHT_NONE) continue;
            Entry entry = {relation->heights.items[row], i, row};
            if (height_is_round(entry.height)) {
                queue_push(&upkeep->queue, entry);
                VECTOR_PUSH(rows, entry);
            } else {
                entry.height = 0; // of whatever round the heads are
                TRY(round_forget(upkeep, entry, values, rows));
            }
        }
    }
    while (upkeep->queue.count > 0) TRY(round_look(upkeep, queue_pop(&upkeep->queue), rows));
    return STATUS_OK;
}

// --- rows that get theirs

static void round_offer(Upkeep *upkeep, uint32_t number, uint32_t row, Height height) {
    Height *now = &upkeep->kept.items[number].relation->heights.items[row];
    if (*now <= height) return;
    *now = height;
    queue_push(&upkeep->queue, (Entry){height, number, row});
}

static Status head_comes(Run *run) {
    Upkeep *upkeep = run->context;
    const Relation *relation = upkeep->rule->rule->relation;
    Datum values[ARITY_MAX];
    run_head(run, values);
    upkeep->steps++;
    uint32_t row = table_find(relation->derived, values);
    ASSERT(row != ROW_NONE); // what has a proof is there
    Height height = path_height(run);
    height = height > upkeep->at.height ? height : upkeep->at.height;
    round_offer(upkeep, upkeep->rule->relation, row, height + height_of_round(1));
    return STATUS_OK;
}

static const Direction rising = {from_gained, head_comes};

static Status rounds_rise(Upkeep *upkeep, const EntryList *rows) {
    Datum values[ARITY_MAX];
    for (size_t i = 0; i < rows->count; i++) {
        const Relation *relation = upkeep->kept.items[rows->items[i].relation].relation;
        upkeep->at = rows->items[i];
        upkeep->at.height = 0; // the lowest proof is looked for
        table_read(relation->derived, upkeep->at.row, values);
        TRY(proofs_find(upkeep, values, HEIGHT_NONE));
        Height height =
            upkeep->lowest == HEIGHT_NONE ? HEIGHT_NONE : upkeep->lowest + height_of_round(1);
        if (row_is_in(relation->facts, values)) height = 0;
        round_offer(upkeep, upkeep->at.relation, upkeep->at.row, height);
    }
    while (upkeep->queue.count > 0) {
        upkeep->at = queue_pop(&upkeep->queue);
        Relation *relation = upkeep->kept.items[upkeep->at.relation].relation;
        if (relation->heights.items[upkeep->at.row] != upkeep->at.height) continue;
        table_read(relation->derived, upkeep->at.row, values);
        TRY(heads_follow(upkeep, rising, relation, GOAL_ATOM, values));
    }
    return STATUS_OK;
}

// --- the strata

static Status rounds_find(Upkeep *upkeep) {
    SCOPED_MEMORY EntryList rows = {0};
    TRY(rounds_fall(upkeep, &rows));
    return rounds_rise(upkeep, &rows);
}

// What could not be found within the limit is forgotten.
static Status stratum_tighten(Upkeep *upkeep, const RelationList *relations) {
    upkeep->together = true;
    stratum_begin(upkeep, relations->items, relations->count);
    Status status = rounds_find(upkeep);
    stratum_end(upkeep);
    for (size_t i = 0; i < relations->count; i++) {
        Relation *relation = relations->items[i];
        if (status != STATUS_OK && relation->loose) relation_changed(relation);
        table_free(relation->loose);
        relation->loose = NULL;
    }
    if (status == STATUS_OK || status == STATUS_INTERRUPT) return status;
    error_clear();
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
    SCOPED_MEMORY RelationList together = {0};
    for (size_t i = 0; i < store->relations.count && status == STATUS_OK; i++) {
        if (!store->relations.items[i]->loose) continue;
        unordered_find(store, store->relations.items[i]->stratum, &together);
        ASSERT(together.count > 0);
        Upkeep upkeep;
        upkeep_begin(&upkeep, store, &together);
        status = stratum_tighten(&upkeep, &together);
        upkeep_end(&upkeep);
    }
    return status;
}
