// Running kernels and waiting for them, and how much they were asked to do while someone counts.
#ifndef DEVICE_WORK_H
#define DEVICE_WORK_H

#include <stdatomic.h>

#include "device/kernel.h"

typedef struct DeviceWork {
    uint64_t kernels;
    uint64_t bytes; // of the numbers read and written; what is broadcast counts once
    uint64_t flops; // of products, convolutions and attention
} DeviceWork;

// What a runtime's kernels look at while they run.
typedef struct Work {
    DeviceWork *counted;
    struct Timeline *timeline; // device/timeline.h; NULL: nobody profiles
    bool (*interrupted)(void);
    bool interrupts_held;
    atomic_bool left; // cpu/: the rest of a kernel's work, because the user interrupted
} Work;
Work *work_new(void);
void work_free(Work *work);

// On the device that the first output lies on.
Status device_run(const KernelCall *call) MUST_USE;
// Whether the device has a FUSED row of kernels.def.
bool device_has(const Device *device, KernelId kernel);
// Waits until the device has done everything; of the default device, when one is open.
Status device_wait(Device *device) MUST_USE;
Status device_finish(void) MUST_USE;
// Asked now and then while the host waits for a device: where it says true the wait ends with
// STATUS_INTERRUPT. NULL: nobody asks.
void device_set_interrupted(bool (*interrupted)(void));
bool device_is_interrupted(void);
// Runs body(context, begin, end) over parts of [0, count) on the processor's worker threads
// (TL_THREADS); when the user interrupts, the parts that nobody has begun are left.
void device_share(int64_t count, void (*body)(void *context, int64_t begin, int64_t end),
                  void *context);
bool device_has_threads(void); // more than one
// While it is held no kernel ends by an interrupt: for changes that are made whole. Returns what
// was.
bool device_hold_interrupts(bool hold);
// From now on kernels are counted into *work; NULL: no more.
void device_count_work(DeviceWork *counted);

#endif
