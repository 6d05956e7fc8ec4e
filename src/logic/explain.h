// How a query is answered, in words.
#ifndef LOGIC_EXPLAIN_H
#define LOGIC_EXPLAIN_H

#include "logic/profile.h"

// Evaluates anew what the query needs and says how that went.
Status store_explain(Store *store, Rule *query, const Datum *initial, Text *out) MUST_USE;

#endif
