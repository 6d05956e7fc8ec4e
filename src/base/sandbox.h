// A process that may touch only one folder: for programs that one does not trust. The kernel
// enforces it (Landlock, Linux 5.13), so no way of opening a file is forgotten.
#ifndef BASE_SANDBOX_H
#define BASE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

// From now until the process ends, this thread and those it starts read and write files below
// `folder` only, and read the files and folders of `readable` that there are; the system's shared
// libraries, fonts and devices stay readable, because libraries are loaded at their first use.
// `offline`: no TCP connection is made or taken either, where the kernel can withhold that (6.7).
// `folder` is borrowed and must outlive the process's last error. STATUS_IO when it cannot be
// opened, STATUS_SETTING when this system has no Landlock.
typedef struct Sandbox {
    const char *folder;
    const char *const *readable;
    size_t readable_count;
    bool offline;
} Sandbox;
Status sandbox_enter(const Sandbox *sandbox) MUST_USE;

// Whether a program may read what that names, or know that it is there: not what only libraries
// need. Else errno is EACCES.
bool sandbox_allows(const char *path);

// The words of a file's errno: strerror's, or that the path is outside the sandbox.
const char *file_problem(int error);

#endif
