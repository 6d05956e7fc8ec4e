// A logic program: its constants, entity types, relations with their facts, and rules. Queries give
// the answers of naive bottom-up evaluation, in its order: by round, then rule, then the order of
// the facts of the body. Knows nothing of the interpreter; what only that can compute is asked of
// the host.
#ifndef LOGIC_STORE_H
#define LOGIC_STORE_H

#include "logic/rule.h"
#include "logic/table.h"

typedef struct Store Store;
typedef struct Classes Classes; // of an equivalence (classes.c)
typedef uint64_t Height;        // of a row (upkeep/upkeep.h)

typedef enum ColumnKind {
    COLUMN_ANY,
    COLUMN_ENTITY, // of a type, or of the one that those of any entity share
    COLUMN_INT,
    COLUMN_FLOAT,
    COLUMN_BOOL,
    COLUMN_STRING,
    COLUMN_TUPLE,
} ColumnKind;

typedef enum Merge { MERGE_NONE, MERGE_MIN, MERGE_MAX, MERGE_UNION } Merge;

typedef struct Column Column;
struct Column {
    const char *name;
    ColumnKind kind;
    Relation *type; // ENTITY: the type, a relation of one column; NULL: any
    Column *items;  // TUPLE: what its items are, without names; NULL: anything
    uint32_t item_count;
    Merge merge; // what becomes of several values for the same other columns
};

typedef VECTOR(Relation *) RelationList;
typedef VECTOR(Rule *) RuleList;

typedef VECTOR(uint32_t) RoundList;
typedef VECTOR(Height) HeightList;

// The rows of a relation in one view, while those of another stand in their place (block.c).
typedef struct KeptRows {
    uint32_t view;
    Table *derived, *loose;
    RoundList rounds;
    HeightList heights;
    bool unordered;
    uint64_t effort;
} KeptRows;

typedef struct View { // of the questions of a program block
    uint32_t block;
    bool *uncertain; // what a weight had a part in
    size_t relations;
} View;

struct Relation {
    const char *name;
    Span span; // of its declaration, or 0
    uint32_t arity, number;
    Column *columns;
    Columns key; // the columns without a merge
    Table *facts;
    bool entities; // an entity type: its facts are its members
    bool closed;   // an entity type that facts do not add to
    bool question; // what a goal-directed query asks of another
    bool inner;    // not of the program: made by narrow.c, or the type that columns share
    // Of narrow.c: the rows that others want; of such a relation, what its column is to hold.
    Relation *narrow, *questions;
    uint32_t narrow_column;
    bool equivalence; // reflexive, symmetric and transitive by rules of its own
    Classes *classes; // NULL until they are wanted
    RuleList rules;
    RelationList readers; // heads of the rules that read it, each once
    // What the rules give, the facts first; NULL until it is wanted and after a change.
    Table *derived;
    RoundList rounds;   // rows of `derived` after each round, the facts being round 0
    Table *begun;       // rows of an evaluation that a question has ended (seek.c); or NULL
    bool grows;         // its rules, or those below, may have no end (growth.c)
    uint32_t stratum;   // 0: no rules; what it needs complete lies in lower ones
    uint32_t component; // relations that need each other have the same
    bool wanted;        // a mark of evaluation
    uint64_t effort;    // rows gone through to make `derived` from the beginning
    uint64_t counted;   // pairs, counted without making them
    uint64_t counted_version;
    uint64_t recounts;      // how often since it was last complete, after edits
    uint64_t asked;         // how often with values, since it was last complete
    uint64_t asked_version; // of the store, at the first of those questions
    uint64_t asked_rows;    // what they have made
    uint32_t completed;     // how often that was instead
    Table *saved;           // the facts as they were at the store's mark, once they change
    // Of logic/upkeep/upkeep.h: facts that have changed since `derived` was made, and whether they
    // were there; rows that this has added and taken away; the heights of rows, and rows whose
    // heights may not be their rounds.
    Table *touched, *lost, *gained, *loose;
    HeightList heights;
    bool unordered; // the rows of `derived` are not in order, and `rounds` is empty
    VECTOR(KeptRows) kept;
};

// What the store cannot do itself. A Status other than OK ends the evaluation and is passed on.
typedef struct StoreHost {
    void *context;
    // The value of an expression; `arguments` are the values of its variables.
    Status (*evaluate)(void *context, void *host, const Datum *arguments, Datum *out);
    Status (*test)(void *context, void *host, const Datum *arguments, bool *out);
    // Pushes every value of something that can be gone through.
    Status (*members)(void *context, void *host, const Datum *arguments, DatumList *out);
    Status (*interrupted)(void *context);
    // Runs body(context, begin, end) over parts of [0, count), on several threads or one; what is
    // left when the user interrupts is not run. NULL: one thread.
    void (*share)(int64_t count, void (*body)(void *context, int64_t begin, int64_t end),
                  void *context);
    bool (*stopped)(void); // from any of these threads: the rest is to be left
    double share_from;     // rows gone through that are worth it
} StoreHost;

typedef struct Edge {         // of a relation's begun rows: those that are missing lie beyond it
    const Relation *relation; // NULL: nothing is known of them
    uint32_t column;
    bool rises;
    double value;
} Edge;

struct Store {
    ConstantTable constants;
    StoreHost host;
    RelationList relations;
    Relation *open;       // the type that all columns of any entity share; NULL until there is one
    RuleList rules;       // in the order of the program
    RuleList inner_rules; // those of inner relations
    uint64_t version;     // counts changes of facts and rules; from 1
    bool analysed;        // strata and components are those of the present rules
    bool wide;            // rules read what they say (narrow.c)
    bool unsettled;       // facts have changed that complete relations rest on
    uint64_t followed;    // rows and proofs that edits have gone through, since the beginning
    bool marked;          // changes since the mark can be undone
    size_t rules_marked;
    uint64_t limit;             // bytes that rows of recursion without a bound may take; 0: any
    const RelationList *making; // what rows are added to; NULL: nothing is evaluated
    const struct Question *question; // for which alone rows are made (seek.h); or NULL
    VECTOR(View) views;              // rows are kept of
    RelationList begun;              // the relations with begun rows, evaluated together
    Edge edge;                       // of one of them
    bool endless;                    // that recursion has no bound that can be seen
    CellsRoom room;                  // that sets of bits may take together
    struct Profile *profile;         // of the evaluation that runs; NULL: nobody asks
};

// store.c
// Runs body over parts of [0, count) on the host's threads; fails when the user interrupts.
Status store_share(const Store *store, int64_t count,
                   void (*body)(void *context, int64_t begin, int64_t end), void *context) MUST_USE;
Relation *relation_make(const char *name, const Column *columns, uint32_t arity);
void relation_free(Relation *relation);

Store *store_new(const StoreHost *host);
void store_free(Store *store); // NULL is allowed
// A mark to which store_undo returns: facts and rules; constants and relations stay.
void store_mark(Store *store);
void store_undo(Store *store);

// Columns are copied. Names of relations are the caller's business: several may have one.
Relation *relation_new(Store *store, const char *name, const Column *columns, uint32_t arity);
Relation *entity_type_new(Store *store, const char *name, bool closed);
Relation *store_open_type(Store *store); // that columns of any entity share
Relation *equivalence_type(const Store *store, const Relation *relation); // or NULL
void relation_make_equivalence(Store *store, Relation *relation);
// Whether a value may stand in a column: STATUS_TYPE in words. An int in a float column becomes a
// float.
void column_free_items(Column *column);
// The value as the column would hold it, integers as floats where it has those.
void column_convert(Store *store, const Relation *relation, uint32_t column, Datum *value);
Status column_fit(Store *store, const Relation *relation, uint32_t column, Datum *value) MUST_USE;
// Adds a fact whose values fit, and new members of open entity types; false: it was there.
bool fact_add(Store *store, Relation *relation, const Datum *values);
bool fact_remove(Store *store, Relation *relation, const Datum *values); // false: not there
// Whether what holds of a relation is more than its facts, or fewer.
static inline bool relation_is_derived(const Relation *relation) {
    return relation->rules.count > 0 || relation->key != columns_all(relation->arity);
}
// What holds of a relation: there after store_complete.
static inline Table *relation_table(const Relation *relation) {
    return relation_is_derived(relation) ? relation->derived : relation->facts;
}
// Of its relation; 0: it has none.
static inline uint32_t goal_arity(const Goal *goal) {
    return goal->relation ? goal->relation->arity : 0;
}
// The columns of an atom, CONSTANT_NONE where they are open.
void goal_values(const Goal *goal, const Datum *variables, Datum *values);
void store_forget_begun(Store *store); // of which edits and other questions take the place
// Rows that are begun as if they were complete, and back.
void begun_show(Store *store);
void begun_hide(Store *store);
// Takes the rule; what it does not allow (analyse.c) is found by store_analyse.
void store_add_rule(Store *store, Rule *rule);
// Forgets the results of a relation and of everything that depends on it.
void relation_changed(Relation *relation);

void relation_add_reader(Relation *relation, Relation *reader);
void store_free_inner_rules(Store *store);

size_t relation_bytes(const Relation *relation); // of its rows and indexes
size_t store_bytes(const Store *store);          // of all relations and constants

#endif
