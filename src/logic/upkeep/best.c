// Relations that keep the least or greatest value of a key. First every value goes whose proofs may
// have rested on something that has gone, one after the other; then keys without a value take the
// best that is left, and what is better than before is followed to what it makes better in turn.
#include <stdlib.h>

#include "logic/upkeep/best.h"
#include "logic/upkeep/follow.h"
#include "logic/upkeep/stratum.h"

typedef struct Best {
    Upkeep *upkeep;
    Relation *relation;
    uint32_t column; // of the value
} Best;

static uint32_t merged_column(const Relation *relation) {
    return (uint32_t)__builtin_ctz(columns_all(relation->arity) & ~relation->key);
}

// One column with `min` or `max`, no aggregates, and no relation that needs it and that it needs.
bool best_can_follow(const Store *store, const Relation *relation) {
    Columns merged = columns_all(relation->arity) & ~relation->key;
    if (__builtin_popcount(merged) != 1) return false;
    Merge merge = relation->columns[merged_column(relation)].merge;
    bool can = merge == MERGE_MIN || merge == MERGE_MAX;
    for (size_t i = 0; i < relation->rules.count; i++)
        can &= relation->rules.items[i]->aggregates == NULL;
    for (size_t i = 0; i < store->relations.count && can; i++) {
        const Relation *other = store->relations.items[i];
        can = other == relation || other->stratum != relation->stratum ||
              other->component != relation->component;
    }
    return can;
}

static Status head_noted(Run *run) {
    Upkeep *upkeep = run->context;
    Datum values[ARITY_MAX];
    run_head(run, values);
    upkeep->steps++;
    for (uint32_t i = 0; i < upkeep->rule->rule->arity; i++) VECTOR_PUSH(&upkeep->heads, values[i]);
    return STATUS_OK;
}

static const Direction falling = {from_lost, head_noted}, rising = {from_gained, head_noted};

static void head_note(const Best *best, const Datum *values) {
    for (uint32_t i = 0; i < best->relation->arity; i++)
        VECTOR_PUSH(&best->upkeep->heads, values[i]);
}

// Facts of the relation itself that have gone, or come.
static void note_facts(const Best *best, bool come) {
    const Relation *relation = best->relation;
    Datum values[ARITY_MAX];
    for (uint32_t i = 0; relation->touched && i < relation->touched->count; i++) {
        table_read(relation->touched, i, values);
        if (row_is_in(relation->facts, values) == come) head_note(best, values);
    }
}

// What other relations have lost or gained; `not` turns one into the other.
static Status note_changes(const Best *best, Direction direction, bool gains) {
    const RelationList *relations = &best->upkeep->store->relations;
    for (size_t i = 0; i < relations->count; i++) {
        const Relation *relation = relations->items[i];
        if (relation == best->relation || relation->stratum > best->relation->stratum) continue;
        const Table *more = gains ? relation->gained : relation->lost;
        const Table *less = gains ? relation->lost : relation->gained;
        TRY(rows_follow(best->upkeep, direction, relation, more, GOAL_ATOM));
        TRY(rows_follow(best->upkeep, direction, relation, less, GOAL_NOT));
    }
    return STATUS_OK;
}

// --- what is lost

static Status drop(const Best *best, const Datum *values) {
    Relation *relation = best->relation;
    uint32_t row = table_find(relation->derived, values);
    if (row == ROW_NONE || table_at(relation->derived, row, best->column) != values[best->column])
        return STATUS_OK;
    table_remove(relation->derived, row);
    row_note(&relation->lost, relation, values);
    return heads_follow(best->upkeep, falling, relation, GOAL_ATOM, values);
}

// Goes through the heads, of which more come.
static Status heads_take(const Best *best, Status (*take)(const Best *best, const Datum *values)) {
    Datum values[ARITY_MAX];
    DatumList *heads = &best->upkeep->heads;
    uint32_t arity = best->relation->arity;
    for (size_t at = 0; at < heads->count; at += arity) {
        memcpy(values, heads->items + at, arity * sizeof *values);
        TRY(take(best, values));
    }
    heads->count = 0;
    return STATUS_OK;
}

// --- what is gained

static bool is_better(const Best *best, Datum value, Datum than) {
    int order;
    if (!constant_compare(&best->upkeep->store->constants, value, than, &order)) return false;
    bool least = best->relation->columns[best->column].merge == MERGE_MIN;
    return least ? order < 0 : order > 0;
}

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

static Status offer(const Best *best, const Datum *values) {
    Relation *relation = best->relation;
    Datum before[ARITY_MAX];
    uint32_t row = table_find(relation->derived, values);
    if (row != ROW_NONE) {
        table_read(relation->derived, row, before);
        if (!is_better(best, values[best->column], before[best->column])) return STATUS_OK;
        table_remove(relation->derived, row);
        note_loss(relation, before);
    }
    table_append(relation->derived, values);
    note_gain(relation, values);
    return heads_follow(best->upkeep, rising, relation, GOAL_ATOM, values);
}

// What facts and rules still give a key.
static Status recover(const Best *best, Datum *values) {
    const Relation *relation = best->relation;
    Table *facts = relation->facts;
    const Index *index = table_index(facts, relation->key, facts->count);
    Datum fact[ARITY_MAX];
    for (uint32_t row = index_first(facts, index, values); row != ROW_NONE;
         row = index_next(index, row)) {
        if (table_is_dead(facts, row)) continue;
        table_read(facts, row, fact);
        head_note(best, fact);
    }
    values[best->column] = CONSTANT_NONE;
    for (size_t i = 0; i < best->upkeep->rules.count; i++)
        TRY(from_head(best->upkeep, &best->upkeep->rules.items[i], values, UINT32_MAX, head_noted));
    return STATUS_OK;
}

static Status recover_all(const Best *best) {
    const Table *lost = best->relation->lost;
    Datum values[ARITY_MAX];
    for (uint32_t row = 0; lost && row < lost->count; row++) {
        if (table_is_dead(lost, row)) continue;
        table_read(lost, row, values);
        TRY(recover(best, values));
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

Status best_settle(Upkeep *upkeep, Relation *relation) {
    Best best = {upkeep, relation, merged_column(relation)};
    upkeep->stratum = relation->stratum;
    upkeep->heads.count = 0;
    relation->unordered = true;
    VECTOR_FREE(&relation->rounds);
    VECTOR_FREE(&relation->heights); // rows with best values have none
    for (size_t i = 0; i < relation->rules.count; i++)
        rule_begin(upkeep, relation->rules.items[i], 0);
    Status status = follow(&best);
    stratum_end(upkeep);
    return status;
}
