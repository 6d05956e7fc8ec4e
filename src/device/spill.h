// What leaves a device that refuses memory, and comes back before its next use. Nothing outside
// this folder includes it.
#ifndef DEVICE_SPILL_H
#define DEVICE_SPILL_H

#include "device/pool.h"

// Moves out what was used longest ago until `capacity` more bytes fit, or one that left had as
// many: then its memory is `*out`, on no list, which otherwise stays as it is.
// STATUS_MEMORY when all that may leave has left.
Status spill_make_room(Pool *pool, size_t capacity, Buffer **out) MUST_USE;
// A buffer that is away from its birth, because the device has no room for it.
// STATUS_MEMORY without a message where it cannot be away either.
Status spill_bear(Pool *pool, size_t bytes, Buffer **out) MUST_USE;
// Brings a buffer back, or, where it does not fit, makes it usable in place until spill_leave.
// STATUS_MEMORY when neither is possible.
Status spill_use(Buffer *buffer) MUST_USE;
// `status`, or what went wrong with what is left.
Status spill_leave(Buffer *buffer, Status status) MUST_USE;
// Bytes of a buffer that is away come to the device, or go back there.
typedef struct SpillPart {
    Buffer *whole;
    size_t offset; // of it
    Buffer *window;
    size_t at; // of the window
    size_t bytes;
} SpillPart;
Status spill_move_part(const SpillPart *part, bool in) MUST_USE;
// A buffer on the device leaves it. STATUS_MEMORY without a message when it has no place to go to.
Status spill_move_out(Buffer *buffer) MUST_USE;
// What was known of the results of a kernel that is about to run holds no more.
void spill_change_outputs(const KernelCall *call);
// spill_use for all that a kernel reads and writes.
Status spill_prepare(const KernelCall *call) MUST_USE;
Status spill_finish(const KernelCall *call, Status status) MUST_USE;
// The bytes of a buffer that is away are wanted no more.
void spill_forget(Pool *pool, Buffer *buffer);
// What a buffer that has come back was copied to is given back: it changes, or ends.
void spill_drop_copy(Pool *pool, Buffer *buffer);
// Gives a forgotten buffer the memory of another, whose one reference is taken.
Status spill_refill(Buffer *buffer, Buffer *made) MUST_USE;
// The bytes of a buffer that has a keeper go back to the pool.
Status spill_give_up(Buffer *buffer) MUST_USE;
// Whether it is an operand of the kernel that is about to run.
bool spill_is_in_use(const Buffer *buffer);
// What is away and in a file begins to come back.
void spill_expect(const Buffer *buffer);
// How many bytes can be away, as far as one can know before.
uint64_t spill_room(const Device *device);
void spill_close(Pool *pool);

#endif
