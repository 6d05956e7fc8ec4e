// The values of expressions: integers and floats here, everything else by the host.
#ifndef LOGIC_EXPRESSION_H
#define LOGIC_EXPRESSION_H

#include "logic/store.h"

Status expression_value(Store *store, const Expression *expression, const Datum *variables,
                        Datum *out) MUST_USE;
Status comparison_holds(Store *store, const Goal *goal, const Datum *variables, bool *out) MUST_USE;
Status expression_test(Store *store, const Expression *expression, const Datum *variables,
                       bool *out) MUST_USE;
Status expression_members(Store *store, const Expression *expression, const Datum *variables,
                          DatumList *out) MUST_USE;

#endif
