// What the files of upkeep share: a stratum that is brought up to date, and rules that are run from
// one row.
#ifndef LOGIC_FOLLOW_H
#define LOGIC_FOLLOW_H

#include "logic/collect.h"

typedef struct Entry { // of a queue
    uint32_t height, relation, row;
} Entry;

typedef VECTOR(Entry) Queue;

typedef struct RuleUpkeep {
    const Rule *rule;
    uint32_t relation; // the head's number among the relations of the stratum
    Extent *extents;   // one a goal
    Plan *lose, *gain; // one a goal: from a row that it loses or gains
    Plan prove;        // from a row of the head
    bool *lose_made, *gain_made, prove_made;
    Table *groups; // of an aggregated rule: plain columns whose solutions have changed
} RuleUpkeep;

typedef struct Kept { // a relation of the stratum
    Relation *relation;
    Table *offered; // rows that have a new proof
    VECTOR(uint32_t) heights;
} Kept;

typedef struct Upkeep {
    Store *store;
    uint32_t stratum;
    VECTOR(Kept) kept;
    VECTOR(RuleUpkeep) rules;
    Queue queue;
    Run *run;
    uint64_t steps, most; // proofs looked at, and how many may be
    // What the run that goes on is about.
    const RuleUpkeep *rule;
    uint32_t height; // of the row that it begins with
    uint32_t best;
    Table *solutions; // of a group
} Upkeep;

// follow.c
void queue_push(Queue *queue, Entry entry);
Entry queue_pop(Queue *queue); // the lowest
bool row_is_in(const Table *table, const Datum *values);
// Never shown: store_settle forgets what it would have followed.
Status fail_costs(void);
bool is_of_stratum(const Upkeep *upkeep, const Relation *relation);
// Solutions of a rule with this row of a goal, of what was there before and is there now, without
// negated goals; of what is there now; with this row of the head, from rows below a height.
Status from_lost(Upkeep *upkeep, RuleUpkeep *rule, uint32_t goal, const Datum *values,
                 Status (*found)(Run *)) MUST_USE;
Status from_gained(Upkeep *upkeep, RuleUpkeep *rule, uint32_t goal, const Datum *values,
                   Status (*found)(Run *)) MUST_USE;
Status from_head(Upkeep *upkeep, RuleUpkeep *rule, const Datum *values, uint32_t below,
                 Status (*found)(Run *)) MUST_USE;

// groups.c: groups of aggregated rules; those that a change touches are aggregated anew.
Status groups_find(Upkeep *upkeep) MUST_USE; // from what lower strata have lost and gained
void groups_fall(Upkeep *upkeep);            // the rows that they had are looked at again
// The row of a group as it is now, if there is one, in a table of its own.
Status group_row(Upkeep *upkeep, RuleUpkeep *rule, const Datum *values, Table **out) MUST_USE;

#endif
