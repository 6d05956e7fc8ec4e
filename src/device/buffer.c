// Buffers: references, import of host memory, bytes in and out. Where memory comes from and goes to
// is the pool's matter.
#include "device/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/file_map.h"
#include "base/memory.h"
#include "device/pool.h"
#include "device/report.h"
#include "device/spill.h"
#include "device/timeline.h"

enum { POISON_BYTES = 4096 };

static void set_label(Buffer *buffer, const BufferLabel *label) {
    buffer->label.rank = label ? label->rank : -1;
    if (!label) return;
    buffer->label.dtype = label->dtype;
    for (int i = 0; i < label->rank; i++) buffer->label.dims[i] = label->dims[i];
}

// All bits set is a NaN in every floating type, and -1 or the largest value in the others.
static Status poison(Buffer *buffer) {
    unsigned char ones[POISON_BYTES];
    memset(ones, 0xFF, sizeof ones);
    for (size_t at = 0; at < buffer->capacity; at += POISON_BYTES) {
        size_t left = buffer->capacity - at;
        TRY(buffer->device->backend->upload(buffer->device, buffer, at, ones,
                                            left < POISON_BYTES ? left : POISON_BYTES));
    }
    return STATUS_OK;
}

Status buffer_new(Device *device, size_t bytes, const BufferLabel *label, Buffer **out) {
    Pool *pool = device->pool;
    Buffer *buffer;
    uint64_t reuses = pool->statistics.reuses;
    Status status = pool_acquire(pool, bytes, label, &buffer);
    if (UNLIKELY(status != STATUS_OK)) return status;
    set_label(buffer, label);
    pool_begin(pool, buffer, bytes);
    if (UNLIKELY(pool->settings.debug_memory))
        pool_debug(pool, pool->statistics.reuses > reuses ? "reuse" : "allocate", buffer);
    if (UNLIKELY(pool->settings.poison)) {
        status = buffer->away ? spill_use(buffer) : STATUS_OK;
        if (status == STATUS_OK) status = spill_leave(buffer, poison(buffer));
        if (status != STATUS_OK) {
            buffer_release(buffer);
            return status;
        }
    }
    *out = buffer;
    return STATUS_OK;
}

static Status import_copy(Device *device, const void *memory, size_t bytes,
                          const BufferLabel *label, Buffer **out) {
    TRY(buffer_new(device, bytes, label, out));
    Status status = buffer_upload(*out, 0, memory, bytes);
    if (status != STATUS_OK) buffer_release(*out);
    return status;
}

Status buffer_import(Device *device, const HostMemory *memory, const BufferLabel *label,
                     Buffer **out) {
    Pool *pool = device->pool;
    if (!device->backend->host_import) {
        TRY(import_copy(device, memory->bytes, memory->count, label, out));
        memory->release(memory->owner);
        return STATUS_OK;
    }
    void *handle;
    TRY(device->backend->host_import(device, memory->bytes, memory->count, &handle));
    Buffer *buffer = memory_allocate_zeroed(1, sizeof *buffer);
    atomic_init(&buffer->refs, 1);
    buffer->device = device;
    buffer->handle = handle;
    buffer->bytes = buffer->capacity = memory->count;
    buffer->origin = origin_current;
    buffer->import = *memory;
    set_label(buffer, label);
    pool_enter_live(pool, buffer);
    if (pool->settings.debug_memory) pool_debug(pool, "map", buffer);
    *out = buffer;
    return STATUS_OK;
}

Buffer *buffer_retain(Buffer *buffer) {
    int before = atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
    ASSERT(before > 0);
    return buffer;
}

void buffer_set_companion(Buffer *buffer, void *companion, size_t bytes,
                          void (*release)(void *companion)) {
    ASSERT(!buffer->companion);
    buffer->companion = companion;
    buffer->companion_bytes = bytes;
    buffer->companion_release = release;
    buffer->device->pool->statistics.repacked_bytes += bytes;
}

static void release_companion(Buffer *buffer) {
    void *companion = buffer->companion;
    buffer->companion = NULL;
    buffer->device->pool->statistics.repacked_bytes -= buffer->companion_bytes;
    buffer->companion_release(companion);
}

// The last reference went: the bytes go back at once.
static void retire(Buffer *buffer) {
    Pool *pool = buffer->device->pool;
    if (UNLIKELY(buffer->companion)) release_companion(buffer);
    if (UNLIKELY(buffer->keeper)) buffer->keeper->end(buffer->keeper);
    buffer->keeper = NULL;
    if (UNLIKELY(buffer->made_as)) buffer_made_as(buffer, NULL);
    if (UNLIKELY(buffer->purged)) {
        // Its bytes are back already; the struct waits for the end of the pool.
        return;
    }
    pool_leave_live(pool, buffer);
    if (UNLIKELY(pool->settings.debug_memory)) pool_debug(pool, "release", buffer);
    if (UNLIKELY(buffer->copied)) spill_drop_copy(pool, buffer);
    bool imported = buffer->import.release != NULL;
    if (LIKELY(!imported && !buffer->away && !buffer->abandoned)) {
        pool_return(pool, buffer);
        return;
    }
    if (buffer->away) spill_forget(pool, buffer);
    if (imported) pool_release_import(pool, buffer);
    free(buffer);
}

void buffer_release(Buffer *buffer) {
    if (!buffer) return;
    int refs = atomic_load_explicit(&buffer->refs, memory_order_acquire);
    ASSERT(refs > 0);
    // A sole holder has nobody to race with, which saves the atomic subtraction.
    if (LIKELY(refs == 1))
        atomic_store_explicit(&buffer->refs, 0, memory_order_relaxed);
    else if (atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel) != 1)
        return;
    retire(buffer);
}

Status buffer_hold(Buffer *buffer) {
    if (buffer->away) TRY(spill_use(buffer));
    buffer->resident = true;
    return STATUS_OK;
}

void buffer_abandon(Buffer *buffer) {
    ASSERT(buffer->resident); // its address is known
    buffer->abandoned = true;
}

void buffer_note_purpose(Buffer *buffer, BufferPurpose purpose) {
    if (LIKELY(!buffer->device->foretold) || buffer->import.release) return;
    pool_set_purpose(buffer->device->pool, buffer, purpose);
}

void buffer_note_backward(Buffer *buffer, bool holds) {
    bool literal = !holds && buffer->backward_uses == 0; // it had no buffer when it was kept
    bool foretold = buffer->device->foretold;
    if (LIKELY(!foretold && !device_is_short(buffer->device)) || literal) return;
    buffer->backward_uses += holds ? 1 : UINT32_MAX;
    if (!foretold) return;
    bool taped = buffer->backward_uses > 0;
    if (buffer->purpose == (taped ? PURPOSE_RESULT : PURPOSE_TAPE))
        buffer_note_purpose(buffer, taped ? PURPOSE_TAPE : PURPOSE_RESULT);
}

void buffer_made_as(Buffer *buffer, Buffer **maker) {
    if (buffer->made_as) *buffer->made_as = NULL;
    buffer->made_as = maker;
}

Status buffer_refill(Buffer *buffer, Buffer *made) {
    return spill_refill(buffer, made);
}

Status buffer_give_up(Buffer *buffer) {
    ASSERT(buffer->keeper && !buffer->resident && !buffer->import.release && !buffer->companion);
    return buffer->forgotten ? STATUS_OK : spill_give_up(buffer);
}

Status buffer_bring(Buffer *buffer) {
    return buffer->forgotten ? buffer->keeper->bring(buffer->keeper, buffer) : STATUS_OK;
}

bool buffer_is_in_use(const Buffer *buffer) {
    return spill_is_in_use(buffer);
}

void buffer_expect(const Buffer *buffer) {
    if (buffer && buffer->away) spill_expect(buffer);
}

void buffer_leak(Buffer *buffer) {
    buffer_retain(buffer);
}

enum { SMALL_BYTES = 4096 };

typedef struct Transfer {
    TimelineTotal what;
    uint64_t begin;
    uint64_t times; // it stands for so many; 0: it is not timed
} Transfer;

// On a device that computes as it is told small ones take less than to look at the clock.
static Transfer transfer_begin(const Buffer *buffer, TimelineKind kind, size_t bytes) {
    Timeline *timeline = timeline_current();
    if (LIKELY(!timeline)) return (Transfer){0};
    bool small = bytes <= SMALL_BYTES && !buffer->device->times_itself;
    uint64_t times = small ? timeline_sample(timeline) : 1;
    if (times == 0) return (Transfer){0};
    const char *name = kind == TIMELINE_UPLOAD ? "upload" : "download";
    return (Transfer){{.kind = kind, .name = name, .origin = origin_current, .bytes = bytes},
                      timeline_now(),
                      times};
}

static void transfer_end(const Transfer *transfer) {
    if (LIKELY(transfer->times == 0)) return;
    timeline_add(timeline_current(), &transfer->what, transfer->begin, transfer->times);
}

Status buffer_upload(Buffer *buffer, size_t offset, const void *source, size_t bytes) {
    if (bytes == 0) return STATUS_OK; // an empty view may begin anywhere
    ASSERT(offset <= buffer->bytes && bytes <= buffer->bytes - offset);
    Pool *pool = buffer->device->pool;
    if (UNLIKELY(buffer->away)) TRY(spill_use(buffer));
    if (UNLIKELY(buffer->made_as)) buffer_made_as(buffer, NULL);
    if (UNLIKELY(buffer->copied)) spill_drop_copy(pool, buffer);
    pool->statistics.bytes_uploaded += bytes;
    Transfer transfer = transfer_begin(buffer, TIMELINE_UPLOAD, bytes);
    Status status = buffer->device->backend->upload(buffer->device, buffer, offset, source, bytes);
    if (UNLIKELY(buffer->away)) status = spill_leave(buffer, status);
    TRY(status);
    transfer_end(&transfer);
    return file_map_faults();
}

Status buffer_download(Buffer *buffer, size_t offset, void *target, size_t bytes) {
    if (bytes == 0) return STATUS_OK; // an empty view may begin anywhere
    ASSERT(offset <= buffer->bytes && bytes <= buffer->bytes - offset);
    Pool *pool = buffer->device->pool;
    if (UNLIKELY(buffer->away)) TRY(spill_use(buffer));
    pool->statistics.bytes_downloaded += bytes;
    Transfer transfer = transfer_begin(buffer, TIMELINE_DOWNLOAD, bytes);
    Status status =
        buffer->device->backend->download(buffer->device, buffer, offset, target, bytes);
    if (UNLIKELY(buffer->away)) status = spill_leave(buffer, status);
    TRY(status);
    transfer_end(&transfer);
    return file_map_faults();
}
