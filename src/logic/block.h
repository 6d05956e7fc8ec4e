// Relations as a question of a program block sees them: with the rules of the block and those
// outside blocks, and rows that hold in some world whatever `not` says of them. What has been made
// so is kept for its next question, until facts or rules change.
#ifndef LOGIC_BLOCK_H
#define LOGIC_BLOCK_H

#include "logic/store.h"

// A relation that the block has rules for, without those of other blocks meanwhile.
typedef struct Narrowed {
    Relation *relation;
    RuleList all;
} Narrowed;

// A goal `not R(X)` that holds in some world: while rows are made and rules are run it is a
// comparison of a constant with itself.
typedef struct Lifted {
    Goal *goal;
    Goal saved;
} Lifted;

typedef struct Block {
    Store *store;
    uint32_t number;       // where its text begins
    const bool *uncertain; // the relations that a weight has a part in, by number
    size_t relations;
    uint32_t view;
    VECTOR(Narrowed) narrowed;
    VECTOR(Lifted) lifted;
    RelationList changed; // that have other rows than outside
    Expression anything;  // of lifted goals
} Block;

// The number, `uncertain` and the store are given. What was begun is forgotten.
void block_enter(Block *block, Rule *query);
void block_leave(Block *block);
// What a lifted goal says; NULL: it is not one.
const Goal *block_negated(const Block *block, const Goal *goal);

#endif
