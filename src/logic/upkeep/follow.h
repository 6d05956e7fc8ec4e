// What the files of upkeep share: relations that are brought up to date together, and rules that
// are run from one row.
#ifndef LOGIC_FOLLOW_H
#define LOGIC_FOLLOW_H

#include "logic/collect.h"
#include "logic/run.h"
#include "logic/upkeep/upkeep.h"

typedef struct Entry { // of a queue
    Height height;
    uint32_t relation, row;
} Entry;

typedef VECTOR(Entry) Queue;

typedef struct RuleUpkeep {
    const Rule *rule;
    uint32_t relation; // the head's number among the relations
    Extent *extents;   // one a goal
    // Without steps until they are used.
    Plan *lose, *gain; // one a goal: from a row that it loses or gains
    Plan prove;        // from a row of the head
    Table *groups;     // of an aggregated rule: plain columns whose solutions have changed
} RuleUpkeep;

typedef struct Kept { // a relation that is brought up to date
    Relation *relation;
    uint32_t before;         // rows that there were, dead ones included
    VECTOR(uint32_t) offers; // of each row behind them: how many rows had fallen when it came
    Table *raised;           // rows with other heights than they had; NULL: none
} Kept;

typedef struct Upkeep {
    Store *store;
    uint32_t stratum, component;
    bool together; // every component of the stratum
    VECTOR(Kept) kept;
    VECTOR(RuleUpkeep) rules;
    Queue queue;
    Run *run;
    uint64_t steps, most; // proofs looked at, and how many may be
    // What the run that goes on is about.
    const RuleUpkeep *rule;
    Entry at;              // the row that it begins with
    Height high;           // heads above it stay
    Height lowest;         // of the row's proofs
    uint32_t fallen;       // rows that were raised or taken away
    VECTOR(Entry) removed; // of these, rows that went though they may have a proof
    Table *solutions;      // of a group
    DatumList heads;       // rows that runs have found
} Upkeep;

void upkeep_begin(Upkeep *upkeep, Store *store, const RelationList *reached);
void upkeep_end(Upkeep *upkeep);
// Of one stratum: of one component, or `together`.
void stratum_begin(Upkeep *upkeep, Relation *const *relations, size_t count);
void stratum_end(Upkeep *upkeep); // frees what it needed
void queue_push(Queue *queue, Entry entry);
Entry queue_pop(Queue *queue); // the lowest, however often it is there
bool row_is_in(const Table *table, const Datum *values);
bool is_best(const Relation *relation); // keeps one value of a key
// Never shown: store_settle forgets what it would have followed.
Status fail_costs(void);
// Whether heights of the relation's rows matter.
bool is_within(const Upkeep *upkeep, const Relation *relation);
// Solutions of a rule with this row of a goal, of what was there before and is there now, without
// negated goals; of what is there now; with this row of the head, from rows below a height.
Status from_lost(Upkeep *upkeep, RuleUpkeep *rule, uint32_t goal, const Datum *values,
                 Status (*found)(Run *)) MUST_USE;
Status from_gained(Upkeep *upkeep, RuleUpkeep *rule, uint32_t goal, const Datum *values,
                   Status (*found)(Run *)) MUST_USE;
Status from_head(Upkeep *upkeep, RuleUpkeep *rule, const Datum *values, Height below,
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
