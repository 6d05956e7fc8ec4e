// Groups of aggregated rules; those that a change touches are aggregated anew.
#ifndef LOGIC_UPKEEP_GROUPS_H
#define LOGIC_UPKEEP_GROUPS_H

#include "logic/upkeep/follow.h"

Status groups_find(Upkeep *upkeep) MUST_USE; // from what lower strata have lost and gained
void groups_fall(Upkeep *upkeep);            // the rows that they had are looked at again
// The row of a group as it is now, if there is one, in a table of its own.
Status group_row(Upkeep *upkeep, RuleUpkeep *rule, const Datum *values, Table **out) MUST_USE;

#endif
