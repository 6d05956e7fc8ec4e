// What variables hold, and what the lists, dictionaries, structs, captured variables and KV caches
// that can be reached from them hold: to go back to when a line of a session fails. Tensors are
// shared, not copied; parameters and optimizers keep what was done to them.
#ifndef VALUE_SNAPSHOT_H
#define VALUE_SNAPSHOT_H

#include "value/value.h"

typedef struct Snapshot Snapshot;

Snapshot *snapshot_new(void);
// Adds a variable's place. It must stay where it is until the snapshot is restored or freed.
void snapshot_add(Snapshot *snapshot, Value *place);
// Follows what was added. Afterwards nothing may be added.
void snapshot_take(Snapshot *snapshot);
// Whether there was memory to note everything.
bool snapshot_is_whole(const Snapshot *snapshot);
// Everything is again as it was taken, unless it is not whole: then all stays as it is. Drops may
// run.
void snapshot_restore(Snapshot *snapshot);
void snapshot_free(Snapshot *snapshot);

#endif
