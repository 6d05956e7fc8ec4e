// Running kernels, and how much they were asked to do while someone counts.
#ifndef DEVICE_WORK_H
#define DEVICE_WORK_H

#include "device/kernel.h"

typedef struct DeviceWork {
    uint64_t kernels;
    uint64_t bytes; // of the numbers read and written; what is broadcast counts once
    uint64_t flops; // of products, convolutions and attention
} DeviceWork;

// On the device that the first output lies on.
Status device_run(const KernelCall *call) MUST_USE;
// Whether the device has a FUSED row of kernels.def.
bool device_has(const Device *device, KernelId kernel);
// Waits until the default device, when one is open, has done everything.
Status device_finish(void) MUST_USE;
// From now on kernels are counted into *work; NULL: no more.
void device_count_work(DeviceWork *work);

#endif
