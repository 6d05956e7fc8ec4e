// Memory for the rows that an evaluation adds.
#ifndef LOGIC_ROOM_H
#define LOGIC_ROOM_H

#include "logic/store.h"

enum { ROOM_ROWS = 1 << 14 }; // that are added between two questions at most

// Whether the system gives memory for as many rows of the relations that are made, and the limit,
// where recursion has no bound. Also fails when the user interrupts.
Status room_ask(const Store *store) MUST_USE;

#endif
