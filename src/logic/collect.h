// Rows that rules give, put into a table in the order of naive evaluation: what is found out of
// order is sorted by the rows that it comes from.
#ifndef LOGIC_COLLECT_H
#define LOGIC_COLLECT_H

#include "logic/plan.h"

typedef struct Collector Collector;
struct Collector {
    Table *table;
    const Collector *whole;      // of which this is a part (parts.c): what it has is left out; NULL
    const Column *columns;       // with merges; NULL: plain rows
    uint32_t settled;            // rows before this round
    uint32_t segment;            // the first row of the present rule
    bool keyed;                  // rows of the segment are to be sorted
    uint32_t width;              // positions of a key
    VECTOR(uint32_t) keys;       // of the segment's rows
    VECTOR(uint32_t) superseded; // rows before this round that better ones replace
    bool changed;                // a row has come since the round began
};

// The value that two leave in a column.
Datum merge_values(Store *store, Merge merge, Datum old, Datum new);
// A single value of a column that unites its values becomes a set of one.
void values_lift(Store *store, const Column *columns, uint32_t arity, Datum *values);
void collector_begin_round(Collector *collector);
void collector_begin_rule(Collector *collector, bool keyed, uint32_t width);
// A row that a solution gives, with the rows at its positions.
void collector_add(Collector *collector, Store *store, const Datum *values, const uint32_t *path);
// The rows of a part of the solutions, as if they had been found one after the other.
void collector_take(Collector *collector, Store *store, Collector *part);
void collector_end_rule(Collector *collector);
void collector_end_round(Collector *collector);
void collector_free(Collector *collector);

#endif
