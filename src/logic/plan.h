// How a rule is evaluated once: its goals in an order, each with the columns that have values when
// it is reached and the rows that it looks at.
#ifndef LOGIC_PLAN_H
#define LOGIC_PLAN_H

#include "logic/store.h"

enum { POSITIONS_MAX = 64, NO_POSITION = UINT32_MAX };

typedef struct Step {
    const Goal *goal;
    Columns bound, binds, repeats; // of an atom: has a value; gives one; must equal one given here
    uint32_t position;             // among the goals that go through rows, in the rule's own order
    bool once;                     // nothing that follows depends on which row it is
    bool tests;                    // a BIND whose variable has a value
    // Set before each run.
    Table *table;
    Index *index;       // over `bound`; NULL: every row, or the one row where all are bound
    uint32_t low, high; // the rows that take part
    Table *extra;       // more rows; NULL: none
    Index *extra_index;
    const Height *heights; // of the table's rows; NULL: they do not matter
} Step;

typedef struct Plan {
    const Rule *rule;
    Step *steps;
    uint32_t count, positions;
    bool ordered; // its answers come in the order of the rule's own goals
    double cost;  // rows expected to be gone through for each of the first goal
} Plan;

// The rows of a goal's relation that take part in an evaluation.
typedef struct Extent {
    Table *table;
    uint32_t low, high;
    Table *extra;          // rows that take part as well
    const Height *heights; // of the rows; NULL: they do not matter
} Extent;

// `extents`: one a goal, for atoms and negated ones. `initial`: variables that have values, or
// NULL.
void plan_make(const Rule *rule, const Extent *extents, const Datum *initial, Plan *plan);
// The same, never in another order than the rule's own.
void plan_make_in_order(const Rule *rule, const Extent *extents, const Datum *initial, Plan *plan);
// What a plan begins with: a row of one goal, whose variables have values then, or, where `goal` is
// NO_POSITION, a row of the head.
typedef struct PlanStart {
    uint32_t goal;
    bool positive; // goals that are negated are left out
    Columns open;  // of the head: those without a value
} PlanStart;
void plan_make_from(const Rule *rule, const Extent *extents, const PlanStart *start, Plan *plan);
// Gives the rule's variables the values of a row, and no value to the others; false: the row is not
// one that the head can give, or the goal can match.
bool head_unify(const Rule *rule, const Datum *values, Datum *variables);
bool goal_unify(const Rule *rule, const Goal *goal, const Datum *values, Datum *variables);
void plan_set(Plan *plan, const Extent *extents);
void plan_free(Plan *plan);

#endif
