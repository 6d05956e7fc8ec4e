// Relations that keep one value of a key: the least, the greatest, the set of all. First every row
// goes whose proofs may have rested on something that has gone, one after the other; then keys
// without a row take what is left, and what is better than before, or a larger set, is followed to
// what it makes better in turn.
#include <stdlib.h>

#include "logic/upkeep/best.h"
#include "logic/upkeep/follow.h"

typedef struct Best {
    Upkeep *upkeep;
    Relation *const *relations; // of one component
    uint32_t count;
} Best;

static bool is_together(const Relation *a, const Relation *b) {
    return a->stratum == b->stratum && a->component == b->component;
}

// Those that need each other all have best values, and none has aggregates.
bool best_can_follow(const Store *store, const Relation *relation) {
    bool can = true;
    for (size_t i = 0; i < store->relations.count && can; i++) {
        const Relation *other = store->relations.items[i];
        if (!is_together(other, relation)) continue;
        can = other->key != columns_all(other->arity);
        for (size_t j = 0; j < other->rules.count; j++)
            can &= other->rules.items[j]->aggregates == NULL;
    }
    return can;
}

// A row, behind the number of its relation.
static void head_note(Upkeep *upkeep, uint32_t number, const Datum *values) {
    uint32_t arity = upkeep->kept.items[number].relation->arity;
    VECTOR_PUSH(&upkeep->heads, number);
    for (uint32_t i = 0; i < arity; i++) VECTOR_PUSH(&upkeep->heads, values[i]);
}

static Status head_noted(Run *run) {
    Upkeep *upkeep = run->context;
    Datum values[ARITY_MAX];
    run_head(run, values);
    upkeep->steps++;
    head_note(upkeep, upkeep->rule->relation, values);
    return STATUS_OK;
}

static const Direction falling = {from_lost, head_noted}, rising = {from_gained, head_noted};

// Facts of the relations themselves that have gone, or come.
static void note_facts(const Best *best, bool come) {
    Datum values[ARITY_MAX];
    for (uint32_t number = 0; number < best->count; number++) {
        const Relation *relation = best->relations[number];
        for (uint32_t i = 0; relation->touched && i < relation->touched->count; i++) {
            table_read(relation->touched, i, values);
            if (row_is_in(relation->facts, values) == come) head_note(best->upkeep, number, values);
        }
    }
}

// What other relations have lost or gained; `not` turns one into the other.
static Status note_changes(const Best *best, Direction direction, bool gains) {
    const RelationList *relations = &best->upkeep->store->relations;
    for (size_t i = 0; i < relations->count; i++) {
        const Relation *relation = relations->items[i];
        const Relation *first = best->relations[0];
        if (is_together(relation, first) || relation->stratum > first->stratum) continue;
        const Table *more = gains ? relation->gained : relation->lost;
        const Table *less = gains ? relation->lost : relation->gained;
        TRY(rows_follow(best->upkeep, direction, relation, more, GOAL_ATOM));
        TRY(rows_follow(best->upkeep, direction, relation, less, GOAL_NOT));
    }
    return STATUS_OK;
}

// --- what is lost

// Whether the row may rest on what gave these values: one of them is its best, or in its set.
static bool may_rest_on(const Relation *relation, const Datum *row, const Datum *values) {
    bool may = false;
    for (uint32_t i = 0; i < relation->arity; i++)
        may |= relation->columns[i].merge == MERGE_UNION ||
               (relation->columns[i].merge != MERGE_NONE && row[i] == values[i]);
    return may;
}

static Status drop(const Best *best, uint32_t number, const Datum *values) {
    Relation *relation = best->relations[number];
    Datum before[ARITY_MAX];
    uint32_t row = table_find(relation->derived, values);
    if (row == ROW_NONE) return STATUS_OK;
    table_read(relation->derived, row, before);
    if (!may_rest_on(relation, before, values)) return STATUS_OK;
    Status status = heads_follow(best->upkeep, falling, relation, GOAL_ATOM, before);
    table_remove(relation->derived, row);
    row_note(&relation->lost, relation, before);
    return status;
}

// Goes through the heads, of which more come.
static Status heads_take(const Best *best,
                         Status (*take)(const Best *best, uint32_t number, const Datum *values)) {
    Datum values[ARITY_MAX];
    DatumList *heads = &best->upkeep->heads;
    for (size_t at = 0; at < heads->count;) {
        uint32_t number = heads->items[at], arity = best->relations[number]->arity;
        memcpy(values, heads->items + at + 1, arity * sizeof *values);
        at += arity + 1;
        TRY(take(best, number, values));
    }
    heads->count = 0;
    return STATUS_OK;
}

// --- what is gained

static void note_gain(Relation *relation, const Datum *values) {
    if (row_is_in(relation->lost, values))
        table_remove(relation->lost, table_find(relation->lost, values));
    else
        row_note(&relation->gained, relation, values);
}

static void note_loss(Relation *relation, const Datum *values) {
    if (row_is_in(relation->gained, values))
        table_remove(relation->gained, table_find(relation->gained, values));
    else
        row_note(&relation->lost, relation, values);
}

static Status offer(const Best *best, uint32_t number, const Datum *values) {
    Relation *relation = best->relations[number];
    Store *store = best->upkeep->store;
    Datum before[ARITY_MAX], now[ARITY_MAX];
    uint32_t row = table_find(relation->derived, values);
    memcpy(now, values, relation->arity * sizeof *now);
    values_lift(store, relation->columns, relation->arity, now);
    if (row != ROW_NONE) {
        table_read(relation->derived, row, before);
        bool better = false;
        for (uint32_t i = 0; i < relation->arity; i++) {
            now[i] = merge_values(store, relation->columns[i].merge, before[i], now[i]);
            better |= now[i] != before[i];
        }
        if (!better) return STATUS_OK;
        table_remove(relation->derived, row);
        note_loss(relation, before);
    }
    table_append(relation->derived, now);
    note_gain(relation, now);
    return heads_follow(best->upkeep, rising, relation, GOAL_ATOM, now);
}

// What facts and rules still give a key.
static Status recover(const Best *best, uint32_t number, Datum *values) {
    const Relation *relation = best->relations[number];
    Table *facts = relation->facts;
    const Index *index = table_index(facts, relation->key, facts->count);
    Datum fact[ARITY_MAX];
    for (uint32_t row = index_first(facts, index, values); row != ROW_NONE;
         row = index_next(index, row)) {
        if (table_is_dead(facts, row)) continue;
        table_read(facts, row, fact);
        head_note(best->upkeep, number, fact);
    }
    for (uint32_t i = 0; i < relation->arity; i++)
        if (relation->columns[i].merge != MERGE_NONE) values[i] = CONSTANT_NONE;
    for (size_t i = 0; i < best->upkeep->rules.count; i++)
        if (best->upkeep->rules.items[i].relation == number)
            TRY(from_head(best->upkeep, &best->upkeep->rules.items[i], values, HEIGHT_NONE,
                          head_noted));
    return STATUS_OK;
}

static Status recover_all(const Best *best) {
    Datum values[ARITY_MAX];
    for (uint32_t number = 0; number < best->count; number++) {
        const Table *lost = best->relations[number]->lost;
        for (uint32_t row = 0; lost && row < lost->count; row++) {
            if (table_is_dead(lost, row)) continue;
            table_read(lost, row, values);
            TRY(recover(best, number, values));
        }
    }
    return STATUS_OK;
}

static Status follow(const Best *best) {
    note_facts(best, false);
    TRY(note_changes(best, falling, false));
    TRY(heads_take(best, drop));
    TRY(recover_all(best));
    note_facts(best, true);
    TRY(note_changes(best, rising, true));
    return heads_take(best, offer);
}

Status best_settle(Upkeep *upkeep, Relation *const *relations, size_t count) {
    Best best = {upkeep, relations, (uint32_t)count};
    stratum_begin(upkeep, relations, count);
    for (size_t i = 0; i < count; i++) {
        relations[i]->unordered = true;
        VECTOR_FREE(&relations[i]->rounds);
        VECTOR_FREE(&relations[i]->heights); // rows with best values have none
    }
    Status status = follow(&best);
    stratum_end(upkeep);
    return status;
}
