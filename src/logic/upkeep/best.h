// Relations with a least or greatest value, each of a component of its own.
#ifndef LOGIC_UPKEEP_BEST_H
#define LOGIC_UPKEEP_BEST_H

#include "logic/upkeep/follow.h"

bool best_can_follow(const Store *store, const Relation *relation);
Status best_settle(Upkeep *upkeep, Relation *relation) MUST_USE;

#endif
