// Members, each with another of its class; the one that has itself stands for the class. They are
// found anew when the store has changed.
#include "logic/classes.h"

#include <stdlib.h>

#include "logic/evaluate.h"

enum { LAWS = 3 }; // the rules of relation_make_equivalence

struct Classes {
    Table *members;
    VECTOR(uint32_t) other;
    uint64_t version; // of the store
};

void classes_free(Classes *classes) {
    if (!classes) return;
    table_free(classes->members);
    VECTOR_FREE(&classes->other);
    free(classes);
}

bool classes_fit(const Relation *relation) {
    return relation->equivalence && relation->rules.count == LAWS;
}

static uint32_t member_of(Classes *classes, Datum value) {
    ASSERT(classes->other.count == classes->members->count);
    uint32_t member = table_find(classes->members, &value);
    if (member != ROW_NONE) return member;
    VECTOR_PUSH(&classes->other, classes->members->count);
    return table_append(classes->members, &value);
}

// Ways become half as long while they are followed.
static uint32_t class_of(Classes *classes, uint32_t member) {
    ASSERT(member < classes->other.count);
    uint32_t *other = classes->other.items;
    for (; other[member] != member; member = other[member]) other[member] = other[other[member]];
    return member;
}

static Status classes_find(Store *store, Relation *relation, Classes **out) {
    Relation *type = equivalence_type(store, relation);
    if (type) TRY(store_gather(store, type));
    if (!relation->classes || relation->classes->version != store->version) {
        classes_free(relation->classes);
        Classes *classes = relation->classes = memory_allocate_zeroed(1, sizeof *classes);
        classes->members = table_new(1, 1);
        classes->version = store->version;
        const Table *names = type ? relation_table(type) : NULL, *facts = relation->facts;
        for (uint32_t row = 0; names && row < names->count; row++)
            if (!table_is_dead(names, row)) member_of(classes, table_at(names, row, 0));
        for (uint32_t row = 0; row < facts->count; row++) {
            if (table_is_dead(facts, row)) continue;
            uint32_t a = class_of(classes, member_of(classes, table_at(facts, row, 0)));
            uint32_t b = class_of(classes, member_of(classes, table_at(facts, row, 1)));
            classes->other.items[a] = b;
        }
    }
    *out = relation->classes;
    return STATUS_OK;
}

Status classes_count(Store *store, Relation *relation, uint64_t *out) {
    Classes *classes;
    TRY(classes_find(store, relation, &classes));
    uint32_t count = classes->members->count;
    SCOPED_MEMORY uint64_t *sizes = memory_allocate_zeroed(count + 1, sizeof *sizes);
    *out = 0;
    for (uint32_t i = 0; i < count; i++) sizes[class_of(classes, i)]++;
    for (uint32_t i = 0; i < count; i++) *out += sizes[i] * sizes[i];
    return STATUS_OK;
}

Status classes_join(Store *store, Relation *relation, const Datum *values, bool *out) {
    ASSERT(relation->arity == 2);
    Classes *classes;
    TRY(classes_find(store, relation, &classes));
    uint32_t a = table_find(classes->members, &values[0]);
    uint32_t b = table_find(classes->members, &values[1]);
    *out = a != ROW_NONE && b != ROW_NONE && class_of(classes, a) == class_of(classes, b);
    return STATUS_OK;
}

Status classes_are_small(Store *store, Relation *relation, bool *out) {
    enum { ROWS_MAX = 4000000 };
    uint64_t count = 0;
    if (classes_fit(relation)) TRY(classes_count(store, relation, &count));
    *out = count <= ROWS_MAX;
    return STATUS_OK;
}
