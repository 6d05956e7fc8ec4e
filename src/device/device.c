// Opening and closing of devices by name, and the process's default device.
#include "device/device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "device/cpu/cpu.h"
#include "device/pool.h"
#include "device/vulkan/open.h"

static Device *default_device;
static Device *replacement; // of the default, within `with device(...)`; NULL outside
static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER;

static Status open_vulkan(Device *device, const DeviceSettings *settings, const char *name,
                          int index) {
    if (vulkan_open(device, settings, index) == STATUS_OK) return STATUS_OK;
    Text why = {0};
    text_append_string(&why, error_current()->message);
    fail(STATUS_DEVICE, "cannot open the device %s: %s", name, text_get(&why));
    text_free(&why);
    return fail_help("use the device cpu, or auto");
}

// A GPU where there is one that works, else the CPU.
static Status open_auto(Device *device, const DeviceSettings *settings) {
    if (vulkan_may_have_gpu() && vulkan_open(device, settings, VULKAN_FIRST_REAL) == STATUS_OK)
        return STATUS_OK;
    error_clear();
    cpu_open(device);
    return STATUS_OK;
}

static Status open_named(Device *device, const DeviceSettings *settings, const char *name,
                         int index) {
    if (strcmp(name, "auto") == 0) return open_auto(device, settings);
    if (strcmp(name, "cpu") != 0)
        return open_vulkan(device, settings, name, index < 0 ? VULKAN_FIRST : index);
    cpu_open(device);
    return STATUS_OK;
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
    Status status = open_named(device, &settings, name, index);
    if (status != STATUS_OK) {
        free(device);
        return status;
    }
    if (settings.device_bytes > 0) device->memory_limit = (size_t)settings.device_bytes;
    device->pool = pool_new(device, &settings);
    *out = device;
    return STATUS_OK;
}

void device_close(Device *device) {
    pool_destroy(device->pool);
    device->backend->destroy(device);
    free(device);
}

Device *device_default_replace(Device *device) {
    Device *before = replacement;
    replacement = device;
    return before;
}

Status device_default(Device **out) {
    Status status = STATUS_OK;
    if (replacement) {
        *out = replacement;
        return STATUS_OK;
    }
    pthread_mutex_lock(&default_lock);
    if (!default_device) {
        DeviceSettings settings;
        status = device_settings_read(&settings);
        if (status == STATUS_OK) status = device_open(settings.device, &default_device);
    }
    *out = default_device;
    pthread_mutex_unlock(&default_lock);
    return status;
}

Device *device_default_opened(void) {
    pthread_mutex_lock(&default_lock);
    Device *device = default_device;
    pthread_mutex_unlock(&default_lock);
    return device;
}

void device_default_close(void) {
    pthread_mutex_lock(&default_lock);
    Device *device = default_device;
    default_device = NULL;
    pthread_mutex_unlock(&default_lock);
    if (device) device_close(device);
}

void device_list(Text *out) {
    Device device = {0};
    cpu_open(&device);
    text_format(out, "cpu        %s, %.0f MB\n", device.description,
                (double)device.memory_limit / 0x1p20);
    vulkan_list(out);
}
