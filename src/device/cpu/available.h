// How much memory the system has left for this process.
#ifndef DEVICE_CPU_AVAILABLE_H
#define DEVICE_CPU_AVAILABLE_H

#include "device/device.h"

// A number of a file such as /proc/meminfo, on the line that begins with `key`; "": the first
// number. UINT64_MAX where there is none.
uint64_t cpu_number_in(const char *path, const char *key);
// What the machine has available, or a control group of the process (Linux, cgroups of version 1
// and 2), in bytes.
uint64_t cpu_available(const Device *device);
// The groups that a file like /proc/self/cgroup names, below the folder where they are mounted, and
// those around them; UINT64_MAX where none has a limit.
uint64_t cpu_group_available(const char *groups, const char *mounted);

#endif
