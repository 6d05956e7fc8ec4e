// What the layers above ask of a device's pool: what it holds, and the reports of it. The
// functions are in pool.c and report.c.
#ifndef DEVICE_STATISTICS_H
#define DEVICE_STATISTICS_H

#include "base/text.h"
#include "device/device.h"

typedef struct PoolStatistics {
    uint64_t live_bytes, live_buffers, mapped_bytes;
    uint64_t repacked_bytes; // of the live ones: weights in the layout of kernels
    uint64_t peak_bytes;
    Origin peak_origin;
    uint64_t cached_bytes, cached_buffers;
    uint64_t allocations, reuses, evictions;
    // Under a limit (spill.c): what is away now, what was moved in all, and what kernels have used
    // where it was.
    uint64_t away_bytes, moves_out, moved_out_bytes, moved_in_bytes, lends, lent_bytes;
    uint64_t calls_in_pieces, pieces, piece_bytes; // of operands, moved for one piece
    uint64_t unlocked_bytes;           // of those moved: to memory that kernels cannot use
    uint64_t forgets, forgotten_bytes; // what was made again, or wanted no more
    uint64_t limit_nanoseconds;        // spent on moving
    uint64_t bytes_uploaded, bytes_downloaded, waits;
} PoolStatistics;

// The size class that serves a request: see MEMORY in ARCHITECTURE.md.
size_t pool_class_bytes(size_t bytes);
PoolStatistics pool_statistics(const Device *device);
void pool_clear_cache(Device *device);
void pool_reset_peak(Device *device);
// Called once when the device refuses memory, after the cache is trimmed: the interpreter's
// collector.
void pool_set_collector(void (*collect)(void));
// Who foretells what a program will hold. Each is called once at most, and may be NULL.
typedef struct Foresight {
    void (*opened)(void *context); // the default device was opened
    // It gives more than an eighth of what it may, `limit` bytes: what is returned becomes the
    // allocation's.
    Status (*large)(void *context, uint64_t limit);
    void *context;
} Foresight;
void pool_set_foresight(const Foresight *foresight);
// Asked of a buffer that only the tape holds, before it is moved out; true: its bytes may go, and
// whoever it is made as fills it again before it is read.
void pool_set_forgetting(bool (*may_forget)(Buffer *buffer));
// How an origin is shown ("model.tl:12:9   in fn load, called from model.tl:30"); by default only
// the place. The interpreter, which knows functions, installs its own.
void pool_set_origin_describer(void (*describe)(Text *out, Origin origin));
// The report of MEMORY.md section 4, as it stands now.
void memory_report(Device *device, Text *out);
// The end of every program. Call when everything was released: reports a leak (always), purges it,
// appends the report when TL_MEMORY_CHECK asks and the statistics when TL_BUFFER_STATS does.
// Returns how many buffers were leaked; the exit status is 3 when there are any and TL_MEMORY_CHECK
// is strict.
uint64_t memory_check(Device *device, Text *out);

#endif
