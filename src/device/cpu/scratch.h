// Host memory that a kernel needs while it runs. One block of moderate size is kept per thread, so
// that a kernel that is called often does not touch fresh pages each time.
#ifndef DEVICE_CPU_SCRATCH_H
#define DEVICE_CPU_SCRATCH_H

#include <stddef.h>

// Uninitialised, 64-byte aligned. Give it back in the same thread before the kernel returns.
void *scratch_take(size_t bytes);
void scratch_give(void *scratch);

#endif
