// Bottom-up evaluation of given relations of one stratum; what lies below must be complete.
#ifndef LOGIC_EVALUATE_H
#define LOGIC_EVALUATE_H

#include "logic/store.h"

Status relations_evaluate(Store *store, const RelationList *relations, uint32_t stratum) MUST_USE;

#endif
