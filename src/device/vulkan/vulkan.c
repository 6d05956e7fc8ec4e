// The Vulkan device as a whole: opening and closing, and the members of the backend.
#include "device/vulkan/vulkan.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/foretell.h"
#include "device/vulkan/bounds.h"
#include "device/vulkan/core.h"
#include "device/vulkan/kernels/kernels.h"

enum { VULKAN_ALIGNMENT = 256 };

// --- the backend ---------------------------------------------------------------------------------

typedef Status (*NewMemory)(VulkanDevice *vulkan, size_t bytes, VulkanMemory **out);

static Status allocate_with(Device *device, NewMemory new_memory, size_t bytes, void **handle) {
    VulkanDevice *vulkan = vulkan_of(device);
    VulkanMemory *memory = NULL;
    pthread_mutex_lock(&vulkan->lock);
    Status status = vulkan->lost ? vulkan_refuse_lost(vulkan) : new_memory(vulkan, bytes, &memory);
    pthread_mutex_unlock(&vulkan->lock);
    *handle = memory;
    return status;
}

static Status allocate_vulkan(Device *device, size_t bytes, void **handle) {
    return allocate_with(device, memory_new, bytes, handle);
}

static Status allocate_on_host(Device *device, size_t bytes, void **handle) {
    return allocate_with(device, memory_new_on_host, bytes, handle);
}

static uint64_t available_vulkan(const Device *device) {
    const VulkanDevice *vulkan = device->state;
    return physical_available(vulkan->library, &vulkan->physical);
}

static void free_vulkan(Device *device, void *handle, size_t bytes) {
    (void)bytes;
    SCOPED_LOCK(vulkan, device);
    memory_release(vulkan, handle);
}

// Types whose blocks only the CPU decodes; a model's tensors of them are converted when it is
// loaded.
static Status refuse_host_only(const Device *device, const KernelCall *call) {
    for (int i = 0; i < call->n_inputs; i++) {
        const TensorView *view = call->inputs[i].view;
        if (view && dtype_info[view->dtype].host_only)
            return fail(STATUS_DTYPE, "%s has no kernel on %s for %s", call->op_name, device->name,
                        dtype_name(view->dtype));
    }
    return STATUS_OK;
}

static Status run_vulkan(Device *device, const KernelCall *call) {
    static const char *const names[KERNEL_COUNT] = {
#define KERNEL(code, name, kept, follow, doc) name,
#include "device/kernels.def"
#undef KERNEL
    };
    VulkanKernel kernel = vulkan_kernels[call->kernel];
    if (!kernel)
        return fail(STATUS_DEVICE, "%s has no kernel for %s", device->name, names[call->kernel]);
    TRY(refuse_host_only(device, call));
    stream_name_op(call->op_name ? call->op_name : names[call->kernel]);
    return kernel(device, call);
}

static Status submit_vulkan(Device *device) {
    SCOPED_LOCK(vulkan, device);
    return stream_submit(vulkan);
}

static Status wait_vulkan(Device *device) {
    SCOPED_LOCK(vulkan, device);
    TRY(stream_submit(vulkan));
    TRY(stream_wait(vulkan, vulkan->stream.serial - 1));
    return stamps_read_all(vulkan);
}

static void check_ledger(const VulkanDevice *vulkan) {
    for (int i = 0; i < VULKAN_OBJECT_COUNT; i++) ASSERT(vulkan->ledger[i] == 0);
}

// Abandoned work may still use everything that there is: it is left to the end of the process, in a
// list, so that checkers of leaks can tell.
static _Atomic(VulkanDevice *) abandoned;

// A driver's threads may still compile what was abandoned when the process ends, and handlers of
// exit free what they use (LLVM's, of a software driver). This one runs before those, and instead.
static void end_at_once(int status, void *unused) {
    (void)unused;
    (void)fflush(NULL);
    _exit(status);
}

static void destroy_vulkan(Device *device) {
    VulkanDevice *vulkan = vulkan_of(device);
    gate_hurry(vulkan);
    stream_close(vulkan);
    if (vulkan->abandoned) {
        vulkan->next_abandoned = atomic_exchange(&abandoned, vulkan);
        if (!vulkan->next_abandoned) on_exit(end_at_once, NULL);
        return;
    }
    ring_close(vulkan);
    memories_close(vulkan);
    pipelines_close(vulkan);
    gate_close(vulkan);
    check_ledger(vulkan);
    vulkan->call.DestroyDevice(vulkan->handle, NULL);
    pthread_mutex_destroy(&vulkan->lock);
    free(vulkan);
}

static const DeviceBackend vulkan_backend = {
    .name = "vulkan",
    .speed = {5e11, 5e12, 1e10},
    .memory_allocate = allocate_vulkan,
    .memory_free = free_vulkan,
    .available = available_vulkan,
    .upload = transfer_upload,
    .download = transfer_download,
    .run = run_vulkan,
    .reduce_part = vulkan_reduce_part,
    .submit = submit_vulkan,
    .wait = wait_vulkan,
    .host_allocate = allocate_on_host,
    .memory_copy = transfer_move,
    .host_lock = transfer_lock,
    .host_copy = transfer_locked,
    .host_copied = transfer_is_done,
    .integers_within = vulkan_is_bound,
    .integers_lie = vulkan_bound,
    .destroy = destroy_vulkan,
#define X(code) | 1ull << KERNEL_##code
    .fused = 0 VULKAN_FUSED(X),
#undef X
};

const VulkanFeatures *vulkan_features(const Device *device) {
    return &vulkan_of(device)->physical.features;
}

uint64_t vulkan_address(const TensorView *view) {
    const VulkanMemory *memory = view->buffer->handle;
    return memory->address + view->offset;
}

// --- opening -------------------------------------------------------------------------------------

static void describe(const VulkanPhysical *physical, char *out, size_t size) {
    snprintf(out, size, "%.100s%s", physical->name,
             physical_is_software(physical) ? ", software driver" : "");
}

static Status open_parts(VulkanDevice *vulkan, const DeviceSettings *settings) {
#define VULKAN_DEVICE(name)                                                                        \
    vulkan->call.name =                                                                            \
        (PFN_vk##name)vulkan->library->GetDeviceProcAddr(vulkan->handle, "vk" #name);              \
    ASSERT(vulkan->call.name != NULL);
#define VULKAN_DEVICE_MAY(name)                                                                    \
    vulkan->call.name =                                                                            \
        (PFN_vk##name)vulkan->library->GetDeviceProcAddr(vulkan->handle, "vk" #name);
#include "device/vulkan/functions.def"
    vulkan->patience_ms = settings->test_patience_ms;
    vulkan->lose_after = settings->test_loss;
    TRY(memories_open(vulkan));
    TRY(gate_open(vulkan, settings->test_slow_ms));
    TRY(stream_open(vulkan, settings->compute_per_buffer));
    TRY(ring_open(vulkan));
    return pipelines_open(vulkan);
}

// All that is known of a device without its being opened.
static VulkanDevice *describe_device(Device *device, const DeviceSettings *settings,
                                     const VulkanPhysical *physical, int number) {
    VulkanDevice *vulkan = memory_allocate_zeroed(1, sizeof *vulkan);
    vulkan->device = device;
    vulkan->physical = *physical;
    if (!settings->vulkan_ptx) vulkan->physical.features.has &= ~(uint32_t)VULKAN_NEEDS_IMPORT;
    pthread_mutex_init(&vulkan->lock, NULL);
    device->backend = &vulkan_backend;
    device->state = vulkan;
    device->alignment = VULKAN_ALIGNMENT;
    device->times_itself = physical->clock_bits > 0;
    device->memory_limit = (size_t)physical->budget_bytes;
    device->separate = physical->type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    device->software = physical_is_software(physical);
    snprintf(device->name, sizeof device->name, "vulkan:%d", number);
    describe(physical, device->description, sizeof device->description);
    return vulkan;
}

static Status open_chosen(Device *device, const DeviceSettings *settings,
                          const VulkanLibrary *library, int index) {
    VulkanPhysical physical;
    VkDevice handle;
    int number = 0;
    TRY(physical_choose(library, index, &physical, &number));
    TRY(physical_create_device(library, &physical, &handle));
    VulkanDevice *vulkan = describe_device(device, settings, &physical, number);
    vulkan->library = library;
    vulkan->handle = handle;
    Status status = open_parts(vulkan, settings);
    if (status != STATUS_OK) destroy_vulkan(device);
    return status;
}

// --- foretelling ---------------------------------------------------------------------------------

// What GPUs of the last ten years have.
static const VulkanPhysical common_physical = {
    .name = "a device without a driver here",
    .features = {.has = VULKAN_NEEDS_FLOAT64 | VULKAN_NEEDS_FLOAT16 | VULKAN_NEEDS_SUBGROUP |
                        VULKAN_NEEDS_DOT_PRODUCT | VULKAN_NEEDS_SUBGROUP_32 |
                        VULKAN_NEEDS_LONG_ATOMICS,
                 .subgroup_size = 32,
                 .group_threads_max = 1024,
                 .shared_bytes_max = 48 << 10,
                 .groups_max = {UINT32_MAX >> 1, 65535, 65535}},
};

static void made_foretold(Foretold *memory) {
    _Static_assert(sizeof(VulkanMemory) <= sizeof memory->planned, "it stands in its place");
    VulkanMemory *planned = (VulkanMemory *)(void *)memory->planned;
    planned->address = (uint64_t)(uintptr_t)memory / VULKAN_ALIGNMENT * VULKAN_ALIGNMENT;
}

static Status plan_vulkan(Device *device, const KernelCall *call) {
    for (int i = 0; i < call->n_outputs; i++) {
        VulkanMemory *written = call->outputs[i]->buffer->handle;
        written->bounds.known = false;
    }
    return run_vulkan(device, call);
}

static void uploaded_foretold(Device *device, Buffer *buffer, const void *source, size_t bytes) {
    (void)device;
    if (buffer->label.rank >= 0)
        bounds_of_upload(buffer->handle, buffer->label.dtype, source, bytes);
}

static void destroy_described(Device *device) {
    VulkanDevice *vulkan = vulkan_of(device);
    pthread_mutex_destroy(&vulkan->lock);
    free(vulkan);
}

Status vulkan_foretell(Device *device, const DeviceSettings *settings, int index) {
    static const ForetellPlanner planner = {made_foretold, plan_vulkan, uploaded_foretold, true};
    static const DeviceBackend backend = {
        .name = "vulkan",
        .integers_within = vulkan_is_bound,
        .integers_lie = vulkan_bound,
        .destroy = destroy_described,
#define X(code) | 1ull << KERNEL_##code
        .fused = 0 VULKAN_FUSED(X),
#undef X
    };
    const VulkanLibrary *library;
    VulkanPhysical physical = common_physical;
    int number = index < 0 ? 0 : index;
    bool found = library_open(&library) == STATUS_OK &&
                 physical_choose(library, index, &physical, &number) == STATUS_OK;
    if (!found && index == VULKAN_FIRST_REAL) return error_current()->code;
    if (!found) {
        error_clear();
        physical = common_physical;
        number = index < 0 ? 0 : index;
    }
    (void)describe_device(device, settings, &physical, number);
    device->backend = &backend;
    foretell_device(device, &planner);
    return STATUS_OK;
}

Status vulkan_open(Device *device, const DeviceSettings *settings, int index) {
    const VulkanLibrary *library;
    TRY(library_open(&library));
    return open_chosen(device, settings, library, index);
}

// Drivers are slow to load, and a machine without a GPU has none of these files.
bool vulkan_may_have_gpu(void) {
#if defined(__linux__)
    static const char *const files[] = {"/dev/dri", "/dev/nvidiactl", "/dev/dxg", "/dev/kgsl-3d0",
                                        "/dev/mali0"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (access(files[i], F_OK) == 0) return true;
    return false;
#else
    return true;
#endif
}

static void list_physical(const VulkanPhysical *physical, int number, Text *out) {
    char description[128];
    describe(physical, description, sizeof description);
    text_format(out, "vulkan:%-3d %s, ", number, description);
    if (physical->unusable[0])
        text_format(out, "not usable: %s\n", physical->unusable);
    else
        text_format(out, "%.0f MB\n", (double)physical->budget_bytes / 0x1p20);
}

void vulkan_list(Text *out) {
    const VulkanLibrary *library;
    SCOPED_MEMORY VulkanPhysical *list = memory_allocate_zeroed(VULKAN_PHYSICAL_MAX, sizeof *list);
    if (library_open(&library) != STATUS_OK) {
        text_format(out, "vulkan     not usable: %s\n", error_current()->message);
        error_clear();
    } else {
        int count = physical_list(library, list);
        if (count == 0) text_append_string(out, "vulkan     not usable: there is no device\n");
        for (int i = 0; i < count; i++) list_physical(&list[i], i, out);
    }
}
