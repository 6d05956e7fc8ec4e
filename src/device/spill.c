// What happens when live buffers do not fit on the device together: those that were used longest
// ago are moved out, to the host's memory or, where that is the device's own, to a file without a
// name, and come back before their next use. Knows neither classes nor the cache.
#define _GNU_SOURCE // O_TMPFILE
#include "device/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/kernel.h"
#include "device/report.h"

// --- where bytes go ------------------------------------------------------------------------------
// STATUS_MEMORY without a message where memory is short: the pool then refuses the request with its
// own.

static bool shares_host_memory(const Device *device) {
    return device->backend->host_import != NULL;
}

static int open_nameless(const char *folder) {
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) return file;
    Text path = {0};
    text_format(&path, "%s/tl-XXXXXX", folder);
    char *name = text_take(&path);
    file = mkostemp(name, O_CLOEXEC);
    if (file >= 0) unlink(name);
    free(name);
    return file;
}

static Status open_file(Spill *spill) {
    if (spill->file > 0) return STATUS_OK;
    const char *given = getenv("TMPDIR");
    const char *folders[] = {given && *given ? given : "/var/tmp", "/tmp", "."};
    for (size_t i = 0; i < sizeof folders / sizeof *folders && spill->file <= 0; i++)
        spill->file = open_nameless(folders[i]);
    return spill->file > 0 ? STATUS_OK : STATUS_MEMORY;
}

// A place in the file that serves a buffer of this capacity.
static uint64_t take_place(Spill *spill, uint64_t capacity) {
    for (size_t i = 0; i < spill->free.count; i++) {
        if (spill->free.items[i].bytes != capacity) continue;
        uint64_t offset = spill->free.items[i].offset;
        spill->free.items[i] = spill->free.items[--spill->free.count];
        return offset;
    }
    uint64_t offset = spill->end;
    spill->end += capacity;
    return offset;
}

static void give_place(Spill *spill, const Buffer *buffer) {
    SpillPlace place = {buffer->away_at, buffer->capacity};
    VECTOR_PUSH(&spill->free, place);
}

typedef ssize_t (*Transfer)(int file, void *bytes, size_t count, off_t offset);

static ssize_t transfer_write(int file, void *bytes, size_t count, off_t offset) {
    return pwrite(file, bytes, count, offset);
}

static Status transfer_all(Transfer transfer, int file, const Buffer *buffer) {
    for (size_t done = 0; done < buffer->bytes;) {
        ssize_t moved = transfer(file, (char *)buffer->handle + done, buffer->bytes - done,
                                 (off_t)(buffer->away_at + done));
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return STATUS_MEMORY;
        done += (size_t)moved;
    }
    return STATUS_OK;
}

static Status store(Pool *pool, Buffer *buffer) {
    const DeviceBackend *backend = pool->device->backend;
    if (shares_host_memory(pool->device)) {
        TRY(open_file(&pool->spill));
        buffer->away_at = take_place(&pool->spill, buffer->capacity);
        Status status = transfer_all(transfer_write, pool->spill.file, buffer);
        if (status != STATUS_OK) give_place(&pool->spill, buffer);
        return status;
    }
    buffer->away_bytes = malloc(buffer->bytes + 1);
    if (!buffer->away_bytes) return STATUS_MEMORY;
    Status status = STATUS_OK;
    if (buffer->bytes > 0)
        status = backend->download(pool->device, buffer, 0, buffer->away_bytes, buffer->bytes);
    if (status != STATUS_OK) free(buffer->away_bytes);
    return status;
}

static Status load(Pool *pool, Buffer *buffer) {
    if (buffer->bytes == 0) return STATUS_OK;
    if (shares_host_memory(pool->device)) {
        if (transfer_all(pread, pool->spill.file, buffer) == STATUS_OK) return STATUS_OK;
        return fail(STATUS_IO, "cannot read back what a limit has moved out: %s", strerror(errno));
    }
    return pool->device->backend->upload(pool->device, buffer, 0, buffer->away_bytes,
                                         buffer->bytes);
}

static void drop_stored(Pool *pool, Buffer *buffer) {
    if (shares_host_memory(pool->device))
        give_place(&pool->spill, buffer);
    else
        free(buffer->away_bytes);
    buffer->away_bytes = NULL;
}

// --- moving --------------------------------------------------------------------------------------

static bool is_operand(const KernelCall *call, const Buffer *buffer) {
    if (!call) return false;
    for (int i = 0; i < call->n_inputs; i++)
        if (call->inputs[i].view && call->inputs[i].view->buffer == buffer) return true;
    for (int i = 0; i < call->n_outputs; i++)
        if (call->outputs[i] && call->outputs[i]->buffer == buffer) return true;
    return false;
}

// What the running kernel uses stays, and what it has taken for itself.
static bool may_leave(const Pool *pool, const Buffer *buffer) {
    if (buffer->import.release || buffer->resident) return false;
    const Spill *spill = &pool->spill;
    return !spill->running || (buffer->turn != spill->turn && !is_operand(spill->running, buffer));
}

static Status move_out(Pool *pool, Buffer *buffer) {
    ASSERT(buffer->handle != NULL && !buffer->away);
    TRY(store(pool, buffer));
    pool->device->backend->memory_free(pool->device, buffer->handle, buffer->capacity);
    buffer->handle = NULL;
    pool_set_away(pool, buffer, true);
    pool->statistics.moved_out_bytes += buffer->bytes;
    pool->statistics.moves_out++;
    if (UNLIKELY(pool->settings.debug_memory)) pool_debug(pool, "move out", buffer);
    return STATUS_OK;
}

Status spill_make_room(Pool *pool, size_t capacity) {
    uint64_t limit = pool->device->memory_limit, freed = 0;
    if (limit > 0 && capacity > limit) return STATUS_MEMORY;
    pool->spill.active = true;
    Buffer *next = pool->live_oldest;
    for (;;) {
        uint64_t taken = pool->live_capacity + pool->statistics.cached_bytes;
        bool fits = limit > 0 ? taken <= limit && capacity <= limit - taken : freed >= capacity;
        if (fits) return STATUS_OK;
        while (next && !may_leave(pool, next)) next = next->previous;
        if (!next) return STATUS_MEMORY;
        Buffer *leaving = next;
        next = next->previous;
        freed += leaving->capacity;
        TRY(move_out(pool, leaving));
    }
}

Status spill_bring(Buffer *buffer) {
    Pool *pool = buffer->device->pool;
    pthread_mutex_lock(&pool->lock);
    Status status = STATUS_OK;
    Buffer *taken = NULL;
    if (buffer->away) status = pool_acquire(pool, buffer->capacity, &buffer->label, &taken);
    if (taken) {
        buffer->handle = taken->handle;
        status = load(pool, buffer);
        if (status == STATUS_OK) {
            free(taken);
            drop_stored(pool, buffer);
            pool_set_away(pool, buffer, false);
            pool->statistics.moved_in_bytes += buffer->bytes;
            if (UNLIKELY(pool->settings.debug_memory)) pool_debug(pool, "move in", buffer);
        } else {
            buffer->handle = NULL;
            pool_return(pool, taken);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

static Status bring_operand(Pool *pool, Buffer *buffer) {
    if (buffer->away) return spill_bring(buffer);
    if (!buffer->import.release) pool_touch(pool, buffer);
    return STATUS_OK;
}

Status spill_prepare(Pool *pool, const KernelCall *call) {
    pthread_mutex_lock(&pool->lock);
    Status status = STATUS_OK;
    for (int i = 0; i < call->n_inputs && status == STATUS_OK; i++)
        if (call->inputs[i].view) status = bring_operand(pool, call->inputs[i].view->buffer);
    for (int i = 0; i < call->n_outputs && status == STATUS_OK; i++)
        if (call->outputs[i]) status = bring_operand(pool, call->outputs[i]->buffer);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void spill_forget(Pool *pool, Buffer *buffer) {
    drop_stored(pool, buffer);
}

void spill_close(Pool *pool) {
    if (pool->spill.file > 0) close(pool->spill.file);
    VECTOR_FREE(&pool->spill.free);
}
