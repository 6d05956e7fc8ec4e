// What leaves a device that refuses memory, and comes back before its next use. Nothing outside
// this folder includes it.
#ifndef DEVICE_SPILL_H
#define DEVICE_SPILL_H

#include "device/pool.h"

// Moves out what was used longest ago until `capacity` more bytes fit. With the lock held.
// STATUS_MEMORY when all that may leave has left.
Status spill_make_room(Pool *pool, size_t capacity) MUST_USE;
// Brings back what a kernel reads and writes; of the buffer alone. STATUS_MEMORY.
Status spill_prepare(Pool *pool, const KernelCall *call) MUST_USE;
Status spill_bring(Buffer *buffer) MUST_USE;
// With the lock held: the bytes of a buffer that is away are wanted no more.
void spill_forget(Pool *pool, Buffer *buffer);
void spill_close(Pool *pool);

#endif
