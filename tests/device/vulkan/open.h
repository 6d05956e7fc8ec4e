// How fixtures come to a Vulkan device: without one their tests are left out, except on a machine
// that says in TL_TEST_VULKAN that it has one.
#ifndef TL_TESTS_DEVICE_VULKAN_OPEN_H
#define TL_TESTS_DEVICE_VULKAN_OPEN_H

#include <stdbool.h>
#include <stdlib.h>

#include "device/device.h"

// False where there is none; *status is then what the fixture's set-up returns.
static inline bool open_for_fixture(Device **device, int *status) {
    *status = 0;
    if (device_open("vulkan", device) == STATUS_OK) return true;
    if (getenv("TL_TEST_VULKAN")) {
        print_error("%s\n", error_current()->message);
        *status = 1;
    }
    return false;
}

#endif
