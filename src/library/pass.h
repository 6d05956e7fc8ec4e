// A model at work on one text: what its page opened, and how far it is.
#ifndef LIBRARY_PASS_H
#define LIBRARY_PASS_H

#include "eval/state.h"

typedef struct Pass {
    Interp *interp;
    Value opened;     // by the page of the model's architecture
    int64_t context;  // the number of ids that fit in all; 0 when the model does not say
    int64_t position; // ids taken so far
} Pass;

Status pass_open(Interp *interp, Value model, Pass *out) MUST_USE;
void pass_close(Pass *pass); // also of one that was never opened, {0}
// Takes `count` >= 1 more ids; the logits after the last one, [vocabulary].
Status pass_advance(Pass *pass, const int64_t *ids, size_t count, Tensor **out) MUST_USE;

#endif
