// Bringing the rows of a component up to date (upkeep.c).
#ifndef LOGIC_UPKEEP_SETTLE_H
#define LOGIC_UPKEEP_SETTLE_H

#include "logic/upkeep/follow.h"

Status component_settle(Upkeep *upkeep, Relation *const *relations, size_t count) MUST_USE;

#endif
