// One component at a time, from below: settle.c follows what its rows rest on, best.c best values.
#include "logic/upkeep/upkeep.h"

#include <stdlib.h>

#include "logic/upkeep/best.h"
#include "logic/upkeep/follow.h"
#include "logic/upkeep/settle.h"

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
    if (x->component != y->component) return x->component < y->component ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

// The complete relations that depend on what was touched, in the order of their strata. Those that
// cannot be followed are forgotten, and with them what depends on them.
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
    return a->stratum == b->stratum && a->component == b->component && is_best(a) == is_best(b);
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
                                 : component_settle(&upkeep, first, next - i);
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
