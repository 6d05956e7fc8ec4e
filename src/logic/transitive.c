// Nested loops over the rows of both goals would go through n ** 3 pairs of rows in a class of n
// members. Here a member is left as soon as it is known to equal its whole class. Rows come in the
// order of those loops.
#include "logic/transitive.h"

#include <stdlib.h>

#include "logic/room.h"

typedef VECTOR(uint32_t) Numbers;

typedef struct Member {
    Numbers mates;        // of its rows, in their order
    uint32_t settled;     // mates before the last round
    uint32_t other, size; // another of its class; of one that has itself: how many these are
    size_t found, shown;  // where its part of `found` begins, and how far it has been collected
    uint32_t passed;      // rows of it that have been passed
} Member;

typedef struct Found { // by the mate with this place
    uint32_t place, mate;
} Found;

struct Transitive {
    Store *store;
    const Relation *relation;
    Table *names;
    VECTOR(Member) members;
    Numbers rows;  // their members in the first column
    Numbers marks; // by member: 1 + the last whose mate it was seen to be
    VECTOR(Found) found;
};

Transitive *transitive_new(Store *store, const Relation *relation) {
    ASSERT(relation->equivalence);
    Transitive *transitive = memory_allocate_zeroed(1, sizeof *transitive);
    transitive->store = store;
    transitive->relation = relation;
    transitive->names = table_new(1, 1);
    return transitive;
}

void transitive_free(Transitive *transitive) {
    if (!transitive) return;
    for (size_t i = 0; i < transitive->members.count; i++)
        VECTOR_FREE(&transitive->members.items[i].mates);
    table_free(transitive->names);
    VECTOR_FREE(&transitive->members);
    VECTOR_FREE(&transitive->rows);
    VECTOR_FREE(&transitive->marks);
    VECTOR_FREE(&transitive->found);
    free(transitive);
}

static uint32_t member_of(Transitive *transitive, Datum name) {
    uint32_t number = table_number(transitive->names, name);
    if (number < transitive->members.count) return number;
    ASSERT(number == transitive->members.count);
    Member member = {.other = number, .size = 1};
    VECTOR_PUSH(&transitive->members, member);
    VECTOR_PUSH(&transitive->marks, 0);
    return number;
}

static Member *class_of(Transitive *transitive, uint32_t number) {
    Member *members = transitive->members.items;
    ASSERT(number < transitive->members.count);
    for (; members[number].other != number; number = members[number].other)
        members[number].other = members[members[number].other].other;
    return &members[number];
}

static void rows_take(Transitive *transitive, const Table *table, uint32_t high) {
    ASSERT(high <= table->count && table->dead == 0);
    for (size_t i = 0; i < transitive->members.count; i++)
        transitive->members.items[i].settled = (uint32_t)transitive->members.items[i].mates.count;
    for (uint32_t row = (uint32_t)transitive->rows.count; row < high; row++) {
        uint32_t first = member_of(transitive, table_at(table, row, 0));
        uint32_t second = member_of(transitive, table_at(table, row, 1));
        VECTOR_PUSH(&transitive->rows, first);
        VECTOR_PUSH(&transitive->members.items[first].mates, second);
        Member *a = class_of(transitive, first), *b = class_of(transitive, second);
        if (a == b) continue;
        b->size += a->size;
        a->other = b->other;
    }
}

// The further mates that one mate of a member has, until there are `missing` of them.
static void mates_find(Transitive *transitive, uint32_t number, uint32_t place, uint32_t *missing,
                       uint64_t *steps) {
    const Member *member = &transitive->members.items[number];
    const Member *mate = &transitive->members.items[member->mates.items[place]];
    uint32_t *marks = transitive->marks.items;
    size_t i = place < member->settled ? mate->settled : 0;
    for (; i<mate->mates.count && * missing> 0; i++) {
        uint32_t next = mate->mates.items[i];
        ++*steps;
        if (marks[next] == number + 1) continue;
        marks[next] = number + 1;
        --*missing;
        VECTOR_PUSH(&transitive->found, ((Found){place, next}));
    }
}

static Status member_run(Transitive *transitive, uint32_t number, uint64_t *steps) {
    Member *member = &transitive->members.items[number];
    uint32_t count = (uint32_t)member->mates.count;
    uint32_t missing = class_of(transitive, number)->size - count;
    member->found = member->shown = transitive->found.count;
    member->passed = 0;
    for (uint32_t i = 0; i < count; i++)
        transitive->marks.items[member->mates.items[i]] = number + 1;
    for (uint32_t i = 0; i < count && missing > 0; i++) {
        uint64_t before = *steps / ROOM_ROWS;
        mates_find(transitive, number, i, &missing, steps);
        if (*steps / ROOM_ROWS != before) TRY(room_ask(transitive->store));
    }
    return STATUS_OK;
}

// By the row of the first goal, as each member has found them by its own rows.
static void found_collect(Transitive *transitive, Collector *collector) {
    const Datum *names = transitive->names->columns[0];
    collector_begin_rule(collector, false, 0);
    for (size_t row = 0; row < transitive->rows.count; row++) {
        uint32_t number = transitive->rows.items[row];
        Member *member = &transitive->members.items[number];
        size_t end = number + 1 < transitive->members.count
                         ? transitive->members.items[number + 1].found
                         : transitive->found.count;
        for (; member->shown < end; member->shown++) {
            const Found *found = &transitive->found.items[member->shown];
            if (found->place != member->passed) break;
            Datum values[] = {names[number], names[found->mate]};
            collector_add(collector, transitive->store, values, NULL);
        }
        member->passed++;
    }
    collector_end_rule(collector);
}

Status transitive_round(Transitive *transitive, uint32_t high, Collector *collector,
                        uint64_t *steps) {
    rows_take(transitive, transitive->relation->derived, high);
    transitive->found.count = 0;
    *steps = 0;
    for (uint32_t i = 0; i < transitive->members.count; i++) TRY(member_run(transitive, i, steps));
    found_collect(transitive, collector);
    return STATUS_OK;
}
