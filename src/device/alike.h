// Which numbers are the same bits on every device: those that are only moved, compared or chosen,
// or added and multiplied where nothing is rounded. Devices round the rest as they like.
#ifndef DEVICE_ALIKE_H
#define DEVICE_ALIKE_H

#include "device/kernel.h"

// Before the call: the handles of its buffers are their bytes.
bool kernel_is_alike(const KernelCall *call);

#endif
