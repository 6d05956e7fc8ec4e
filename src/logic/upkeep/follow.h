// What the files of upkeep share: a stratum that is brought up to date, and rules that are run from
// one row.
#ifndef LOGIC_FOLLOW_H
#define LOGIC_FOLLOW_H

#include "logic/collect.h"
#include "logic/run.h"

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
    bool tightens; // rows that are there get their lowest heights
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
#endif
