// What happens when live buffers do not fit on the device together: those that were used longest
// ago are moved out, to the host's memory or, where that is the device's own, to a file without a
// name, and come back before their next use. What does not fit even then, because a kernel needs
// too much at once, is used where it was moved to. Knows neither classes nor the cache.
#define _GNU_SOURCE // O_TMPFILE
#include "device/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/disk_room.h"
#include "base/runtime.h"
#include "device/cpu/available.h"
#include "device/kernel.h"
#include "device/report.h"

// Of places in the file: what maps one begins at a page. Of the host's memory some stays free.
// What is small shares memory with others, and is given back at once.
enum {
    PLACE_STEP_BYTES = 64 << 10,
    HOST_RESERVE_BYTES = 256 << 20,
    SMALL_PLACE_BYTES = 8 << 20,
};

// --- where bytes go ------------------------------------------------------------------------------
// STATUS_MEMORY without a message where memory is short: the pool then refuses the request with its
// own.

static uint64_t now_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool shares_host_memory(const Device *device) {
    return device->backend->host_import != NULL;
}

static int open_nameless(const char *folder) {
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) return file;
    Text path = {0};
    text_format(&path, "%s/tl-XXXXXX", folder);
    SCOPED_MEMORY char *name = text_take(&path);
    file = mkostemp(name, O_CLOEXEC);
    if (file >= 0) unlink(name);
    return file;
}

static const char *first_folder(void) {
    const char *given = getenv("TMPDIR");
    return given && *given ? given : "/var/tmp";
}

static Status open_file(Spill *spill) {
    if (spill->file > 0) return STATUS_OK;
    const char *folders[] = {first_folder(), "/tmp", "."};
    for (size_t i = 0; i < sizeof folders / sizeof *folders && spill->file <= 0; i++)
        spill->file = open_nameless(folders[i]);
    return spill->file > 0 ? STATUS_OK : STATUS_MEMORY;
}

static uint64_t host_room(const Device *device) {
    uint64_t left = cpu_available(device), reserve = HOST_RESERVE_BYTES;
    if (device->pool->settings.test_host_bytes > 0) {
        left = device->pool->settings.test_host_bytes;
        reserve = device->pool->statistics.away_bytes;
    }
    return left > reserve ? left - reserve : 0;
}

// The system grants more than it has, and ends a process that uses it: it is asked before, again
// after a quarter of what it had left.
static bool host_has(Pool *pool, uint64_t bytes) {
    Spill *spill = &pool->spill;
    if (bytes > spill->host_granted) {
        uint64_t left = host_room(pool->device);
        if (bytes > left) return false;
        spill->host_granted = left / 4 > bytes ? left / 4 : bytes;
    }
    spill->host_granted -= bytes;
    return true;
}

uint64_t spill_room(const Device *device) {
    if (!shares_host_memory(device)) return host_room(device);
    struct statvfs disk;
    struct rlimit file;
    uint64_t room = UINT64_MAX;
    if (statvfs(first_folder(), &disk) == 0) room = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (disk_room_left() < room) room = disk_room_left();
    return getrlimit(RLIMIT_FSIZE, &file) == 0 && file.rlim_cur < room ? file.rlim_cur : room;
}

// What a place is for: of the file whole steps, of the host's memory what the buffer has on the
// device.
static uint64_t place_bytes(const Pool *pool, const Buffer *buffer) {
    if (!shares_host_memory(pool->device)) return buffer->capacity;
    return (buffer->capacity + PLACE_STEP_BYTES - 1) & ~(uint64_t)(PLACE_STEP_BYTES - 1);
}

static bool take_free_place(Pool *pool, Buffer *buffer) {
    Spill *spill = &pool->spill;
    uint64_t bytes = place_bytes(pool, buffer);
    for (size_t i = 0; i < spill->free.count; i++) {
        if (spill->free.items[i].bytes != bytes) continue;
        buffer->away_at = spill->free.items[i].offset;
        buffer->away_memory = spill->free.items[i].memory;
        spill->free.items[i] = spill->free.items[--spill->free.count];
        return true;
    }
    return false;
}

static Status take_place(Pool *pool, Buffer *buffer) {
    if (take_free_place(pool, buffer)) return STATUS_OK;
    uint64_t end = pool->spill.end + place_bytes(pool, buffer);
    if (!disk_room_take((int64_t)pool->spill.end, (int64_t)end)) return STATUS_MEMORY;
    buffer->away_at = pool->spill.end;
    pool->spill.end = end;
    return STATUS_OK;
}

static void give_place(Pool *pool, const Buffer *buffer) {
    SpillPlace place = {buffer->away_at, place_bytes(pool, buffer), buffer->away_memory};
    VECTOR_PUSH(&pool->spill.free, place);
}

static void free_memory(Pool *pool, void *memory, uint64_t bytes) {
    pool->device->backend->memory_free(pool->device, memory, bytes);
}

static void drop_store(Pool *pool, Buffer *buffer) {
    ASSERT(shares_host_memory(pool->device) || buffer->away_memory);
    if (buffer->away_unlocked)
        free(buffer->away_memory);
    else if (shares_host_memory(pool->device) || buffer->capacity > SMALL_PLACE_BYTES)
        give_place(pool, buffer);
    else
        free_memory(pool, buffer->away_memory, buffer->capacity);
    buffer->away_memory = NULL;
    buffer->away_unlocked = false;
}

void spill_drop_copy(Pool *pool, Buffer *buffer) {
    ASSERT(buffer->copied && !buffer->away);
    buffer->copied = false;
    drop_store(pool, buffer);
}

// Those of buffers that have come back go as well: they are copied again when they leave.
static void free_places(Pool *pool) {
    for (Buffer *buffer = pool->live; buffer; buffer = buffer->next)
        if (buffer->copied) spill_drop_copy(pool, buffer);
    for (size_t i = 0; i < pool->spill.free.count; i++)
        if (pool->spill.free.items[i].memory)
            free_memory(pool, pool->spill.free.items[i].memory, pool->spill.free.items[i].bytes);
    pool->spill.free.count = 0;
}

static Status new_memory(Pool *pool, Buffer *buffer) {
    uint64_t locked = pool->settings.test_locked_bytes;
    if (locked > 0 && pool->statistics.away_bytes + buffer->capacity > locked) return STATUS_MEMORY;
    if (!host_has(pool, buffer->capacity)) return STATUS_MEMORY;
    return pool->device->backend->host_allocate(pool->device, buffer->capacity,
                                                &buffer->away_memory);
}

// The device copies to and from it, and its kernels can use it. To get it takes the system longer
// than to fill it, so that places stay until there is no room for others.
static Status take_memory(Pool *pool, Buffer *buffer) {
    if (take_free_place(pool, buffer)) return STATUS_OK;
    Status status = new_memory(pool, buffer);
    if (status != STATUS_MEMORY) return status;
    free_places(pool);
    TRY(pool->device->backend->wait(pool->device)); // work that is queued still used them
    return new_memory(pool, buffer);
}

// Drivers lock less than the host has: bytes that leave can wait in other memory, too, where no
// kernel can use them.
static Status take_unlocked(Pool *pool, Buffer *buffer) {
    if (shares_host_memory(pool->device) || !host_has(pool, buffer->capacity)) return STATUS_MEMORY;
    buffer->away_memory = memory_try_resize(NULL, buffer->capacity);
    buffer->away_unlocked = buffer->away_memory != NULL;
    return buffer->away_unlocked ? STATUS_OK : STATUS_MEMORY;
}

typedef ssize_t (*Transfer)(int file, void *bytes, size_t count, off_t offset);

static ssize_t transfer_write(int file, void *bytes, size_t count, off_t offset) {
    return pwrite(file, bytes, count, offset);
}

// What was never written reads as zeros.
static ssize_t transfer_read(int file, void *bytes, size_t count, off_t offset) {
    ssize_t moved = pread(file, bytes, count, offset);
    if (moved != 0) return moved;
    memset(bytes, 0, count);
    return (ssize_t)count;
}

static Status transfer_all(Transfer transfer, const SpillPart *part) {
    const Buffer *whole = part->whole;
    char *bytes = (char *)part->window->handle + part->at;
    for (size_t done = 0; done < part->bytes;) {
        ssize_t moved = transfer(whole->device->pool->spill.file, bytes + done, part->bytes - done,
                                 (off_t)(whole->away_at + part->offset + done));
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return STATUS_MEMORY;
        done += (size_t)moved;
    }
    return STATUS_OK;
}

static Status take_store(Pool *pool, Buffer *buffer) {
    if (shares_host_memory(pool->device)) {
        TRY(open_file(&pool->spill));
        return take_place(pool, buffer);
    }
    return take_memory(pool, buffer);
}

static Status store(const SpillPart *part) {
    const Buffer *whole = part->whole;
    Device *device = whole->device;
    if (part->bytes == 0) return STATUS_OK;
    if (shares_host_memory(device)) return transfer_all(transfer_write, part);
    if (whole->away_unlocked)
        return device->backend->download(device, part->window, part->at,
                                         (char *)whole->away_memory + part->offset, part->bytes);
    return device->backend->memory_copy(device, (MemoryPlace){part->window->handle, part->at},
                                        (MemoryPlace){whole->away_memory, part->offset},
                                        part->bytes);
}

static Status load(const SpillPart *part) {
    const Buffer *whole = part->whole;
    Device *device = whole->device;
    if (part->bytes == 0) return STATUS_OK;
    if (shares_host_memory(device)) {
        if (transfer_all(transfer_read, part) == STATUS_OK) return STATUS_OK;
        return fail(STATUS_IO, "cannot read back what a limit has moved out: %s", strerror(errno));
    }
    if (whole->away_unlocked)
        return device->backend->upload(device, part->window, part->at,
                                       (char *)whole->away_memory + part->offset, part->bytes);
    return device->backend->memory_copy(device, (MemoryPlace){whole->away_memory, part->offset},
                                        (MemoryPlace){part->window->handle, part->at}, part->bytes);
}

static SpillPart all_of(Buffer *buffer) {
    return (SpillPart){.whole = buffer, .window = buffer, .bytes = buffer->bytes};
}

static bool part_fits(const SpillPart *part) {
    const Buffer *whole = part->whole, *window = part->window;
    return part->offset + part->bytes <= whole->bytes && part->at + part->bytes <= window->bytes;
}

Status spill_move_part(const SpillPart *part, bool in) {
    Pool *pool = part->whole->device->pool;
    ASSERT(part_fits(part) && part->whole->away && !part->whole->forgotten);
    uint64_t begin = now_nanoseconds();
    Status status = in ? load(part) : store(part);
    pool->statistics.piece_bytes += part->bytes;
    pool->statistics.limit_nanoseconds += now_nanoseconds() - begin;
    return status;
}

// --- use where it is
// ------------------------------------------------------------------------------

// Blocks of the disk are taken before: without them a full one would end the process.
static Status map_place(Pool *pool, Buffer *buffer) {
    const Spill *spill = &pool->spill;
    off_t at = (off_t)buffer->away_at;
    if (spill_room(pool->device) < buffer->capacity) return STATUS_MEMORY;
    if (posix_fallocate(spill->file, at, (off_t)buffer->capacity) != 0) return STATUS_MEMORY;
    void *mapped = mmap(NULL, buffer->capacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                        spill->file, at);
    if (mapped == MAP_FAILED) return STATUS_MEMORY;
    buffer->handle = mapped;
    return STATUS_OK;
}

// Kernels may use what is lent, slowly; it takes no memory of the device.
static Status lend(Pool *pool, Buffer *buffer) {
    if (buffer->away_unlocked) return STATUS_MEMORY;
    if (shares_host_memory(pool->device))
        TRY(map_place(pool, buffer));
    else
        buffer->handle = buffer->away_memory;
    pool->statistics.lends++;
    pool->statistics.lent_bytes += buffer->bytes;
    if (UNLIKELY(pool->settings.debug_memory)) pool_debug(pool, "lend", buffer);
    return STATUS_OK;
}

static bool is_lent(const Buffer *buffer) {
    return buffer->away && buffer->handle && !buffer->resident;
}

static void end_lending(Pool *pool, Buffer *buffer) {
    if (shares_host_memory(pool->device)) munmap(buffer->handle, buffer->capacity);
    buffer->handle = NULL;
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

static Status copy_out(Pool *pool, Buffer *buffer) {
    Status status = take_store(pool, buffer);
    if (status == STATUS_MEMORY) status = take_unlocked(pool, buffer);
    TRY(status);
    SpillPart all = all_of(buffer);
    status = store(&all);
    if (status != STATUS_OK) drop_store(pool, buffer);
    TRY(status);
    pool->statistics.moved_out_bytes += buffer->bytes;
    pool->statistics.moves_out++;
    if (buffer->away_unlocked) pool->statistics.unlocked_bytes += buffer->bytes;
    return STATUS_OK;
}

static Status move_out(Pool *pool, Buffer *buffer) {
    ASSERT(buffer->handle != NULL && !buffer->away);
    if (!buffer->copied) TRY(copy_out(pool, buffer));
    buffer->copied = false;
    buffer->handle = NULL;
    pool_set_away(pool, buffer, true);
    if (UNLIKELY(pool->settings.debug_memory)) pool_debug(pool, "move out", buffer);
    return STATUS_OK;
}

// The tape knows how to make it again, and nobody else will read it.
static bool is_forgettable(const Pool *pool, Buffer *buffer) {
    if (!buffer->made_as || pool->device->runtime != runtime_current) return false;
    if (atomic_load(&buffer->refs) != (int)buffer->backward_uses) return false;
    return runtime_current->devices->may_forget(buffer);
}

static void forget(Pool *pool, Buffer *buffer) {
    buffer->handle = NULL;
    buffer->forgotten = true;
    pool_set_away(pool, buffer, true);
    pool->statistics.forgotten_bytes += buffer->bytes;
    pool->statistics.forgets++;
    if (UNLIKELY(pool->settings.debug_memory)) pool_debug(pool, "forget", buffer);
}

// Its memory is the caller's then; what is queued is done with it before whatever comes later.
static Status leave(Pool *pool, Buffer *buffer, void **memory) {
    uint64_t begin = now_nanoseconds();
    Status status = STATUS_OK;
    *memory = buffer->handle;
    if (!buffer->copied && is_forgettable(pool, buffer))
        forget(pool, buffer);
    else
        status = move_out(pool, buffer);
    pool->statistics.limit_nanoseconds += now_nanoseconds() - begin;
    return status;
}

Status spill_move_out(Buffer *buffer) {
    Pool *pool = buffer->device->pool;
    uint64_t begin = now_nanoseconds();
    void *memory = buffer->handle;
    TRY(move_out(pool, buffer));
    free_memory(pool, memory, buffer->capacity);
    pool->statistics.limit_nanoseconds += now_nanoseconds() - begin;
    return STATUS_OK;
}

static Buffer *hand_over(Pool *pool, void *memory, size_t capacity) {
    Buffer *taken = memory_allocate_zeroed(1, sizeof *taken);
    taken->device = pool->device;
    taken->handle = memory;
    taken->capacity = capacity;
    return taken;
}

// Memory that leaves and comes back all the time would go to the system and be taken, and made
// zeros, again each time.
static void keep_freed_memory(void) {
    enum { KEPT_BYTES = 16 << 20, FROM_SYSTEM_BYTES = 4 << 20 };
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    (void)mallopt(M_MMAP_THRESHOLD, FROM_SYSTEM_BYTES);
}

Status spill_make_room(Pool *pool, size_t capacity, Buffer **out) {
    uint64_t limit = pool->limit, freed = 0;
    if (!pool->spill.active) keep_freed_memory();
    pool->spill.active = pool->spill.watched = true;
    if (limit > 0 && capacity > limit) return STATUS_MEMORY;
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
        void *memory;
        TRY(leave(pool, leaving, &memory));
        bool same = leaving->capacity == capacity && (limit == 0 || taken <= limit);
        if (same) *out = hand_over(pool, memory, capacity);
        if (same) return STATUS_OK;
        free_memory(pool, memory, leaving->capacity);
    }
}

Status spill_bear(Pool *pool, size_t bytes, Buffer **out) {
    Buffer *buffer = memory_allocate_zeroed(1, sizeof *buffer);
    buffer->device = pool->device;
    buffer->bytes = bytes;
    buffer->capacity = pool_class_bytes(bytes);
    buffer->away = true;
    uint64_t own_bytes = pool->device->own_bytes;
    bool possible = own_bytes == 0 || buffer->capacity <= own_bytes;
    Status status = possible ? take_store(pool, buffer) : STATUS_MEMORY;
    if (status == STATUS_MEMORY && possible && !pool->spill.running)
        status = take_unlocked(pool, buffer);
    // What a kernel takes for itself is used at once.
    if (status == STATUS_OK && pool->spill.running) {
        status = lend(pool, buffer);
        if (status != STATUS_OK) drop_store(pool, buffer);
    }
    if (status == STATUS_OK)
        *out = buffer;
    else
        free(buffer);
    return status;
}

static Status bring(Pool *pool, Buffer *buffer) {
    Buffer *taken;
    TRY(pool_acquire_room(pool, buffer->capacity, &taken));
    buffer->handle = taken->handle;
    SpillPart all = all_of(buffer);
    Status status = load(&all);
    if (status != STATUS_OK) {
        buffer->handle = NULL;
        pool_return(pool, taken);
        return status;
    }
    free(taken);
    pool_set_away(pool, buffer, false);
    buffer->copied = !shares_host_memory(pool->device) && buffer->bytes > 0;
    if (!buffer->copied) drop_store(pool, buffer);
    pool->statistics.moved_in_bytes += buffer->bytes;
    if (UNLIKELY(pool->settings.debug_memory)) pool_debug(pool, "move in", buffer);
    return STATUS_OK;
}

static Status bring_or_lend(Pool *pool, Buffer *buffer) {
    if (!buffer->away) {
        if (!buffer->import.release) pool_touch(pool, buffer);
        return STATUS_OK;
    }
    if (buffer->handle) return STATUS_OK;
    if (buffer->keeper && buffer->forgotten) return buffer->keeper->bring(buffer->keeper, buffer);
    if (buffer->forgotten)
        return report_refusal(pool, buffer->bytes, &buffer->label); // making it again has failed
    uint64_t begin = now_nanoseconds();
    Status status = bring(pool, buffer);
    if (status == STATUS_MEMORY) status = lend(pool, buffer);
    pool->statistics.limit_nanoseconds += now_nanoseconds() - begin;
    return status == STATUS_MEMORY ? report_refusal(pool, buffer->bytes, &buffer->label) : status;
}

Status spill_use(Buffer *buffer) {
    return bring_or_lend(buffer->device->pool, buffer);
}

Status spill_leave(Buffer *buffer, Status status) {
    Pool *pool = buffer->device->pool;
    if (is_lent(buffer) && !pool->spill.running) end_lending(pool, buffer);
    return status;
}

static Buffer *operand(const KernelCall *call, int i) {
    const TensorView *view =
        i < call->n_inputs ? call->inputs[i].view : call->outputs[i - call->n_inputs];
    return view ? view->buffer : NULL;
}

void spill_change_outputs(const KernelCall *call) {
    for (int i = 0; i < call->n_outputs; i++) {
        Buffer *written = call->outputs[i] ? call->outputs[i]->buffer : NULL;
        if (!written) continue;
        buffer_made_as(written, NULL);
        if (written->copied) spill_drop_copy(written->device->pool, written);
    }
}

Status spill_prepare(const KernelCall *call) {
    Status status = STATUS_OK;
    for (int i = 0; i < call->n_inputs + call->n_outputs && status == STATUS_OK; i++)
        if (operand(call, i)) status = spill_use(operand(call, i));
    spill_change_outputs(call);
    return status;
}

Status spill_finish(const KernelCall *call, Status status) {
    for (int i = 0; i < call->n_inputs + call->n_outputs; i++)
        if (operand(call, i)) status = spill_leave(operand(call, i), status);
    return status;
}

void spill_forget(Pool *pool, Buffer *buffer) {
    if (buffer->handle) end_lending(pool, buffer);
    if (!buffer->forgotten) drop_store(pool, buffer);
}

// --- what the tape makes again -------------------------------------------------------------------

// Where memory was short again, the other one may be away itself.
static void take_place_of(Pool *pool, Buffer *buffer, Buffer *made) {
    bool away = made->away;
    pool_leave_live(pool, made);
    buffer->handle = made->handle;
    buffer->capacity = made->capacity;
    buffer->last_use = made->last_use;
    buffer->away_at = made->away_at;
    buffer->away_memory = made->away_memory;
    buffer->away_unlocked = made->away_unlocked;
    buffer->copied = made->copied;
    buffer->forgotten = false;
    if (!away) pool_set_away(pool, buffer, false);
}

Status spill_refill(Buffer *buffer, Buffer *made) {
    Pool *pool = buffer->device->pool;
    ASSERT(buffer->forgotten && !made->forgotten && buffer_is_unique(made));
    ASSERT(buffer->bytes == made->bytes && !made->companion);
    Status status =
        shares_host_memory(pool->device) ? STATUS_OK : pool->device->backend->wait(pool->device);
    take_place_of(pool, buffer, made);
    if (UNLIKELY(pool->settings.debug_memory)) pool_debug(pool, "remake", buffer);
    free(made);
    return status;
}

// --- what a keeper brings ------------------------------------------------------------------------

Status spill_give_up(Buffer *buffer) {
    Pool *pool = buffer->device->pool;
    pool->spill.watched = true;
    if (buffer->away) { // a limit has moved it out meanwhile
        spill_forget(pool, buffer);
        buffer->forgotten = true;
        return STATUS_OK;
    }
    // What is queued goes by the buffer, and the next to have this memory does not know of it.
    if (!shares_host_memory(pool->device)) TRY(pool->device->backend->wait(pool->device));
    if (buffer->copied) spill_drop_copy(pool, buffer);
    Buffer *memory = memory_allocate_zeroed(1, sizeof *memory);
    memory->device = buffer->device;
    memory->handle = buffer->handle;
    memory->capacity = buffer->capacity;
    memory->last_use = buffer->last_use;
    pool_set_away(pool, buffer, true);
    buffer->handle = NULL;
    buffer->forgotten = true;
    pool_return(pool, memory);
    return STATUS_OK;
}

bool spill_is_in_use(const Buffer *buffer) {
    return is_operand(buffer->device->pool->spill.running, buffer);
}

void spill_expect(const Buffer *buffer) {
    if (buffer->handle || buffer->forgotten) return;
    const Pool *pool = buffer->device->pool;
    if (shares_host_memory(pool->device))
        posix_fadvise(pool->spill.file, (off_t)buffer->away_at, (off_t)buffer->bytes,
                      POSIX_FADV_WILLNEED);
}

void spill_close(Pool *pool) {
    free_places(pool);
    if (pool->spill.file > 0) close(pool->spill.file);
    (void)disk_room_take((int64_t)pool->spill.end, 0);
    VECTOR_FREE(&pool->spill.free);
}
