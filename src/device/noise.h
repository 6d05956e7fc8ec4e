// Noise on the numbers that a kernel reads and makes: some times what any device's rounding and
// order of sums can change. What several draws of it leave as it is does not depend on how a device
// rounds.
#ifndef DEVICE_NOISE_H
#define DEVICE_NOISE_H

#include "device/kernel.h"

// Runs a call on a device whose handles of buffers are their bytes; `chosen` is one of many kinds
// of noise, an odd one the opposite of the even one before: what lies on an edge falls to either
// side. What the call only reads is afterwards as it was. Calls that are alike have the same noise,
// as a device always rounds in the same way: what settles without it settles.
Status noise_run(Device *device, const KernelCall *call, int chosen);

#endif
