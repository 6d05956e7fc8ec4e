// What upkeep needs to know of a relation: which of its facts have changed, and how high its rows
// are.
#include "logic/upkeep/upkeep.h"

// --- heights

void relation_measure(Relation *relation) {
    uint32_t round = 0;
    if (relation->heights.count > 0 || relation->unordered) return;
    for (uint32_t row = 0; row < relation->derived->count; row++) {
        while (relation->rounds.items[round] <= row) round++;
        VECTOR_PUSH(&relation->heights, height_of_round(round));
    }
}

void relation_compact(Relation *relation) {
    Table *table = relation->derived;
    uint32_t kept = 0;
    for (uint32_t row = 0; row < relation->heights.count; row++)
        if (!table_is_dead(table, row))
            relation->heights.items[kept++] = relation->heights.items[row];
    relation->heights.count = kept;
    table_compact(table);
}

// --- facts

static bool is_watched(const Relation *relation) {
    if (relation->derived) return true;
    for (size_t i = 0; i < relation->readers.count; i++)
        if (relation->readers.items[i]->derived) return true;
    return false;
}

void relation_touch(Store *store, Relation *relation, const Datum *values, bool was) {
    enum { TOUCHED_MIN = 64, SHARE = 8 };
    if (!is_watched(relation)) return;
    uint32_t arity = relation->arity;
    size_t touched = relation->touched ? relation->touched->count : 0;
    if (arity == ARITY_MAX || touched > TOUCHED_MIN + relation->facts->count / SHARE) {
        relation_changed(relation);
        return;
    }
    if (!relation->touched) relation->touched = table_new(arity + 1, columns_all(arity));
    Datum row[ARITY_MAX];
    memcpy(row, values, arity * sizeof *row);
    row[arity] = was;
    if (!table_has(relation->touched, row)) table_append(relation->touched, row);
    store->unsettled = true;
}
