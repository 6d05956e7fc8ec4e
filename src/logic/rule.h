// Rules and queries: what a program says, with relations for names and numbers for variables.
#ifndef LOGIC_RULE_H
#define LOGIC_RULE_H

#include "base/source.h"
#include "logic/constant.h"

typedef struct Relation Relation;

enum { VARIABLES_MAX = 256 };

typedef struct Term {
    enum { TERM_ANY, TERM_CONSTANT, TERM_VARIABLE } kind;
    uint32_t value; // the constant or the variable's number
} Term;

typedef enum Arithmetic {
    ARITHMETIC_CONSTANT,
    ARITHMETIC_VARIABLE,
    ARITHMETIC_ADD,
    ARITHMETIC_SUB,
    ARITHMETIC_MUL,
    ARITHMETIC_DIV,
    ARITHMETIC_MOD,
    ARITHMETIC_NEG,
    ARITHMETIC_HOST, // what only the host can compute
} Arithmetic;

typedef struct Expression Expression;
struct Expression {
    Arithmetic kind;
    uint32_t value;           // the constant or the variable's number
    Expression *left, *right; // of an operator
    void *host;               // HOST: the host's own
    uint32_t *variables;      // HOST: what it is given
    uint32_t variable_count;
    Span span;
};

typedef enum Comparison {
    COMPARE_EQ,
    COMPARE_NE,
    COMPARE_LT,
    COMPARE_LE,
    COMPARE_GT,
    COMPARE_GE
} Comparison;

typedef struct Goal {
    enum GoalKind {
        GOAL_ATOM,
        GOAL_NOT,
        GOAL_COMPARE, // left and right
        GOAL_TEST,    // left, a condition of the host's
        GOAL_BIND,    // variable = left
        GOAL_MEMBER,  // variable in left, which gives several values
    } kind;
    Relation *relation; // ATOM, NOT
    Relation *whole;    // of which `relation` has the rows that are wanted (narrow.c); or NULL
    Term *terms;
    Comparison comparison;
    Expression *left, *right;
    uint32_t variable;
    Span span;
} Goal;

typedef enum Aggregate {
    AGGREGATE_NONE,
    AGGREGATE_COUNT,
    AGGREGATE_SUM,
    AGGREGATE_MIN,
    AGGREGATE_MAX,
    AGGREGATE_AVG,
} Aggregate;

// head <- goals. Of a query the head is what is asked for, and `relation` is NULL.
typedef struct Rule {
    Arena arena; // of everything below
    Relation *relation;
    Term *head;
    uint32_t arity;
    Aggregate *aggregates; // one a column; NULL: none
    Goal *goals;
    uint32_t goal_count, variable_count;
    const char **variable_names; // NULL for those that no script has named
    Span span;
    uint32_t number; // its place among the rules of its store
    uint32_t block;  // where the program block that it stands in begins; 0: in none
    bool transitive; // the law of an equivalence
} Rule;

Rule *rule_new(uint32_t variable_count, uint32_t arity, uint32_t goal_count);
void rule_free(Rule *rule); // NULL is allowed
typedef struct VariableSet {
    uint64_t words[VARIABLES_MAX / 64];
} VariableSet;
static inline void variables_add(VariableSet *set, uint32_t variable) {
    set->words[variable / 64] |= (uint64_t)1 << variable % 64;
}
static inline bool variables_have(const VariableSet *set, uint32_t variable) {
    return set->words[variable / 64] >> variable % 64 & 1;
}
static inline void variables_drop(VariableSet *set, uint32_t variable) {
    set->words[variable / 64] &= ~((uint64_t)1 << variable % 64);
}
bool variables_meet(const VariableSet *a, const VariableSet *b); // whether some are in both
bool variables_join(VariableSet *set,
                    const VariableSet *others); // adds them; false: all were there
void expression_variables(const Expression *expression, VariableSet *out); // adds those it reads
// A variable that the goal needs a value of and that has none; -1: the goal can be asked. `arity`
// is that of the goal's relation.
int goal_missing(const Goal *goal, uint32_t arity, const VariableSet *bound);
// Adds the variables that the goal gives values to.
void goal_bind(const Goal *goal, uint32_t arity, VariableSet *bound);

#endif
