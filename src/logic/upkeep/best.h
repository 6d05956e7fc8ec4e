// Relations with best values that need each other.
#ifndef LOGIC_UPKEEP_BEST_H
#define LOGIC_UPKEEP_BEST_H

#include "logic/upkeep/follow.h"

bool best_can_follow(const Store *store, const Relation *relation);
// All relations of one component.
Status best_settle(Upkeep *upkeep, Relation *const *relations, size_t count) MUST_USE;

#endif
