// Parameters that the ranks share out: each keeps its part of their elements, cut in blocks, and
// gathers the whole where a kernel or the program uses it. It is let go when the next is gathered.
// Gathering is a call that all ranks make in the same order, like collectives.
#ifndef RANKS_SHARDED_H
#define RANKS_SHARDED_H

#include "ranks/pieces.h"

// What is gathered together; counted.
typedef struct ShardedSet ShardedSet;
ShardedSet *sharded_set_new(void);
void sharded_set_release(ShardedSet *set); // NULL is allowed; its parameters stay as they are

// Cuts a parameter that is alike on all ranks. Other holders of its contents keep them.
// STATUS_MEMORY, STATUS_DEVICE.
Status sharded_cut(ShardedSet *set, Tensor *parameter, int64_t block) MUST_USE;
// This rank's part, [elements], borrowed, which may be written to after sharded_change; NULL where
// the parameter is whole. `first` is the number of its first element.
Tensor *sharded_part(const Tensor *parameter, int64_t *first);
// Parts are about to change: the whole is let go. Who else holds it keeps the numbers of before.
Status sharded_change(Tensor *parameter) MUST_USE;
// It is whole on every rank again; STATUS_VALUE where the ranks do not agree to make it so.
Status sharded_join(Tensor *parameter) MUST_USE;

#endif
