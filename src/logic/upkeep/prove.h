// What a row rests on, and what rests on it.
#ifndef LOGIC_UPKEEP_PROVE_H
#define LOGIC_UPKEEP_PROVE_H

#include "logic/upkeep/follow.h"

// The highest row that the solution's path takes of relations along; 0: none.
Height path_height(const Run *run);
// Heads above `upkeep->at`, up to `high`, are to be looked at.
extern const Direction heads_falling;
// How low the lowest proof of the row `upkeep->at` from rows below a height is, or any from rows
// below it.
Status proofs_find(Upkeep *upkeep, const Datum *values, Height below) MUST_USE;

#endif
