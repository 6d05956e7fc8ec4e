// The pool: size classes, the cache of returned buffers with its limits, and what happens when the
// device refuses memory. Knows buffers as bytes; references are counted in buffer.c.
#include "device/pool.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/runtime.h"
#include "device/account.h"
#include "device/cpu/cpu.h"
#include "device/foretell.h"
#include "device/report.h"
#include "device/spill.h"
#include "device/statistics.h"
#include "device/timeline.h"

enum { CLASS_BYTES_MIN = 256, CLASS_BYTES_SMALL_MAX = 64 << 20, CLASS_LARGE_STEP_BYTES = 4 << 20 };
enum { UNTOLD_BYTES = 1 << 16, TIMED_BYTES = 1 << 18 };
enum { OWN_PARTS = 8 }; // of the memory that a device has of its own, the pool keeps one
enum {
    RESERVE_BYTES = 256 << 20, // of what a device has left: for what is not of the pool
    RESERVE_PARTS = 16,        // or, of a small device, one of its parts
    LOOK_PARTS = 4,            // after one of the parts of what is left it is asked again
    LOOK_FIRST_PARTS = 64,     // before one of its own it is not asked
    LARGE_PARTS = 8,           // of the limit: a program that takes one is foretold
};

void pool_set_collector(void (*collect)(void)) {
    runtime_current->devices->collect = collect;
}

// A class is (4 + quarter + 1) quarters of the power of two below it.
static inline int class_list(size_t bytes, size_t *capacity) {
    if (bytes <= CLASS_BYTES_MIN) {
        *capacity = CLASS_BYTES_MIN;
        return 0;
    }
    if (UNLIKELY(bytes > CLASS_BYTES_SMALL_MAX)) {
        *capacity = (bytes + CLASS_LARGE_STEP_BYTES - 1) & ~(size_t)(CLASS_LARGE_STEP_BYTES - 1);
        return POOL_LARGE;
    }
    size_t last = bytes - 1;
    int power = 63 - __builtin_clzll(last);
    int quarter = (int)(last >> (power - 2)) & 3;
    *capacity = (size_t)(quarter + 5) << (power - 2);
    return (power - 8) * 4 + quarter + 1;
}

size_t pool_class_bytes(size_t bytes) {
    size_t capacity;
    class_list(bytes, &capacity);
    return capacity;
}

void pool_set_foresight(const Foresight *foresight) {
    runtime_current->devices->foresight = *foresight;
}

void pool_set_forgetting(bool (*may_forget)(Buffer *buffer)) {
    runtime_current->devices->may_forget = may_forget;
}

// --- lists ---------------------------------------------------------------------------------------

static void pool_list_remove(PoolList *list, Buffer *buffer) {
    if (buffer->previous)
        buffer->previous->next = buffer->next;
    else
        list->newest = buffer->next;
    if (buffer->next)
        buffer->next->previous = buffer->previous;
    else
        list->oldest = buffer->previous;
}

static void pool_list_push(PoolList *list, Buffer *buffer) {
    buffer->previous = NULL;
    buffer->next = list->newest;
    if (list->newest)
        list->newest->previous = buffer;
    else
        list->oldest = buffer;
    list->newest = buffer;
}

static void cache_remove(Pool *pool, int list, Buffer *buffer) {
    pool_list_remove(&pool->cached[list], buffer);
    ASSERT(pool->statistics.cached_bytes >= buffer->capacity);
    pool->statistics.cached_bytes -= buffer->capacity;
    ASSERT(pool->statistics.cached_buffers > 0);
    pool->statistics.cached_buffers--;
}

static void free_buffer(Pool *pool, Buffer *buffer) {
    pool->device->backend->memory_free(pool->device, buffer->handle, buffer->capacity);
    free(buffer);
}

static void evict(Pool *pool, int list) {
    ASSERT(list >= 0); // bytes are counted as cached, so something is
    Buffer *buffer = pool->cached[list].oldest;
    ASSERT(buffer != NULL);
    cache_remove(pool, list, buffer);
    pool->statistics.evictions++;
    if (UNLIKELY(pool->settings.debug_memory)) pool_debug(pool, "evict", buffer);
    free_buffer(pool, buffer);
}

// The list whose oldest buffer was returned first of all; -1 when nothing is cached.
static int oldest_list(const Pool *pool) {
    int found = -1;
    for (int list = 0; list < POOL_LISTS; list++) {
        const Buffer *oldest = pool->cached[list].oldest;
        if (oldest && (found < 0 || oldest->stamp < pool->cached[found].oldest->stamp))
            found = list;
    }
    return found;
}

// Evicts the least recently used until at most `bytes` are cached.
static void pool_trim(Pool *pool, uint64_t bytes) {
    while (pool->statistics.cached_bytes > bytes) evict(pool, oldest_list(pool));
}

// --- return --------------------------------------------------------------------------------------

void pool_return(Pool *pool, Buffer *buffer) {
    uint64_t limit = pool->settings.buffer_max_bytes;
    size_t capacity;
    int list = class_list(buffer->capacity, &capacity);
    ASSERT(capacity == buffer->capacity); // whoever takes it next goes by the list
    if (UNLIKELY(buffer->capacity > limit)) {
        pool->statistics.evictions++;
        if (pool->settings.debug_memory) pool_debug(pool, "evict", buffer);
        free_buffer(pool, buffer);
        return;
    }
    pool_trim(pool, limit - buffer->capacity);
    if (UNLIKELY(pool->statistics.cached_buffers >= POOL_CACHED_BUFFERS_MAX))
        evict(pool, oldest_list(pool));
    buffer->stamp = pool->stamp++;
    buffer->idle_since = pool->misses;
    pool_list_push(&pool->cached[list], buffer);
    pool->statistics.cached_bytes += buffer->capacity;
    pool->statistics.cached_buffers++;
}

// --- acquire -------------------------------------------------------------------------------------

static Buffer *take_cached(Pool *pool, int list, size_t capacity) {
    Buffer *buffer = pool->cached[list].newest;
    if (list == POOL_LARGE)
        while (buffer && buffer->capacity != capacity) buffer = buffer->next;
    if (buffer) cache_remove(pool, list, buffer);
    return buffer;
}

static uint64_t taken_bytes(const Pool *pool) {
    return pool->live_capacity + pool->statistics.cached_bytes;
}

// What others have taken meanwhile counts: the limit is what there is, not what there was.
static void look(Pool *pool) {
    const Device *device = pool->device;
    uint64_t taken = taken_bytes(pool), left = device->backend->available(device);
    uint64_t reserve = device->own_bytes / RESERVE_PARTS;
    if (reserve > RESERVE_BYTES) reserve = RESERVE_BYTES;
    left = left > reserve ? left - reserve : 0;
    bool less = device->memory_limit == 0 || taken + left < device->memory_limit;
    pool->limit = less ? taken + left : device->memory_limit;
    pool->look_above = taken + left / LOOK_PARTS;
}

static Status ask_device(Pool *pool, size_t capacity, Buffer **out) {
    Device *device = pool->device;
    uint64_t taken = taken_bytes(pool);
    if (UNLIKELY(taken + capacity > pool->look_above)) look(pool);
    if (pool->limit > 0 && !device->foretold &&
        (taken > pool->limit || capacity > pool->limit - taken))
        return STATUS_MEMORY;
    void *handle;
    Status status = device->backend->memory_allocate(device, capacity, &handle);
    if (status == STATUS_MEMORY && pool->spill.active) { // what has left goes when it was copied
        TRY(device->backend->wait(device));
        status = device->backend->memory_allocate(device, capacity, &handle);
    }
    if (status == STATUS_MEMORY) pool->limit = taken; // the device knows best
    if (status != STATUS_OK) return status;
    Buffer *buffer = memory_allocate_zeroed(1, sizeof *buffer);
    buffer->device = device;
    buffer->handle = handle;
    buffer->capacity = capacity;
    *out = buffer;
    return STATUS_OK;
}

// What is cached but was of no use to the last allocations makes room for what is.
static void evict_idle(Pool *pool) {
    pool->misses++;
    int list = oldest_list(pool);
    if (list >= 0 && pool->misses - pool->cached[list].oldest->idle_since > POOL_IDLE_MISSES_MAX)
        evict(pool, list);
}

// What is used least recently leaves. Where that frees memory, the queued work that still uses it
// is waited for.
static Status ask_after_moving(Pool *pool, size_t capacity, Buffer **out) {
    if (pool->settings.device_bytes > 0) return STATUS_MEMORY;
    TRY(spill_make_room(pool, capacity, out));
    if (*out) return STATUS_OK;
    TRY(pool->device->backend->wait(pool->device));
    return ask_device(pool, capacity, out);
}

// The device refused: its pending work may hold memory, then the cache does, then what may be moved
// out, then garbage.
static Status ask_again(Pool *pool, size_t capacity, Buffer **out) {
    bool first = !pool->spill.active;
    uint64_t limit = pool->limit, wanted = pool->live_capacity + capacity;
    // It will refuse often: only as much of the cache goes as is needed, and where that is nothing,
    // queued work has nothing to give back.
    uint64_t kept = !first && limit > wanted ? limit - wanted : 0;
    if (first || pool->statistics.cached_bytes > kept) {
        TRY(pool->device->backend->wait(pool->device));
        pool->statistics.waits++;
        pool_trim(pool, kept);
    }
    Status status = ask_device(pool, capacity, out);
    if (status == STATUS_MEMORY) status = ask_after_moving(pool, capacity, out);
    void (*collect)(void) = runtime_current->devices->collect;
    if (status != STATUS_MEMORY || !collect || !first) return status;
    collect();
    pool_trim(pool, 0);
    status = ask_device(pool, capacity, out);
    return status == STATUS_MEMORY ? ask_after_moving(pool, capacity, out) : status;
}

static void note_large(Pool *pool, size_t capacity) {
    Devices *devices = runtime_current->devices;
    if (!devices->foresight.large || pool->device != devices->by_default || pool->limit == 0)
        return;
    pool->foresees = taken_bytes(pool) + capacity > pool->limit / LARGE_PARTS;
}

static Status foresee(Pool *pool) {
    Foresight *foresight = &runtime_current->devices->foresight;
    Status (*large)(void *context, uint64_t limit) = foresight->large;
    foresight->large = NULL;
    pool->foresees = false;
    return large(foresight->context, pool->limit);
}

static Status take_new(Pool *pool, size_t capacity, Buffer **out) {
    Buffer *buffer = NULL;
    evict_idle(pool);
    note_large(pool, capacity);
    Status status = memory_refuses(capacity) ? STATUS_OK : ask_device(pool, capacity, &buffer);
    if (status == STATUS_MEMORY) status = ask_again(pool, capacity, &buffer);
    if (status == STATUS_OK && !buffer) status = STATUS_MEMORY; // refused for a test
    if (status != STATUS_OK) return status;
    pool->statistics.allocations++;
    *out = buffer;
    return STATUS_OK;
}

static inline Status take_room(Pool *pool, size_t bytes, Buffer **out) {
    if (UNLIKELY(bytes > PTRDIFF_MAX - CLASS_LARGE_STEP_BYTES)) return STATUS_MEMORY;
    size_t capacity;
    int list = class_list(bytes, &capacity);
    Buffer *buffer = take_cached(pool, list, capacity);
    if (LIKELY(buffer != NULL)) {
        pool->statistics.reuses++;
    } else {
        Status status = take_new(pool, capacity, &buffer);
        if (status != STATUS_OK) return status;
    }
    if (UNLIKELY(pool->device->foretold))
        pool->device->backend->memory_taken(buffer->handle, bytes);
    *out = buffer;
    return STATUS_OK;
}

Status pool_acquire_room(Pool *pool, size_t bytes, Buffer **out) {
    return take_room(pool, bytes, out);
}

Status pool_acquire(Pool *pool, size_t bytes, const BufferLabel *label, Buffer **out) {
    Status status = take_room(pool, bytes, out);
    if (UNLIKELY(pool->foresees)) {
        Status foreseen = foresee(pool);
        if (foreseen != STATUS_OK && status == STATUS_OK) pool_return(pool, *out);
        TRY(foreseen);
    }
    if (LIKELY(status != STATUS_MEMORY)) return status;
    bool possible = pool->spill.active && bytes <= PTRDIFF_MAX - CLASS_LARGE_STEP_BYTES;
    if (possible) status = spill_bear(pool, bytes, out);
    return status == STATUS_MEMORY ? report_refusal(pool, bytes, label) : status;
}

// --- live buffers --------------------------------------------------------------------------------

static void link_live(Pool *pool, Buffer *buffer) {
    Buffer **first = buffer->away ? &pool->away : &pool->live;
    buffer->previous = NULL;
    buffer->next = *first;
    if (*first)
        (*first)->previous = buffer;
    else if (!buffer->away)
        pool->live_oldest = buffer;
    *first = buffer;
}

static void unlink_live(Pool *pool, Buffer *buffer) {
    if (buffer->previous)
        buffer->previous->next = buffer->next;
    else if (buffer->away)
        pool->away = buffer->next;
    else
        pool->live = buffer->next;
    if (buffer->next)
        buffer->next->previous = buffer->previous;
    else if (!buffer->away)
        pool->live_oldest = buffer->previous;
}

// Between two moments that a timeline knows, small changes are not told apart.
static void tell(Timeline *timeline, PoolOrigin *account) {
    uint64_t more = account->live_bytes - account->told_bytes;
    if (account->told_at == timeline->last && more + UNTOLD_BYTES < 2 * UNTOLD_BYTES) return;
    if (more + TIMED_BYTES >= 2 * TIMED_BYTES) timeline_look(timeline);
    timeline_hold(timeline, account->origin, account->live_bytes);
    account->told_bytes = account->live_bytes;
    account->told_at = timeline->last;
}

static inline void tell_timeline(PoolOrigin *account) {
    Timeline *timeline = timeline_current();
    if (UNLIKELY(timeline != NULL)) tell(timeline, account);
}

void pool_tell_timeline(Pool *pool) {
    for (size_t i = 0; i < pool->accounts.slot_count; i++) {
        PoolOrigin *account = pool->accounts.slots[i];
        if (!account || account->live_bytes == account->told_bytes) continue;
        timeline_hold(timeline_current(), account->origin, account->live_bytes);
        account->told_bytes = account->live_bytes;
    }
}

static void count_purpose(Pool *pool, BufferPurpose purpose, uint64_t bytes) {
    PoolOrigin *account = &pool->purposes[purpose];
    uint64_t *most = &pool->purposes_most[purpose];
    account_add(&pool->accounts, account, bytes);
    if (account->live_bytes > *most) *most = account->live_bytes;
}

static inline void count_live(Pool *pool, Buffer *buffer) {
    PoolStatistics *statistics = &pool->statistics;
    account_add(&pool->accounts, buffer->held, buffer->bytes);
    if (UNLIKELY(buffer->purpose != PURPOSE_RESULT))
        count_purpose(pool, buffer->purpose, buffer->bytes);
    tell_timeline(buffer->held);
    pool->live_capacity += buffer->capacity;
    statistics->live_buffers++;
    statistics->live_bytes += buffer->bytes;
    ASSERT(statistics->live_bytes <= pool->live_capacity);
    if (statistics->live_bytes > statistics->peak_bytes) {
        statistics->peak_bytes = statistics->live_bytes;
        statistics->peak_origin = buffer->origin;
        pool->accounts.peak_epoch++;
    }
}

static inline void uncount_live(Pool *pool, Buffer *buffer) {
    account_subtract(&pool->accounts, buffer->held, buffer->bytes);
    if (UNLIKELY(buffer->purpose != PURPOSE_RESULT))
        account_subtract(&pool->accounts, &pool->purposes[buffer->purpose], buffer->bytes);
    tell_timeline(buffer->held);
    ASSERT(pool->live_capacity >= buffer->capacity);
    pool->live_capacity -= buffer->capacity;
    ASSERT(pool->statistics.live_buffers > 0);
    pool->statistics.live_buffers--;
    ASSERT(pool->statistics.live_bytes >= buffer->bytes);
    pool->statistics.live_bytes -= buffer->bytes;
}

void pool_set_away(Pool *pool, Buffer *buffer, bool away) {
    unlink_live(pool, buffer);
    buffer->away = away;
    link_live(pool, buffer);
    if (away) {
        uncount_live(pool, buffer);
        pool->statistics.away_bytes += buffer->bytes;
    } else {
        ASSERT(pool->statistics.away_bytes >= buffer->bytes);
        pool->statistics.away_bytes -= buffer->bytes;
        count_live(pool, buffer);
    }
}

void pool_set_purpose(Pool *pool, Buffer *buffer, BufferPurpose purpose) {
    bool counts = !buffer->away; // only what a keeper brings is ever away while foretelling
    if (counts && buffer->purpose != PURPOSE_RESULT)
        account_subtract(&pool->accounts, &pool->purposes[buffer->purpose], buffer->bytes);
    if (counts && purpose != PURPOSE_RESULT) count_purpose(pool, purpose, buffer->bytes);
    buffer->purpose = purpose;
}

void pool_touch(Pool *pool, Buffer *buffer) {
    unlink_live(pool, buffer);
    link_live(pool, buffer);
}

void pool_enter_live(Pool *pool, Buffer *buffer) {
    ASSERT(pool->device->runtime == runtime_current);
    buffer->turn = pool->spill.turn;
    link_live(pool, buffer);
    if (buffer->import.release) {
        pool->statistics.mapped_bytes += buffer->bytes;
        return;
    }
    buffer->held = account_find(&pool->accounts, buffer->origin);
    if (UNLIKELY(buffer->away))
        pool->statistics.away_bytes += buffer->bytes;
    else
        count_live(pool, buffer);
}

void pool_begin(Pool *pool, Buffer *buffer, size_t bytes) {
    ASSERT(buffer->capacity >= bytes && !buffer->companion && !buffer->purged);
    atomic_store_explicit(&buffer->refs, 1, memory_order_relaxed);
    buffer->bytes = bytes;
    buffer->origin = origin_current;
    buffer->resident = false;
    buffer->purpose = PURPOSE_RESULT;
    buffer->backward_uses = 0;
    pool_enter_live(pool, buffer);
}

Status pool_acquire_window(Pool *pool, size_t bytes, Buffer **out) {
    TRY(pool_acquire_room(pool, bytes, out));
    (*out)->label.rank = -1;
    pool_begin(pool, *out, bytes);
    return STATUS_OK;
}

void pool_leave_live(Pool *pool, Buffer *buffer) {
    unlink_live(pool, buffer);
    if (buffer->import.release) {
        ASSERT(pool->statistics.mapped_bytes >= buffer->bytes);
        pool->statistics.mapped_bytes -= buffer->bytes;
        return;
    }
    if (UNLIKELY(buffer->away))
        pool->statistics.away_bytes -= buffer->bytes;
    else
        uncount_live(pool, buffer);
}

void pool_release_import(Pool *pool, Buffer *buffer) {
    const DeviceBackend *backend = pool->device->backend;
    if (backend->host_release) backend->host_release(pool->device, buffer->handle);
    buffer->import.release(buffer->import.owner);
}

uint64_t pool_purge(Pool *pool) {
    uint64_t bytes = 0;
    while (pool->live || pool->away) {
        Buffer *buffer = pool->live ? pool->live : pool->away;
        pool_leave_live(pool, buffer);
        if (pool->settings.debug_memory) pool_debug(pool, "purge", buffer);
        bytes += buffer->bytes;
        if (buffer->copied) spill_drop_copy(pool, buffer);
        if (buffer->import.release)
            pool_release_import(pool, buffer);
        else if (buffer->away)
            spill_forget(pool, buffer);
        else
            pool->device->backend->memory_free(pool->device, buffer->handle, buffer->capacity);
        buffer->handle = NULL;
        buffer->purged = true;
        buffer->next = pool->purged;
        pool->purged = buffer;
    }
    return bytes;
}

// --- the pool as a whole -------------------------------------------------------------------------

uint64_t pool_share(const Device *device, const DeviceSettings *settings) {
    uint64_t limit = settings->buffer_max_bytes, share = device->own_bytes / OWN_PARTS;
    return settings->has_buffer_max || !device->separate || share < limit ? limit : share;
}

Pool *pool_new(Device *device, const DeviceSettings *settings) {
    Pool *pool = memory_allocate_zeroed(1, sizeof *pool);
    pool->device = device;
    pool->settings = *settings;
    pool->limit = device->memory_limit;
    bool asks = device->backend->available && device->own_bytes > 0 && !device->foretold;
    pool->look_above = asks ? device->own_bytes / LOOK_FIRST_PARTS : UINT64_MAX;
    return pool;
}

void pool_destroy(Pool *pool) {
    pool_purge(pool);
    ASSERT(pool->statistics.live_buffers == 0 && pool->statistics.live_bytes == 0);
    ASSERT(pool->live_capacity == 0 && pool->statistics.mapped_bytes == 0);
    for (int list = 0; list < POOL_LISTS; list++) {
        while (pool->cached[list].newest) {
            Buffer *buffer = pool->cached[list].newest;
            cache_remove(pool, list, buffer);
            free_buffer(pool, buffer);
        }
    }
    ASSERT(pool->statistics.cached_buffers == 0 && pool->statistics.cached_bytes == 0);
    while (pool->purged) {
        Buffer *next = pool->purged->next;
        free(pool->purged);
        pool->purged = next;
    }
    account_free(&pool->accounts);
    spill_close(pool);
    free(pool);
}

PoolStatistics pool_statistics(const Device *device) {
    return device->pool->statistics;
}

// The end of a class that its buffer does not fill has not been touched.
static void add_memory(const Buffer *first, bool live, PoolMemory *out) {
    for (const Buffer *buffer = first; buffer; buffer = buffer->next) {
        bool large = buffer->capacity >= CPU_MAPPED_BYTES_MIN;
        if (buffer->import.release) continue;
        if (large)
            out->large_bytes += live ? buffer->bytes : buffer->capacity;
        else
            out->small_bytes += buffer->capacity;
    }
}

void pool_memory(const Device *device, PoolMemory *out) {
    Pool *pool = device->pool;
    *out = (PoolMemory){0};
    add_memory(pool->live, true, out);
    for (int list = 0; list < POOL_LISTS; list++) add_memory(pool->cached[list].newest, false, out);
}

void pool_clear_cache(Device *device) {
    pool_trim(device->pool, 0);
}

uint64_t pool_most_bytes(const Pool *pool) {
    uint64_t peak = pool->statistics.peak_bytes;
    return peak > pool->most_bytes ? peak : pool->most_bytes;
}

void pool_reset_peak(Device *device) {
    Pool *pool = device->pool;
    if (device->foretold) foretell_peak_reset(device);
    pool->most_bytes = pool_most_bytes(pool);
    pool->statistics.peak_bytes = pool->statistics.live_bytes;
    pool->statistics.peak_origin = origin_current;
    pool->accounts.peak_epoch++;
}
