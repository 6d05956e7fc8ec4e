// Opening and closing of devices by name, and the process's default device.
#include "device/device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "device/cpu/cpu.h"
#include "device/pool.h"

static Device *default_device;
static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER;

static Status refuse_vulkan(const char *name) {
    fail(STATUS_DEVICE, "cannot open the device %s: this build has no Vulkan device", name);
    return fail_help("use the device cpu, or auto");
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
    if (strncmp(name, "vulkan", 6) == 0) return refuse_vulkan(name);
    Device *device = memory_allocate_zeroed(1, sizeof *device);
    cpu_open(device);
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

Status device_default(Device **out) {
    Status status = STATUS_OK;
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
    text_append_string(out, "vulkan     not usable: this build has no Vulkan device\n");
}
