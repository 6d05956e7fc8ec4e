// What stands in for the Vulkan device in a build without Vulkan's headers or its shader compiler.
#include "device/vulkan/open.h"

Status vulkan_open(Device *device, const DeviceSettings *settings, int index) {
    (void)device;
    (void)settings;
    (void)index;
    return fail(STATUS_DEVICE, "this build has no Vulkan device");
}

Status vulkan_foretell(Device *device, const DeviceSettings *settings, int index) {
    return vulkan_open(device, settings, index);
}

bool vulkan_may_have_gpu(void) {
    return false;
}

void vulkan_list(Text *out) {
    text_append_string(out, "vulkan     not usable: this build has no Vulkan device\n");
}
