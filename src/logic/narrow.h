// Recursive relations of which every reader wants only rows with certain values in one column.
#ifndef LOGIC_NARROW_H
#define LOGIC_NARROW_H

#include "logic/store.h"

// What the rules of others read becomes a relation of only those rows, where that can be; the store
// is analysed up to its strata, which are even for all relations but those that narrow.c makes.
void store_narrow(Store *store);
// Every rule reads what it says again; what was made stays for the next store_narrow.
void store_widen(Store *store);
// For good: each row is to be found with all that it rests on, and nothing else.
void store_stay_wide(Store *store);
// What a goal reads by the words of its rule.
static inline Relation *goal_whole(const Goal *goal) {
    return goal->whole ? goal->whole : goal->relation;
}

#endif
