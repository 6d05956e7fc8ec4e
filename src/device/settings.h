// The TL_* environment variables: the one place that reads them. A malformed value is an error that
// names the variable and the value, never a silent default.
#ifndef DEVICE_SETTINGS_H
#define DEVICE_SETTINGS_H

#include "base/status.h"
#include "catalog/variables.h"
#include "device/statistics.h"

typedef enum MemoryCheck {
    MEMORY_CHECK_OFF,
    MEMORY_CHECK_REPORT, // TL_MEMORY_CHECK=1: the report at exit
    MEMORY_CHECK_ALL,    // TL_MEMORY_CHECK=all: and the host's memory
    MEMORY_CHECK_STRICT, // TL_MEMORY_CHECK=strict: and exit status 3 on a leak
} MemoryCheck;

// TL_REPACK: when weights of mapped files are brought into the layout of products.
typedef enum RepackSetting {
    REPACK_LAZY,  // "lazy", or unset: at their first product
    REPACK_NEVER, // "0": never; products interleave what they need
    REPACK_LOAD,  // "load": when a model is loaded
} RepackSetting;

// TL_CACHE: what language models hold keys and values in.
typedef enum CacheSetting { CACHE_BY_MODEL, CACHE_FLOAT16, CACHE_FLOAT32 } CacheSetting;

typedef struct DeviceSettings {
    char device[24];            // TL_DEVICE, "auto" when unset; checked to be a name of a device
    uint64_t buffer_max_bytes;  // TL_BUFFER_MAX_MB
    uint64_t device_bytes;      // TL_DEVICE_MEMORY_MB, without moving out; 0: what the device has
    uint64_t limit_bytes;       // TL_MEMORY_LIMIT; 0: none
    uint64_t test_device_bytes; // TL_TEST_DEVICE_MB; 0: what the device has
    uint64_t test_host_bytes;   // TL_TEST_HOST_MB; 0: what the host has left
    uint64_t test_tried_bytes;  // TL_TEST_TRIED_MB
    uint64_t test_locked_bytes; // TL_TEST_LOCKED_MB; 0: what the driver gives
    int threads;                // TL_THREADS; 0: as many as the process may use
    int compute_per_buffer;     // TL_COMPUTE_PER_BUFFER: kernels per submission
    bool has_seed;
    bool has_buffer_max; // TL_BUFFER_MAX_MB is set
    uint64_t seed;       // TL_SEED
    bool poison, debug_memory, buffer_stats;
    bool vulkan_ptx; // TL_VULKAN_PTX: programs in PTX where a device takes them; unset, true
    MemoryCheck memory_check;
    uint64_t prompt_cache_bytes; // TL_PROMPT_CACHE_MB
    bool fast; // TL_FAST: products with quantised weights round activations to 8 bits
    RepackSetting repack;
    CacheSetting cache;
    // For tests of devices whose work is queued: TL_TEST_SLOW_MS delays every submission,
    // TL_TEST_LOSS is the submission that loses the device (0: none), and without progress for
    // TL_TEST_PATIENCE_MS (two minutes when unset) the device counts as lost.
    int test_slow_ms, test_patience_ms;
    uint64_t test_loss;
    int test_representation; // TL_TEST_REPRESENTATION: of relations (logic/cells.h); 0: any
} DeviceSettings;

// A runtime's own value of a variable, in place of the environment's; NULL: the environment's
// again. It counts for what is read from here on.
void device_setting_choose(VariableId id, const char *value);
const char *device_setting_choice(VariableId id); // NULL: none; borrowed
// Reads and checks all of them as they are now. STATUS_SETTING.
Status device_settings_read(DeviceSettings *out) MUST_USE;
// The same without the values, TL_ISA included: for the start of a program.
Status device_settings_check(void) MUST_USE;
// For tests, at the very start: TL_FAIL_ALLOCATION is the allocation that is refused,
// TL_FAIL_ALLOCATION_BYTES the size above which all are. STATUS_SETTING.
Status device_settings_refusals(void) MUST_USE;
// "cpu", "vulkan", "vulkan:N", "auto"; N through `index`, -1 for none. False for anything else.
bool device_name_parse(const char *name, int *index);

#endif
