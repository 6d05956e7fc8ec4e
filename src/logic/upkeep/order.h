// The order of rows that upkeep has left without one: that of naive evaluation, found from the
// first proof of each row.
#ifndef LOGIC_ORDER_H
#define LOGIC_ORDER_H

#include "logic/store.h"

// Puts row numbers of a relation in their order. *done: false where that would cost more than to
// make the relation anew.
Status rows_order(Store *store, Relation *relation, uint32_t *rows, uint32_t count,
                  bool *done) MUST_USE;
// The whole relation gets its order, or is forgotten.
Status relation_order(Store *store, Relation *relation) MUST_USE;

#endif
