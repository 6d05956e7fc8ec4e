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
    // Without steps until they are used.
    Plan *lose, *gain; // one a goal: from a row that it loses or gains
    Plan prove;        // from a row of the head
    Table *groups;     // of an aggregated rule: plain columns whose solutions have changed
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
    DatumList heads;  // rows that runs have found, of best values
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

// How changed rows are followed to the heads whose proofs they may be in.
typedef struct Direction {
    Status (*from)(Upkeep *upkeep, RuleUpkeep *rule, uint32_t goal, const Datum *values,
                   Status (*found)(Run *));
    Status (*found)(Run *run);
} Direction;
// Every head that a proof with this row of `relation` may have; the same of each row of a table,
// which may be NULL.
Status heads_follow(Upkeep *upkeep, Direction direction, const Relation *relation,
                    enum GoalKind kind, const Datum *values) MUST_USE;
Status rows_follow(Upkeep *upkeep, Direction direction, const Relation *relation, const Table *rows,
                   enum GoalKind kind) MUST_USE;
// Notes a row in a table that is made when it is first needed.
void row_note(Table **table, const Relation *relation, const Datum *values);
void rule_begin(Upkeep *upkeep, const Rule *rule, uint32_t relation);
void stratum_end(Upkeep *upkeep); // frees what a stratum needed

// best.c: relations with a least or greatest value, each of a component of its own.
bool best_can_follow(const Store *store, const Relation *relation);
Status best_settle(Upkeep *upkeep, Relation *relation) MUST_USE;

// groups.c: groups of aggregated rules; those that a change touches are aggregated anew.
Status groups_find(Upkeep *upkeep) MUST_USE; // from what lower strata have lost and gained
void groups_fall(Upkeep *upkeep);            // the rows that they had are looked at again
// The row of a group as it is now, if there is one, in a table of its own.
Status group_row(Upkeep *upkeep, RuleUpkeep *rule, const Datum *values, Table **out) MUST_USE;

#endif
