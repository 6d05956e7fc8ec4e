// Bottom-up evaluation of given relations of one stratum; what lies below must be complete.
#ifndef LOGIC_EVALUATE_H
#define LOGIC_EVALUATE_H

#include "logic/store.h"

Status relations_evaluate(Store *store, const RelationList *relations, uint32_t stratum) MUST_USE;

// The rules are analysed, the error placed, and changes of facts followed; all rows of
// a relation are made.
Status store_prepare(Store *store) MUST_USE;
Status store_complete(Store *store, Relation *relation) MUST_USE;
// The same, but the rows need not be in order.
Status store_gather(Store *store, Relation *relation) MUST_USE;
// Of a relation whose rows may have no end those that matter to the question, in order, as
// `derived` or `begun`; *done: false: complete evaluation is the way.
Status store_answer(Store *store, const struct Question *question, bool *done) MUST_USE;
// What the relation's rules read and is there is in order, or forgotten.
Status store_order_inputs(Store *store, Relation *relation) MUST_USE;

#endif
