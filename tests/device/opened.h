// Test helper: the CPU as a device that is open while a group of tests runs, for those that need a
// pool. Nothing of it is held at the end.
#ifndef TESTS_DEVICE_OPENED_H
#define TESTS_DEVICE_OPENED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "device/statistics.h"

#include <cmocka.h> // after ours: its macro fail() has the name of our function

static Device *device;

static int open_device(void **state) {
    (void)state;
    return device_open("cpu", &device) == STATUS_OK ? 0 : -1;
}

static int close_device(void **state) {
    (void)state;
    assert_int_equal(pool_statistics(device).live_bytes, 0);
    device_close(device);
    return 0;
}

#endif
