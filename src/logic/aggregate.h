// Rows of rules with aggregates.
#ifndef LOGIC_AGGREGATE_H
#define LOGIC_AGGREGATE_H

#include "logic/collect.h"

// The columns of a head that are not aggregates: what solutions are grouped by.
Columns aggregate_plain_columns(const Rule *rule);
// The rows that an aggregated rule gives for solutions in their order, each the values
// of all variables.
Status aggregate_rows(Store *store, const Rule *rule, const Table *solutions,
                      Collector *into) MUST_USE;

#endif
