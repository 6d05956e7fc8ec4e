// The instances of rules below the answers to a query: rows as nodes, each with the ways in which
// it follows from others. What a program over a semiring weighs; knows nothing of weights but that
// some facts and rules have one.
#ifndef LOGIC_GROUND_H
#define LOGIC_GROUND_H

#include "logic/store.h"

enum { NO_LEAF = UINT32_MAX };

// A row, or an answer of the query.
typedef struct GroundNode {
    const Relation *relation; // NULL: an answer
    uint32_t row;             // of relation_table, or of the answers
    uint32_t values;          // of the row: the first among the ground's values
    bool fact;                // it holds without a rule
    uint32_t leaf;            // of the fact's weight, or NO_LEAF
    uint32_t first, count;    // of its instances
} GroundNode;

typedef struct GroundInstance {
    uint32_t leaf;         // of the rule's weight, or NO_LEAF
    uint32_t first, count; // of its literals
} GroundInstance;

typedef struct GroundLiteral {
    uint32_t node;
    bool negated;
} GroundLiteral;

typedef struct Ground {
    VECTOR(GroundNode) nodes; // the answers first
    VECTOR(GroundInstance) instances;
    VECTOR(GroundLiteral) literals;
    DatumList values;        // of the nodes' rows, which may be forgotten
    VECTOR(uint32_t) leaves; // the number of each one's weight
    // Of each leaf the first of those that exclude each other, which stand together; itself where
    // it is independent.
    VECTOR(uint32_t) groups;
    VECTOR(uint32_t) order; // of nodes: topological, as far as cycles allow
    bool cyclic;
    uint32_t answers;
} Ground;

// Which facts and rules have weights, by number; negative: none.
typedef struct GroundWeights {
    void *context;
    int64_t (*of_fact)(void *context, const Relation *relation, const Datum *values);
    bool (*has_facts)(void *context, const Relation *relation); // some with weights
    int64_t (*of_rule)(void *context, const Rule *rule);
    // Of weights that exclude each other the same, not 0.
    uint64_t (*group)(void *context, uint32_t weight);
    enum Certain { // what becomes of rows that no weight has a part in
        CERTAIN_LEFT_OUT,
        CERTAIN_NAMED, // as facts
        CERTAIN_EXPLAINED,
    } certain;
} GroundWeights;

typedef struct GroundQuery {
    Rule *rule;
    const Datum *initial; // of its variables
    uint32_t block;       // the program block that asks
    GroundWeights weights;
} GroundQuery;

// The answers in canonical order and what they rest on. A row that holds in some world is there,
// whatever `not` says of it.
Status ground_query(Store *store, const GroundQuery *query, Table **answers, Ground *out) MUST_USE;
void ground_free(Ground *ground);

#endif
