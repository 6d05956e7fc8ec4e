// Rules of a store before they are run: what they do not allow, and their strata.
#ifndef LOGIC_ANALYSE_H
#define LOGIC_ANALYSE_H

#include "logic/store.h"

// Variables without values, cycles through `not`, best values used in ways that are not
// monotone. On failure the span is where it shows.
Status store_analyse(Store *store, Span *span) MUST_USE;
Status rule_check_safe(const Rule *rule, const Datum *initial, Span *span) MUST_USE;

#endif
