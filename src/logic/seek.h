// When evaluation may stop before it is complete: no further row matters to what is asked.
#ifndef LOGIC_SEEK_H
#define LOGIC_SEEK_H

#include "logic/store.h"

// What one goal wants of a relation.
typedef struct Question {
    Relation *relation;
    const Datum *values; // of its columns; CONSTANT_NONE where they are open
    const Rule *rule; // a query or rule of which it is this goal; NULL: there are only the values
    uint32_t goal;
    const Datum *initial; // of the rule's variables
    bool ways; // what the rows rest on is wanted, too: a row that is there may come again
} Question;

bool question_is_ground(const Question *question);
// Whether there may be a point from which no further row matters, though the rows have no end.
bool question_has_end(const Store *store, const RelationList *relations, const Question *question);

typedef struct Seek Seek;
// Of relations that are evaluated together; lower strata are complete.
Seek *seek_new(const Store *store, const RelationList *relations, const Question *question);
void seek_free(Seek *seek); // NULL is allowed
// After a round: whether the one row that is asked for has come, or nothing that may still come
// matters.
bool seek_ends(Seek *seek);
Edge seek_edge(const Seek *seek); // after it has ended
// Whether the one row that is asked for is among those begun, or cannot come any more.
bool question_is_answered(const Store *store, const Question *question);

#endif
