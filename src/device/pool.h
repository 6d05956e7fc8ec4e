// The pool's inside, shared by the files that make it up: buffer.c (references), pool.c (classes
// and cache), account.c (who holds what), report.c (words). Nothing outside this folder includes
// it. It needs no lock: of the threads of a runtime one at a time goes on.
#ifndef DEVICE_POOL_H
#define DEVICE_POOL_H

#include "base/memory.h"
#include "device/account.h"
#include "device/buffer.h"
#include "device/settings.h"

enum {
    POOL_SMALL_CLASSES = 73, // 256 B to 64 MiB in quarters of powers of two
    POOL_LARGE = 73,         // the list of everything larger, of mixed capacities
    POOL_LISTS,
    POOL_CACHED_BUFFERS_MAX = 4096,
    POOL_IDLE_MISSES_MAX = 64,
};

typedef struct PoolList {
    Buffer *newest, *oldest;
} PoolList;

// Free for what is moved out: a part of the pool's file, or memory of the host that the device
// knows.
typedef struct SpillPlace {
    uint64_t offset, bytes;
    void *memory; // NULL: of the file
} SpillPlace;

// Live buffers that were moved out because the device refused memory (spill.c).
typedef struct Spill {
    bool active;  // the device has refused: from then on the live list is in order of use
    bool watched; // buffers can be away: kernels ask for their operands
    const KernelCall *running;
    uint64_t turn; // counts kernels
    int file;      // 0: none is open
    uint64_t end;  // of what was ever used of it
    VECTOR(SpillPlace) free;
    uint64_t host_granted; // bytes that may move to the host before it is asked what it has left
} Spill;

struct Pool {
    Device *device;
    DeviceSettings settings;
    PoolStatistics statistics;
    uint64_t live_capacity; // bytes of the classes that live buffers occupy
    uint64_t limit;         // of live and cached bytes, as the device was last asked; 0: none
    uint64_t look_above;    // so many taken: it is asked again
    bool foresees;          // live and cached bytes have become many: foresight.large is to be told
    uint64_t most_bytes;    // of live ones, before the peak was reset
    uint64_t stamp;         // counts returns to the cache
    uint64_t misses;        // counts allocations that the cache could not serve
    // Buffers in use, imported ones included, without those that are away; the newest first.
    Buffer *live, *live_oldest;
    Buffer *away;
    Spill spill;
    Buffer *purged; // taken back while someone held them; their structs stay until the end
    PoolList cached[POOL_LISTS];
    PoolAccounts accounts;
    PoolOrigin purposes[PURPOSE_COUNT];    // of foretold devices; results have none
    uint64_t purposes_most[PURPOSE_COUNT]; // live at any moment
};

// A variable to which the runtime gives another value than the environment.
typedef struct SettingChoice {
    const char *variable; // its row of variables.def
    char *value;
} SettingChoice;

// Of a runtime; device.c, and what the layers above are asked: NULL, nobody.
struct Devices {
    Device *by_default;
    Device *replacement; // of the default, within `with device(...)`; NULL outside
    VECTOR(Device *) named;
    struct Foretelling *foretelling; // foretell.c; NULL: devices are real
    void (*collect)(void);
    Foresight foresight;
    bool (*may_forget)(Buffer *buffer);
    void (*describe_origin)(Text *out, Origin origin);
    VECTOR(SettingChoice) choices; // settings.c
};

Pool *pool_new(Device *device, const DeviceSettings *settings);
// The bytes that a pool of this device may keep: what the setting says, or, where it is unset and
// the device has memory of its own, at least an eighth of that.
uint64_t pool_share(const Device *device, const DeviceSettings *settings);
// Frees the cache and every buffer that is still alive.
void pool_destroy(Pool *pool);

// A buffer of the class that serves `bytes`, from the cache or the device. It is on no list when it
// is returned.
Status pool_acquire(Pool *pool, size_t bytes, const BufferLabel *label, Buffer **out) MUST_USE;
// The same where there is room or can be made. STATUS_MEMORY without a message.
Status pool_acquire_room(Pool *pool, size_t bytes, Buffer **out) MUST_USE;
// The same with one reference to it, live.
Status pool_acquire_window(Pool *pool, size_t bytes, Buffer **out) MUST_USE;
// The first reference to what was acquired, whose label is set.
void pool_begin(Pool *pool, Buffer *buffer, size_t bytes);
// A buffer that is on no list goes into the cache, or back to the device.
void pool_return(Pool *pool, Buffer *buffer);
// Onto and off the list of live buffers, with all accounts.
void pool_enter_live(Pool *pool, Buffer *buffer);
void pool_leave_live(Pool *pool, Buffer *buffer);
// The bytes of a pool's classes, live and cached: of memory from malloc, and straight from the
// system.
typedef struct PoolMemory {
    uint64_t small_bytes, large_bytes;
} PoolMemory;
void pool_memory(const Device *device, PoolMemory *out);
// From one of the lists of live buffers to the other; to the front of its list.
void pool_set_away(Pool *pool, Buffer *buffer, bool away);
void pool_touch(Pool *pool, Buffer *buffer);
void pool_set_purpose(Pool *pool, Buffer *buffer, BufferPurpose purpose);
// Takes back the memory of everything that is still alive. Returns the bytes.
uint64_t pool_purge(Pool *pool);
// The most that was live at any moment, whatever has been reset since.
uint64_t pool_most_bytes(const Pool *pool);
// The timeline hears what every account holds that it does not know of.
void pool_tell_timeline(Pool *pool);
// Gives an imported buffer's memory back to its owner.
void pool_release_import(Pool *pool, Buffer *buffer);

#endif
