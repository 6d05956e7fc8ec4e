// Models that several ranks compute together (pipeline of std/parallel.tl), for a program that the
// first rank alone runs: it tells the others what becomes of its texts.
#ifndef GENERATE_FOLLOW_H
#define GENERATE_FOLLOW_H

#include "generate/sequence.h"

// Of networks with `led`: the others make the same steps. Nothing for all else.
Status follow_tell_steps(const Step *steps, size_t count) MUST_USE;
Status follow_tell_fork(const Sequence *sequence, const Sequence *copy) MUST_USE;
void follow_tell_free(const Sequence *sequence);
// What the other ranks do, with the same networks, until an error or STATUS_INTERRUPT.
Status networks_follow(Network *const *networks) MUST_USE;

#endif
