// The Vulkan device's inside, shared by the files that make it up: library.c (the loader), choose.c
// (which device, what it can do), memory.c (blocks), ring.c (bytes from the host), stream.c
// (batches, barriers, serials), stamps.c (when work ran), dispatch.c (one shader's work),
// transfer.c (bytes in and out), modules.c (SPIR-V, unpacked), pipeline.c (shaders), import.c
// (programs in a device's own text), dialect.c and prune.c (modules, rewritten), vulkan.c (the
// whole).
//
// One lock per device guards all of it; nothing here calls the pool with the lock held.
#ifndef DEVICE_VULKAN_CORE_H
#define DEVICE_VULKAN_CORE_H

#define VK_NO_PROTOTYPES
#include <pthread.h>
#include <vulkan/vulkan.h>

#include "base/memory.h"
#include "device/settings.h"
#include "device/staging.h"
#include "device/timeline.h"
#include "device/vulkan/open.h"
#include "device/vulkan/vulkan.h"

// --- the library ---------------------------------------------------------------------------------

// Made at the first use; stays to the end of the process.
typedef struct VulkanLibrary {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
#define VULKAN_GLOBAL(name) PFN_vk##name name;
#define VULKAN_INSTANCE(name) PFN_vk##name name;
#include "device/vulkan/functions.def"
    VkInstance instance;
} VulkanLibrary;

// STATUS_DEVICE in words when there is no loader or no driver.
Status library_open(const VulkanLibrary **out) MUST_USE;

// What an instance is made with to run under the validation layers; the structs form a chain that
// begins with `features`.
typedef struct VulkanValidation {
    const char *layer, *extensions[2];
    VkValidationFeaturesEXT features;
    VkDebugUtilsMessengerCreateInfoEXT messenger;
} VulkanValidation;
bool validation_wanted(void);
void validation_describe(VulkanValidation *out);
Status validation_listen(const VulkanLibrary *library, const VulkanValidation *validation) MUST_USE;

// --- a physical device ---------------------------------------------------------------------------

enum { VULKAN_PHYSICAL_MAX = 64, VULKAN_REASON_BYTES = 160 };

typedef struct VulkanPhysical {
    VkPhysicalDevice handle;
    VkPhysicalDeviceType type;
    char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
    char unusable[VULKAN_REASON_BYTES]; // why it cannot be opened; empty when it can
    VulkanFeatures features;
    uint32_t api_version, vendor, device, driver_version;
    uint8_t cache_uuid[VK_UUID_SIZE];
    uint32_t family, queues; // of the family that computes; queues: 1 or 2 are taken
    uint32_t clock_bits;     // of its timestamps; 0: it has none
    double clock_ns;         // between two of their values
    bool has_budget, has_size_control, has_portability, has_multiprocessors, locks_host;
    VkDeviceSize allocation_bytes_max, buffer_bytes_max;
    VkDeviceSize heap_bytes, budget_bytes; // of the heap that tensors live in; what is free of it
    uint32_t heap;
    uint32_t allocations_max;
    VkPhysicalDeviceMemoryProperties memory;
} VulkanPhysical;

// All devices, real ones first. Returns how many; at most VULKAN_PHYSICAL_MAX.
int physical_list(const VulkanLibrary *library, VulkanPhysical *out);
// What the heap of tensors has left for this process at the moment; all of it where the driver does
// not say.
uint64_t physical_available(const VulkanLibrary *library, const VulkanPhysical *physical);
bool physical_is_software(const VulkanPhysical *physical);
// The device to open: number `index`, or the first that is usable (and real) for VULKAN_FIRST
// (VULKAN_FIRST_REAL).
Status physical_choose(const VulkanLibrary *library, int index, VulkanPhysical *out,
                       int *number) MUST_USE;
Status physical_create_device(const VulkanLibrary *library, const VulkanPhysical *physical,
                              VkDevice *out) MUST_USE;

// --- the ledger ----------------------------------------------------------------------------------

// Every object that is made is counted, and is to be gone when the device is.
typedef enum VulkanObject {
    OBJECT_MEMORY,
    OBJECT_BUFFER,
    OBJECT_SEMAPHORE,
    OBJECT_COMMAND_POOL,
    OBJECT_SHADER_MODULE,
    OBJECT_PIPELINE,
    OBJECT_IMPORTED_MODULE,
    OBJECT_IMPORTED_FUNCTION,
    OBJECT_PIPELINE_LAYOUT,
    OBJECT_PIPELINE_CACHE,
    OBJECT_QUERY_POOL,
    VULKAN_OBJECT_COUNT
} VulkanObject;

// --- memory --------------------------------------------------------------------------------------

// Part of something: of memory in bytes, of a dispatch in groups.
typedef struct VulkanRange {
    VkDeviceSize offset, bytes;
} VulkanRange;

// One allocation of the driver with one buffer over all of it. Small memory shares blocks; large
// memory has one of its own.
typedef struct VulkanBlock VulkanBlock;
struct VulkanBlock {
    VkDeviceMemory memory;
    VkBuffer buffer;
    VkDeviceSize bytes;
    uint64_t address;
    void *mapped;             // NULL where the host does not see it
    void *locked;             // pages of the host that it is made of; NULL: it is the device's
    VECTOR(VulkanRange) free; // by offset, never adjacent
    bool on_host;             // of those that are shared
    VulkanBlock *previous, *next;
};

// Integers that fill a memory lie in [least, most], where that is known (bounds.c).
typedef struct VulkanBounds {
    bool known;
    DType dtype;
    int64_t least, most;
} VulkanBounds;

// `written` and `read` are epochs: how many barriers had been recorded when it was last written and
// read. `producer` and `last_use` are serials of batches.
struct VulkanMemory {
    uint64_t address;
    VulkanBlock *block;
    VkDeviceSize offset, bytes;
    uint64_t written, read;
    uint64_t producer, last_use;
    VulkanBounds bounds; // of what was written last
    bool own_block;      // it shares its block with nothing
    VulkanMemory *next;  // in the list of memory that is given back when its last use is done
};

typedef struct VulkanMemories {
    VulkanBlock *blocks[2]; // those that are shared: of the device, of the host
    VulkanMemory *leaving;
    uint32_t type, staging_type, read_type; // memory types: of tensors, of the ring, of downloads
} VulkanMemories;

// --- the stream ----------------------------------------------------------------------------------

enum { VULKAN_BATCHES = 32, VULKAN_OP_BYTES = 32, VULKAN_HELD_MAX = 2 };

// When commands of a batch ran, while somebody profiles (stamps.c): a timestamp ends a command that
// is timed, and another one ends the command before it.
typedef struct VulkanStamps {
    VkQueryPool pool;      // made for the first batch that has some
    TimelineOwner *owners; // whose command each ends
    uint32_t count;
    bool fresh;                // no command was recorded since the last one
    struct Timeline *timeline; // who profiles
} VulkanStamps;

// One command buffer's worth of work. Serial s is recorded in slot s % VULKAN_BATCHES.
typedef struct VulkanBatch {
    VkCommandPool pool;
    VkCommandBuffer commands;
    uint64_t serial;
    uint64_t ring_end; // the ring's head when it was submitted
    int kernels;
    uint64_t cost;
    VkPipeline pipeline; // the one that is bound
    VulkanStamps stamps;
    char
        op[VULKAN_OP_BYTES]; // the last operation in it, and where in the script that was asked for
    Origin origin;
} VulkanBatch;

// What a dispatch runs: one of the two.
typedef struct VulkanProgram {
    VkPipeline pipeline;
    VkCuFunctionNVX imported;
} VulkanProgram;

typedef struct VulkanStream {
    VkQueue queue, read_queue;
    VkSemaphore timeline, read_timeline;
    VulkanBatch batches[VULKAN_BATCHES];
    uint64_t serial;    // of the batch that is open, or would be opened next
    uint64_t completed; // the last serial known to be done
    uint64_t epoch;     // barriers recorded so far, plus one: memory never used has epoch 0
    bool open;
    VkCommandPool read_pool;
    VkCommandBuffer read_commands;
    VulkanBlock *read_block; // what downloads go through; made for the first
    uint64_t read_serial;
    bool reading;                     // a download was asked for, and nobody has seen its end
    VulkanHeld held[VULKAN_HELD_MAX]; // to be recorded in the open batch, before anything else
    VulkanProgram held_programs[VULKAN_HELD_MAX];
    TimelineOwner held_owners[VULKAN_HELD_MAX]; // of their timestamps
    int held_count;
    int kernels_max, kernels_now; // of a batch; kernels_now: of the one that is open
} VulkanStream;

// --- bytes from the host -------------------------------------------------------------------------

typedef struct VulkanRing {
    VulkanBlock *block;
    uint64_t head, tail;  // positions that only grow; modulo the block's bytes an offset
    uint64_t tail_serial; // the last batch whose bytes are free again
} VulkanRing;

// --- pipelines -----------------------------------------------------------------------------------

typedef struct VulkanPipeline {
    VulkanShader shader;
    int n_constants;
    uint32_t constants[VULKAN_CONSTANTS_MAX];
    bool made; // false: a free slot
    VulkanProgram program;
    VkCuModuleNVX module; // of an imported program
} VulkanPipeline;

typedef struct VulkanPipelines {
    VkPipelineLayout layout;
    VkPipelineCache cache;
    size_t cache_bytes; // what was read from the disk
    VulkanPipeline *slots;
    size_t slot_count, used;
} VulkanPipelines;

// --- the slow device of the tests ----------------------------------------------------------------

// Submission n waits until the host says n, which a thread does `delay_ms` after the one before.
typedef struct VulkanGate {
    int delay_ms;
    VkSemaphore semaphore;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t wanted;
    bool stop;
} VulkanGate;

// --- the device ----------------------------------------------------------------------------------

typedef struct VulkanFunctions {
#define VULKAN_DEVICE(name) PFN_vk##name name;
#define VULKAN_DEVICE_MAY(name) PFN_vk##name name;
#include "device/vulkan/functions.def"
} VulkanFunctions;

typedef struct VulkanDevice {
    VulkanFunctions call; // first: the hot calls are one load away
    const VulkanLibrary *library;
    Device *device;
    VulkanPhysical physical;
    VkDevice handle;
    pthread_mutex_t lock;
    bool lost, abandoned;
    bool refuses_imports;                // it did not take one
    struct VulkanDevice *next_abandoned; // in vulkan.c's list
    char lost_words[256];                // why, for every call after the first
    int patience_ms;                     // without progress for so long, the device counts as lost
    bool clock_known;
    uint64_t clock_ahead; // ns that its clock is ahead of the host's, modulo 2^64
    uint64_t stamp_ns;    // what two timestamps cost
    uint64_t lose_after;  // tests: the submission that loses the device; 0: none
    VulkanMemories memories;
    VulkanStream stream;
    VulkanRing ring;
    VulkanPipelines pipelines;
    VulkanGate gate;
    uint32_t ledger[VULKAN_OBJECT_COUNT];
} VulkanDevice;

static inline VulkanDevice *vulkan_of(const Device *device) {
    return device->state;
}
static inline VulkanDevice *vulkan_lock(const Device *device) {
    VulkanDevice *vulkan = vulkan_of(device);
    pthread_mutex_lock(&vulkan->lock);
    return vulkan;
}
static inline void vulkan_unlock(VulkanDevice *const *vulkan) {
    pthread_mutex_unlock(&(*vulkan)->lock);
}
// The VulkanDevice of a device, whose lock is held until the scope is left.
#define SCOPED_LOCK(name, device)                                                                  \
    VulkanDevice *const name __attribute__((cleanup(vulkan_unlock))) = vulkan_lock(device)

// STATUS_OK, or the error of a call: lost devices stay lost. `what` says what was being done.
Status vulkan_check(VulkanDevice *vulkan, VkResult result, const char *what) MUST_USE;
// The error of a device that was lost before.
Status vulkan_refuse_lost(const VulkanDevice *vulkan) MUST_USE;

// Everything below: with the lock held.
// Notes the bounds of all that a memory holds, where it is little: just uploaded, of this dtype.
void bounds_of_upload(VulkanMemory *memory, DType dtype, const void *source, size_t bytes);

Status memories_open(VulkanDevice *vulkan) MUST_USE;
void memories_close(VulkanDevice *vulkan);
Status memory_new(VulkanDevice *vulkan, size_t bytes, VulkanMemory **out) MUST_USE;
// The same in the host's memory.
Status memory_new_on_host(VulkanDevice *vulkan, size_t bytes, VulkanMemory **out) MUST_USE;
// Pages of the host, which it locks until the memory is given back.
Status memory_lock(VulkanDevice *vulkan, void *bytes, size_t count, VulkanMemory **out) MUST_USE;
// Gives the memory back when the work that uses it is done.
void memory_release(VulkanDevice *vulkan, VulkanMemory *memory);
// Gives back what is no longer used.
void memories_collect(VulkanDevice *vulkan);
// Memory of this type where the host sees it.
Status block_new_mapped(VulkanDevice *vulkan, VkDeviceSize bytes, uint32_t type,
                        VulkanBlock **out) MUST_USE;
void block_free(VulkanDevice *vulkan, VulkanBlock *block);

Status ring_open(VulkanDevice *vulkan) MUST_USE;
void ring_close(VulkanDevice *vulkan);
// Bytes of the ring that stay until the open batch is done: may submit and wait. At most a quarter
// of the ring.
Status ring_take(VulkanDevice *vulkan, size_t bytes, void **host, VkDeviceSize *offset) MUST_USE;
enum { RING_PIECE_BYTES = 4 << 20 };
// Frees what batches that are done took; before the slot of such a batch is used again.
void ring_reclaim(VulkanDevice *vulkan);

Status stream_open(VulkanDevice *vulkan, int kernels_max) MUST_USE;
void stream_close(VulkanDevice *vulkan);
Status commands_begin(VulkanDevice *vulkan, VkCommandPool pool, VkCommandBuffer commands) MUST_USE;
// The open batch, opened if need be; what was held is in it.
Status stream_begin(VulkanDevice *vulkan, VulkanBatch **out) MUST_USE;
Status stream_submit(VulkanDevice *vulkan) MUST_USE;
Status stream_wait(VulkanDevice *vulkan, uint64_t serial) MUST_USE;
// What of the submitted work is done by now.
Status stream_poll(VulkanDevice *vulkan) MUST_USE;
// Until a timeline says `value`, as long as the device makes progress.
Status stream_wait_timeline(VulkanDevice *vulkan, VkSemaphore timeline, uint64_t value) MUST_USE;
// Records that the open batch uses this memory. A barrier that is needed comes before: call for all
// memory of a command first with stream_hazard, then stream_use.
bool stream_hazard(const VulkanDevice *vulkan, const VulkanMemory *memory, bool write);
void stream_use(VulkanDevice *vulkan, VulkanMemory *memory, bool write);
void stream_barrier(VulkanDevice *vulkan, const VulkanBatch *batch);
// Notes a recorded kernel; submits a batch that is full; both.
void stream_note(VulkanBatch *batch, uint64_t cost);
Status stream_submit_full(VulkanDevice *vulkan, const VulkanBatch *batch) MUST_USE;
Status stream_count(VulkanDevice *vulkan, VulkanBatch *batch, uint64_t cost) MUST_USE;
// While somebody profiles: the clock of the device is known when a batch was begun, or another one
// is begun; a timestamp before and one after a command that is timed; what those of a batch that is
// done say is added to the timeline; of all that are done.
Status stamps_begin(VulkanDevice *vulkan, VulkanBatch *batch) MUST_USE;
void stamps_before(VulkanDevice *vulkan, VulkanBatch *batch, TimelineOwner owner);
void stamps_after(VulkanDevice *vulkan, VulkanBatch *batch, TimelineOwner owner);
Status stamps_read(VulkanDevice *vulkan, VulkanBatch *batch) MUST_USE;
Status stamps_read_all(VulkanDevice *vulkan) MUST_USE;
void stamps_close(VulkanDevice *vulkan);
// Whose work is recorded now.
TimelineOwner stamps_owner(void);
// Into how many submissions work of this cost is to be cut.
uint64_t stream_pieces(uint64_t cost);
// The operation whose kernels this thread records, for errors.
void stream_name_op(const char *name);

Status timeline_semaphore_new(VulkanDevice *vulkan, VkSemaphore *out) MUST_USE;
void timeline_semaphore_free(VulkanDevice *vulkan, VkSemaphore timeline);

Status gate_open(VulkanDevice *vulkan, int delay_ms) MUST_USE;
// In this order at the end, with the stream finishing between them.
void gate_hurry(VulkanDevice *vulkan);
void gate_close(VulkanDevice *vulkan);
void gate_request(VulkanDevice *vulkan, uint64_t serial);

// Records what is held, for which the batch is open.
void held_record(VulkanDevice *vulkan);

Status pipelines_open(VulkanDevice *vulkan) MUST_USE;
Status pipeline_find(VulkanDevice *vulkan, const VulkanDispatch *dispatch,
                     VulkanProgram *out) MUST_USE;
void pipelines_close(VulkanDevice *vulkan);
// STATUS_DEVICE when the device lacks what the shader needs.
Status pipeline_check(const VulkanDevice *vulkan, VulkanShader shader) MUST_USE;

// The bytes of pipelines made by an earlier run with this driver; NULL when there are none. Failure
// to read or write is silent: the pipelines are made again.
void *disk_cache_read(const VulkanPhysical *physical, size_t *bytes);
void disk_cache_write(const VulkanPhysical *physical, const void *data, size_t bytes);

// transfer.c: members of the backend.
Status transfer_upload(Device *device, Buffer *buffer, size_t offset, const void *source,
                       size_t bytes) MUST_USE;
Status transfer_move(Device *device, MemoryPlace from, MemoryPlace to, size_t bytes) MUST_USE;
Status transfer_download(Device *device, Buffer *buffer, size_t offset, void *target,
                         size_t bytes) MUST_USE;

Status transfer_lock(Device *device, void *memory, size_t bytes, void **handle) MUST_USE;
Status transfer_locked(Device *device, void *locked, const StagingCopy *copy, bool out,
                       uint64_t *serial) MUST_USE;
Status transfer_is_done(Device *device, uint64_t serial, bool wait, bool *done) MUST_USE;

// SPIR-V, or the text of a program that a device with VULKAN_NEEDS_IMPORT imports.
typedef struct VulkanModule {
    const char *name;
    uint32_t needs;
    const void *data;
    size_t bytes;
} VulkanModule;
static inline bool module_is_imported(const VulkanModule *module) {
    return (module->needs & VULKAN_NEEDS_IMPORT) != 0;
}
// Unpacked at the first use. Thread-safe.
const VulkanModule *vulkan_module(VulkanShader shader);

// The text of a program with these constants in the places of $0, $1...; to be freed.
char *import_text(const VulkanModule *module, int n_constants, const uint32_t *constants);
Status import_make(VulkanDevice *vulkan, const VulkanModule *module,
                   VulkanPipeline *pipeline) MUST_USE;
void import_free(VulkanDevice *vulkan, const VulkanPipeline *pipeline);
// Records it, with these bytes as its parameters.
void import_launch(VulkanDevice *vulkan, VkCommandBuffer commands, VkCuFunctionNVX function,
                   const VulkanDispatch *dispatch, const char *parameters);

#endif
