// Buffers and their pool: the one door to device memory. A buffer is reference-counted
// (thread-safe); when the last reference goes its bytes return to the pool at once.
#ifndef DEVICE_BUFFER_H
#define DEVICE_BUFFER_H

#include <stdatomic.h>

#include "catalog/dtype.h"
#include "device/device.h"
#include "shape/shape.h"

// What a buffer was made for: shown in leak reports and refusals.
typedef struct BufferLabel {
    DType dtype;
    int rank; // -1: no tensor, only bytes
    int64_t dims[RANK_MAX];
} BufferLabel;

// Memory that belongs to somebody else and can be used where it is.
typedef struct HostMemory {
    const void *bytes;
    size_t count;
    void *owner;
    void (*release)(void *owner);
    // Lets the system take the pages of a part, which come back from their file when they are read
    // again. NULL where the bytes are in no file.
    void (*evict)(const void *begin, size_t bytes);
} HostMemory;

// What memory is for, as forecasts tell it apart.
typedef enum BufferPurpose {
    PURPOSE_RESULT,
    PURPOSE_PARAMETER, // what is trained
    PURPOSE_TAPE,      // results that backward will read
    PURPOSE_OPTIMIZER, // states of optimizers
    PURPOSE_CACHE,     // keys and values of texts
    PURPOSE_COUNT
} BufferPurpose;

// Who has the contents of a buffer that gives its memory back between uses.
typedef struct BufferKeeper BufferKeeper;
struct BufferKeeper {
    // Before a use: gives the buffer its memory and contents by buffer_refill.
    Status (*bring)(BufferKeeper *keeper, Buffer *buffer);
    void (*end)(BufferKeeper *keeper); // the buffer has ended
};

struct Buffer {
    atomic_int refs;
    Device *device;
    void *handle;      // the backend's: on the CPU the address
    size_t bytes;      // asked for
    size_t capacity;   // the class that it serves, >= bytes
    uint64_t last_use; // serial of the last batch that touches it; unused on the CPU
    Origin origin;     // of its present use
    BufferLabel label;
    HostMemory import;       // in use in place; without a release: none
    Buffer *previous, *next; // live list, or the cache list of its class
    // What the device keeps in another form of the same bytes, released with them; see
    // buffer_set_companion.
    void *companion;
    size_t companion_bytes;
    void (*companion_release)(void *companion);
    struct PoolOrigin *held; // the pool's account of its origin, while live
    uint64_t stamp;          // when it entered the cache; larger is later
    uint64_t idle_since;     // how many allocations the cache could not serve until then
    bool purged;             // its bytes were taken back although someone holds it
    bool resident;           // it is never moved out
    bool abandoned;          // its memory stays as it is when it ends
    bool away;               // moved out (spill.c): no handle until it is brought back
    uint64_t away_at;        // where in the pool's file; or, of a device with memory of its own:
    void *away_memory;       // the host's, as the backend knows it
    bool away_unlocked;      // away_memory is ordinary memory: the driver has refused its own
    bool copied;             // it came back from away_memory, which still has its bytes
    bool forgotten;          // away without its bytes: they are made again before their next use
    Buffer **made_as;       // the pointer to it of who can make its present contents again, or NULL
    BufferKeeper *keeper;   // NULL: it has its memory all the time, unless a limit moves it out
    uint64_t turn;          // of the kernel that ran when it was handed out
    BufferPurpose purpose;  // of foretold devices
    uint32_t backward_uses; // how often the tape holds it
};

// A buffer of at least `bytes` bytes (0 is allowed), contents undefined, one reference. Counts as
// live until released. STATUS_MEMORY with request, live, cached, limit and the five largest
// holders.
Status buffer_new(Device *device, size_t bytes, const BufferLabel *label, Buffer **out) MUST_USE;
// A buffer over memory that stays where it is (a mapped file). The owner is released when the last
// reference goes. Copies into a new buffer and releases the owner at once where the device cannot
// use host memory. Counted as mapped bytes, not live bytes, when used in place.
Status buffer_import(Device *device, const HostMemory *memory, const BufferLabel *label,
                     Buffer **out) MUST_USE;
// Ties something to a buffer that the device made from its bytes, such as weights in the layout of
// its kernels; `release` runs before the buffer's own bytes go. `bytes` are counted as repacked.
void buffer_set_companion(Buffer *buffer, void *companion, size_t bytes,
                          void (*release)(void *companion));
Buffer *buffer_retain(Buffer *buffer);
void buffer_release(Buffer *buffer); // NULL is allowed
// Its address is known to others from here on: it is never moved out. STATUS_MEMORY when it was and
// does not fit.
Status buffer_hold(Buffer *buffer) MUST_USE;
// Others may read its memory for as long as the process runs: it never goes back.
void buffer_abandon(Buffer *buffer);
static inline bool buffer_is_unique(const Buffer *buffer) {
    return atomic_load_explicit(&buffer->refs, memory_order_acquire) == 1;
}
// Noted on foretold devices only. The tape says when it holds a result and when no longer.
void buffer_note_purpose(Buffer *buffer, BufferPurpose purpose);
void buffer_note_backward(Buffer *buffer, bool holds);
Status buffer_upload(Buffer *buffer, size_t offset, const void *source, size_t bytes) MUST_USE;
Status buffer_download(Buffer *buffer, size_t offset, void *target, size_t bytes) MUST_USE;

// Who can make the present contents again points to the buffer from `*maker`, which becomes NULL
// when they change or end; NULL: nobody can. Nothing outlives `maker`.
void buffer_made_as(Buffer *buffer, Buffer **maker);
// Gives a forgotten buffer the memory of another, which has the same size and one holder; that
// reference is taken.
Status buffer_refill(Buffer *buffer, Buffer *made) MUST_USE;
// A buffer with a keeper, which nobody has the address of, gives its memory back; it is forgotten
// until its next use. STATUS_DEVICE of queued work that uses it and fails.
Status buffer_give_up(Buffer *buffer) MUST_USE;
// Its memory and contents are there, until they are given up.
Status buffer_bring(Buffer *buffer) MUST_USE;
// Whether the kernel that is about to run reads or writes it.
bool buffer_is_in_use(const Buffer *buffer);
// It is read soon: what is on a disk begins to come back. NULL is allowed.
void buffer_expect(const Buffer *buffer);

// The holes of the deliberate leak test: adds a reference that nobody will release.
void buffer_leak(Buffer *buffer);

#endif
