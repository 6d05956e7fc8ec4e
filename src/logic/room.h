// Memory for the rows that an evaluation adds.
#ifndef LOGIC_ROOM_H
#define LOGIC_ROOM_H

#include "logic/store.h"

enum { ROOM_ROWS = 1 << 14 }; // that are added between two questions at most

// Whether as many rows may be added to the relations that are made: within the store's bytes, and
// by what the system gives. Also fails when the user interrupts.
Status room_ask(const Store *store) MUST_USE;

#endif
