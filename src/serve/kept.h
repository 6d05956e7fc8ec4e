// Sequences of finished texts, which later ones may begin with.
#ifndef SERVE_KEPT_H
#define SERVE_KEPT_H

#include "serve/jobs.h"

// A text that was finished, which is taken; the oldest of too many is forgotten.
void kept_add(ServedNetwork *served, Sequence *sequence);
// The one that begins most like these ids, cut to what is alike; NULL when none does.
Status kept_take(ServedNetwork *served, const int64_t *ids, size_t count, Sequence **out) MUST_USE;
void kept_clear(ServedNetwork *served);

#endif
