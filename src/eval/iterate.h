// What `for` runs through, one item at a time.
#ifndef EVAL_ITERATE_H
#define EVAL_ITERATE_H

#include "eval/code.h"

typedef enum IteratorKind {
    ITERATE_RANGE,
    ITERATE_LIST, // also tuples
    ITERATE_TENSOR,
    ITERATE_STRING,
    ITERATE_DICT,
    ITERATE_PASS, // of a handle that gives its items one by one
} IteratorKind;

typedef struct Iterator {
    IteratorKind kind;
    bool apart;   // elements are tuples of two, taken apart by two names
    bool paired;  // a dictionary under two names: index gives the key, next the value
    Value source; // owned
    Value keys;   // of a dictionary: those of the start, owned
    int64_t next, step;
    uint64_t left, position;
    Value key;   // of the current entry, where paired; borrowed
    Value first; // of a pass: its first item until it is given
} Iterator;

// Takes the iterable, also on failure. `two_names`: for i, x in it, for (a, b) in it.
Status iterator_start(Iterator *iterator, Value iterable, bool two_names) MUST_USE;
Status iterator_start_range(Iterator *iterator, Value low, Value high, bool inclusive) MUST_USE;
// A new reference; ABSENT at the end; VALUE_FAIL.
Value iterator_next(Iterator *iterator);
// What the first of two names means for the item just given: its number, or its key. Borrowed.
Value iterator_index(const Iterator *iterator);
void iterator_end(Iterator *iterator);

#endif
