#include "device/staging.h"

#include <stdlib.h>

#include "base/memory.h"
#include "device/foretell.h"
#include "device/pool.h"
#include "device/spill.h"

// Where it begins is a multiple of what devices want; drivers advise against less than the other.
enum { PAGE_BYTES = 1 << 16, LEAST_BYTES = 1 << 20 };

struct Staging {
    Device *device;
    char *allocated, *bytes;
    size_t capacity;
    void *locked;    // of the device; NULL: it copies what it is told at once
    uint64_t serial; // of the last copy
    bool abandoned;  // its bytes stay when the device ends
    struct Staging *next;
};

static size_t rounded(size_t bytes) {
    return (bytes / LEAST_BYTES + 1) * LEAST_BYTES;
}

static bool is_idle(Staging *staging) {
    bool done = false;
    if (staging_test(staging, &done) != STATUS_OK) error_clear();
    return done;
}

// One of those that wait: of this size, or up to twice.
static Staging *take_kept(Device *device, size_t capacity) {
    for (Staging **link = &device->staging; *link; link = &(*link)->next) {
        Staging *kept = *link;
        bool fits =
            kept->capacity >= capacity && kept->capacity / 2 <= capacity && !kept->abandoned;
        if (!fits || !is_idle(kept)) continue;
        *link = kept->next;
        return kept;
    }
    return NULL;
}

Staging *staging_new(Device *device, size_t bytes) {
    size_t capacity = rounded(bytes);
    Staging *staging = take_kept(device, capacity);
    if (staging) return staging;
    staging = memory_allocate_zeroed(1, sizeof *staging);
    staging->device = device;
    staging->capacity = capacity;
    staging->allocated = memory_allocate(capacity + PAGE_BYTES);
    staging->bytes = staging->allocated + PAGE_BYTES - (uintptr_t)staging->allocated % PAGE_BYTES;
    const DeviceBackend *backend = device->backend;
    if (backend->host_lock &&
        backend->host_lock(device, staging->bytes, capacity, &staging->locked) != STATUS_OK)
        error_clear(); // it is slower without
    return staging;
}

void staging_release(Staging *staging) {
    if (!staging) return;
    staging->next = staging->device->staging;
    staging->device->staging = staging;
}

void staging_abandon(Staging *staging) {
    if (staging) staging->abandoned = true;
    staging_release(staging);
}

char *staging_bytes(const Staging *staging) {
    return staging->bytes;
}

// Whether the device copies by itself from or to a buffer.
static bool copies(const Staging *staging, const Buffer *buffer) {
    return staging->locked && buffer->handle && !buffer->away;
}

Status staging_read(Staging *staging, const StagingCopy *copy) {
    Buffer *buffer = copy->buffer;
    ASSERT(copy->at + copy->bytes <= staging->capacity);
    if (staging->device->foretold) return STATUS_OK; // nobody looks at it
    if (!copies(staging, buffer))
        return buffer_download(buffer, copy->offset, staging->bytes + copy->at, copy->bytes);
    if (copy->bytes == 0) return STATUS_OK;
    ASSERT(copy->offset + copy->bytes <= buffer->bytes);
    staging->device->pool->statistics.bytes_downloaded += copy->bytes;
    return staging->device->backend->host_copy(staging->device, staging->locked, copy, true,
                                               &staging->serial);
}

Status staging_write(Staging *staging, const StagingCopy *copy) {
    Buffer *buffer = copy->buffer;
    ASSERT(copy->at + copy->bytes <= staging->capacity);
    foretell_forget(buffer);
    if (staging->device->foretold) return STATUS_OK;
    if (!copies(staging, buffer))
        return buffer_upload(buffer, copy->offset, staging->bytes + copy->at, copy->bytes);
    if (copy->bytes == 0) return STATUS_OK;
    ASSERT(copy->offset + copy->bytes <= buffer->bytes);
    if (buffer->made_as) buffer_made_as(buffer, NULL);
    if (buffer->copied) spill_drop_copy(buffer->device->pool, buffer);
    staging->device->pool->statistics.bytes_uploaded += copy->bytes;
    return staging->device->backend->host_copy(staging->device, staging->locked, copy, false,
                                               &staging->serial);
}

Status staging_test(Staging *staging, bool *done) {
    *done = true;
    if (staging->serial == 0) return STATUS_OK;
    return staging->device->backend->host_copied(staging->device, staging->serial, false, done);
}

Status staging_wait(Staging *staging) {
    bool done;
    if (staging->serial == 0) return STATUS_OK;
    return staging->device->backend->host_copied(staging->device, staging->serial, true, &done);
}

void staging_close(Device *device) {
    while (device->staging) {
        Staging *staging = device->staging;
        device->staging = staging->next;
        if (staging_wait(staging) != STATUS_OK) error_clear();
        if (staging->locked)
            device->backend->memory_free(device, staging->locked, staging->capacity);
        if (!staging->abandoned) free(staging->allocated);
        free(staging);
    }
}
