// A device: where buffers live and kernels run. One struct of function pointers per backend;
// nothing above this folder knows which backend it is. Ownership is a tree: device -> pool ->
// buffer.
//
// Order: calls are queued in program order on one queue per device. Work submitted later sees the
// effects of work submitted earlier. The host sees effects after device_wait (downloads wait).
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct Device Device;
typedef struct Pool Pool;
typedef struct Buffer Buffer;
typedef struct KernelCall KernelCall;
typedef struct TensorView TensorView;
typedef struct StagingCopy StagingCopy;

// About how many bytes or operations a second, where what to do is chosen by how long it takes.
typedef struct DeviceSpeed {
    double bytes;       // that kernels read and write
    double flops;       // of matrix products
    double moved_bytes; // to where they are out of the device's way, and back
} DeviceSpeed;

typedef struct MemoryPlace {
    void *handle;
    size_t offset; // in bytes
} MemoryPlace;

typedef struct DeviceBackend {
    const char *name; // "cpu", "vulkan"
    DeviceSpeed speed;

    // Raw memory. `handle` is the backend's own: for the CPU the address itself. STATUS_MEMORY when
    // the device refuses; the pool then trims and asks again. Only pool.c calls these two.
    Status (*memory_allocate)(Device *device, size_t bytes, void **handle);
    void (*memory_free)(Device *device, void *handle, size_t bytes);
    // Of foretold devices: memory has a new holder, of so many bytes of it.
    void (*memory_taken)(void *handle, size_t bytes);

    // Bytes in, bytes out; offset in bytes. Upload is ordered with the queue and copies `source`
    // before it returns; download waits for the producer of these bytes only.
    Status (*upload)(Device *device, Buffer *buffer, size_t offset, const void *source,
                     size_t bytes);
    Status (*download)(Device *device, Buffer *buffer, size_t offset, void *target, size_t bytes);

    // Optional (NULL): how many bytes more it could give at this moment, with what others have
    // taken of it.
    uint64_t (*available)(const Device *device);

    // Queues one kernel. STATUS_DTYPE / STATUS_DEVICE in words when it has none for these dtypes.
    Status (*run)(Device *device, const KernelCall *call);
    Status (*submit)(Device *device); // start what is queued; does not wait
    Status (*wait)(Device *device);   // until all queued work is done
    // Optional (NULL): makes host memory usable in place, as a mapped file on the CPU.
    Status (*host_import)(Device *device, const void *memory, size_t bytes, void **handle);
    void (*host_release)(Device *device, void *handle);
    // Of devices with memory of their own: memory of the host that kernels can use, slowly;
    // memory_free takes it. And a queued copy of bytes of one memory to another.
    Status (*host_allocate)(Device *device, size_t bytes, void **handle);
    Status (*memory_copy)(Device *device, MemoryPlace from, MemoryPlace to, size_t bytes);
    // Optional (NULL, all three): locks pages of the host, so that it copies from and to them by
    // itself (staging.h; memory_free unlocks them); queues such a copy, out of its memory or into
    // it, and says which batch it is in; whether that batch is done.
    Status (*host_lock)(Device *device, void *memory, size_t bytes, void **handle);
    Status (*host_copy)(Device *device, void *locked, const StagingCopy *copy, bool out,
                        uint64_t *serial);
    Status (*host_copied)(Device *device, uint64_t serial, bool wait, bool *done);
    // Optional (NULL): brings a weight of a mapped file [rows, columns] into the layout of products
    // before the first of them.
    void (*weight_loaded)(const TensorView *weight);
    // Of devices that run ahead of the host (else NULL): whether a view's integers are known to lie
    // in [least, most], and that they do, until something else is written there.
    bool (*integers_within)(const TensorView *view, int64_t least, int64_t most);
    void (*integers_lie)(const TensorView *view, int64_t least, int64_t most);
    // Numbers in each of the parts that REDUCE makes of a contiguous row to one number (kernel.h);
    // 0: it makes none.
    int64_t (*reduce_part)(Device *device, const KernelCall *call);
    void (*destroy)(Device *device); // the backend's part; after the pool is drained
    uint64_t fused;                  // bit KernelId: it has that FUSED row of kernels.def
} DeviceBackend;

struct Device {
    const DeviceBackend *backend;
    Pool *pool;
    struct Runtime *runtime; // whose device it is
    char name[24];           // "cpu", "vulkan:0": what TL_DEVICE takes and tensors print
    char description[128];   // "AMD EPYC, 2 threads, AVX-512"
    size_t alignment;        // of every buffer, at least 64
    size_t own_bytes;        // of memory; 0 when the device states none
    size_t memory_limit;     // the same, or what a setting limits it to
    bool separate;           // its memory is its own, not the host's
    bool software;           // a driver that computes on the host, in malloc's memory
    bool foretold;           // it accounts for memory and computes little: foretell.h
    bool times_itself;       // it tells a timeline when what is queued ran: timeline.h
    struct Staging *staging; // that waits for its next use
    void *state;             // the backend's own
};

// Whether it works while the host goes on, so that to read its numbers is to wait.
static inline bool device_runs_ahead(const Device *device) {
    return device->backend->integers_lie != NULL;
}

// Opens the device that a TL_DEVICE value names ("cpu", "vulkan", "vulkan:N", "auto"), with its
// pool. The caller owns it. STATUS_SETTING for an unknown name, STATUS_DEVICE when it cannot be
// opened.
Status device_open(const char *name, Device **out) MUST_USE;
// Drains the pool, then destroys the device. Buffers must have been purged or released.
void device_close(Device *device);

// Bytes that may leave it for the host's memory or a file, at most.
uint64_t device_room_beyond(const Device *device);
// Whether it has room for a copy of what lies in a mapped file, next to everything else: what does
// not fit stays there.
bool device_has_room_for_copy(const Device *device, size_t bytes);
// Whether it has refused memory, so that buffers leave it.
bool device_is_short(const Device *device);

// The devices of a runtime: the default one and those that a program has named. Freeing closes
// them.
typedef struct Devices Devices;
Devices *devices_new(void);
void devices_free(Devices *devices);

// The runtime's default device, opened at first use from TL_DEVICE. Borrowed.
Status device_default(Device **out) MUST_USE;
// Makes another device the default until it is called again with what it returns (NULL: the
// runtime's own).
Device *device_default_replace(Device *device);
Device *device_default_opened(void); // NULL when nothing has opened it yet
// Those that a program has named, but the default one; returns how many, at most `most`.
size_t devices_named(Device **out, size_t most);
void device_default_close(void);
// The default device where the name is its own, "auto" or "default"; else one that is opened at the
// first use of its name and stays open as long as the runtime. Borrowed.
Status device_named(const char *name, Device **out) MUST_USE;

// One line per device this build can name, with whether it is usable and why not: `tl devices`.
struct Text;
void device_list(struct Text *out);

#endif
