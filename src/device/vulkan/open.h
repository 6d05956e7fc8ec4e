// Opening of Vulkan devices: what device.c sees. In a build without Vulkan the same functions
// say so.
#ifndef DEVICE_VULKAN_OPEN_H
#define DEVICE_VULKAN_OPEN_H

#include "base/text.h"
#include "device/device.h"
#include "device/settings.h"

enum {
    VULKAN_FIRST = -1,      // the first usable device: a real one before a software driver
    VULKAN_FIRST_REAL = -2, // never a software driver
};

// Fills in everything of a new device but its pool. `index` is a device's number or one of the
// above. STATUS_DEVICE in words.
Status vulkan_open(Device *device, const DeviceSettings *settings, int index) MUST_USE;
// The same for a foretold device (device/foretell.h): with what the driver says that the device can
// do, or, without a driver, with what most devices can; it is not opened.
Status vulkan_foretell(Device *device, const DeviceSettings *settings, int index) MUST_USE;
// Whether this machine may have a GPU at all, decided without loading a driver.
bool vulkan_may_have_gpu(void);
// One line per device, or one that says why there is none.
void vulkan_list(Text *out);

#endif
