// The rules of a stratum that is brought up to date (upkeep.c).
#ifndef LOGIC_UPKEEP_STRATUM_H
#define LOGIC_UPKEEP_STRATUM_H

#include "logic/upkeep/follow.h"

void rule_begin(Upkeep *upkeep, const Rule *rule, uint32_t relation);
void stratum_end(Upkeep *upkeep); // frees what a stratum needed

#endif
