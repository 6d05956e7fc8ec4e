// Bytes of the host that go to and from a device while the host goes on: page-locked, where the
// device can copy by itself; elsewhere a copy is done when it has been asked for. What is released
// serves the next one of about its size, until the device is closed.
#ifndef DEVICE_STAGING_H
#define DEVICE_STAGING_H

#include "device/buffer.h"

typedef struct Staging Staging;

struct StagingCopy {
    Buffer *buffer;
    size_t offset; // in the buffer
    size_t at;     // in the staging
    size_t bytes;
};

// `bytes` bytes, contents undefined. Nothing that was asked of it before is under way.
Staging *staging_new(Device *device, size_t bytes);
void staging_release(Staging *staging); // NULL is allowed
// The same where others may read its bytes for as long as the process runs.
void staging_abandon(Staging *staging);
// The host writes and reads them while no copy is under way.
char *staging_bytes(const Staging *staging);
// Asks for a copy from a buffer, or to one, after the work that is queued by now. Those to one
// staging do not overlap.
Status staging_read(Staging *staging, const StagingCopy *copy) MUST_USE;
Status staging_write(Staging *staging, const StagingCopy *copy) MUST_USE;
// Whether all of them are done. STATUS_DEVICE, STATUS_INTERRUPT.
Status staging_test(Staging *staging, bool *done) MUST_USE;
Status staging_wait(Staging *staging) MUST_USE;
// Before the device ends.
void staging_close(Device *device);

#endif
