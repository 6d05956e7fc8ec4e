// Queries that embeddings answer.
#ifndef REASON_SOFT_H
#define REASON_SOFT_H

#include "reason/reason.h"

// soft.c: the answers that embeddings give and a list of their scores.
Status query_soften(Reasoner *reasoner, const Rule *rule, const Datum *initial, double temperature,
                    Found *out) MUST_USE;

#endif
