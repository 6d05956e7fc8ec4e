// Opening and closing of devices by name, and the devices of a runtime.
#include "device/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/runtime.h"
#include "base/text.h"
#include "device/cpu/cpu.h"
#include "device/foretell.h"
#include "device/pool.h"
#include "device/spill.h"
#include "device/staging.h"
#include "device/vulkan/open.h"

Devices *devices_new(void) {
    return memory_allocate_zeroed(1, sizeof(Devices));
}

void devices_free(Devices *devices) {
    if (devices->by_default) device_close(devices->by_default);
    while (devices->named.count > 0) device_close(devices->named.items[--devices->named.count]);
    VECTOR_FREE(&devices->named);
    foretelling_free(devices->foretelling);
    for (size_t i = 0; i < devices->choices.count; i++) free(devices->choices.items[i].value);
    VECTOR_FREE(&devices->choices);
    free(devices);
}

static Status make_vulkan(Device *device, const DeviceSettings *settings, int index) {
    return foretelling() ? vulkan_foretell(device, settings, index)
                         : vulkan_open(device, settings, index);
}

static Status make_cpu(Device *device) {
    cpu_open(device);
    if (foretelling()) foretell_device(device, &cpu_planner);
    return STATUS_OK;
}

static Status open_vulkan(Device *device, const DeviceSettings *settings, const char *name,
                          int index) {
    if (make_vulkan(device, settings, index) == STATUS_OK) return STATUS_OK;
    SCOPED_TEXT(why);
    text_append_string(&why, error_current()->message);
    fail(STATUS_DEVICE, "cannot open the device %s: %s", name, text_get(&why));
    return fail_help("use the device cpu, or auto");
}

// A GPU where there is one that works, else the CPU.
static Status open_auto(Device *device, const DeviceSettings *settings) {
    if (vulkan_may_have_gpu() && make_vulkan(device, settings, VULKAN_FIRST_REAL) == STATUS_OK)
        return STATUS_OK;
    error_clear();
    return make_cpu(device);
}

static Status open_named(Device *device, const DeviceSettings *settings, const char *name,
                         int index) {
    if (strcmp(name, "auto") == 0) return open_auto(device, settings);
    if (strcmp(name, "cpu") != 0)
        return open_vulkan(device, settings, name, index < 0 ? VULKAN_FIRST : index);
    return make_cpu(device);
}

Status device_open(const char *name, Device **out) {
    int index;
    if (!device_name_parse(name, &index)) {
        fail(STATUS_SETTING, "\"%s\" is not a device", name);
        return fail_help("devices are cpu, vulkan, vulkan:N and auto");
    }
    DeviceSettings settings;
    TRY(device_settings_read(&settings));
    TRY(cpu_isa_check());
    Device *device = memory_allocate_zeroed(1, sizeof *device);
    device->runtime = runtime_current;
    Status status = open_named(device, &settings, name, index);
    if (status != STATUS_OK) {
        free(device);
        return status;
    }
    ASSERT(device->backend != NULL && device->alignment >= 64);
    if (settings.test_device_bytes > 0) device->memory_limit = (size_t)settings.test_device_bytes;
    device->own_bytes = device->memory_limit;
    if (settings.device_bytes > 0) device->memory_limit = (size_t)settings.device_bytes;
    size_t limit = (size_t)settings.limit_bytes;
    if (limit > 0 && (device->memory_limit == 0 || limit < device->memory_limit))
        device->memory_limit = limit;
    settings.buffer_max_bytes = pool_share(device, &settings);
    device->pool = pool_new(device, &settings);
    *out = device;
    return STATUS_OK;
}

void device_close(Device *device) {
    pool_destroy(device->pool);
    staging_close(device);
    device->backend->destroy(device);
    free(device);
}

uint64_t device_room_beyond(const Device *device) {
    return device->pool->settings.device_bytes > 0 ? 0 : spill_room(device);
}

bool device_has_room_for_copy(const Device *device, size_t bytes) {
    size_t limit = device->memory_limit, live = pool_statistics(device).live_bytes;
    return limit == 0 || (live + bytes) / 3 < limit / 4;
}

bool device_is_short(const Device *device) {
    return device->pool->spill.active;
}

Device *device_default_replace(Device *device) {
    Devices *devices = runtime_current->devices;
    Device *before = devices->replacement;
    devices->replacement = device;
    return before;
}

static Status open_default(Devices *devices) {
    DeviceSettings settings;
    TRY(device_settings_read(&settings));
    TRY(device_open(settings.device, &devices->by_default));
    const Foresight *foresight = &devices->foresight;
    if (foresight->opened) foresight->opened(foresight->context);
    return STATUS_OK;
}

Status device_default(Device **out) {
    Devices *devices = runtime_current->devices;
    Status status = STATUS_OK;
    if (!devices->replacement && !devices->by_default) status = open_default(devices);
    *out = devices->replacement ? devices->replacement : devices->by_default;
    return status;
}

Device *device_default_opened(void) {
    return runtime_current->devices->by_default;
}

size_t devices_named(Device **out, size_t most) {
    const Devices *devices = runtime_current->devices;
    size_t count = 0;
    while (count < most && count < devices->named.count) {
        out[count] = devices->named.items[count];
        count++;
    }
    return count;
}

void device_default_close(void) {
    Devices *devices = runtime_current->devices;
    Device *device = devices->by_default;
    devices->by_default = NULL;
    if (device) device_close(device);
}

static bool is_called(const Device *device, const char *name) {
    return strcmp(device->name, name) == 0 || strcmp(device->backend->name, name) == 0;
}

Status device_named(const char *name, Device **out) {
    Devices *devices = runtime_current->devices;
    // Names mean the same inside `with device(...)`.
    if (!devices->by_default) TRY(open_default(devices));
    *out = devices->by_default;
    if (is_called(*out, name) || strcmp(name, "auto") == 0 || strcmp(name, "default") == 0)
        return STATUS_OK;
    for (size_t i = 0; i < devices->named.count; i++) {
        *out = devices->named.items[i];
        if (is_called(*out, name)) return STATUS_OK;
    }
    TRY(device_open(name, out));
    VECTOR_PUSH(&devices->named, *out);
    return STATUS_OK;
}

void device_list(Text *out) {
    Device device = {0};
    cpu_open(&device);
    text_format(out, "cpu        %s, %.0f MB\n", device.description,
                (double)device.memory_limit / 0x1p20);
    vulkan_list(out);
}
