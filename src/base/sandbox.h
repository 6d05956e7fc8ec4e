// A process that may touch only one folder: for programs that one does not trust. The kernel
// enforces it (Landlock, Linux 5.13), so no way of opening a file is forgotten.
#ifndef BASE_SANDBOX_H
#define BASE_SANDBOX_H

#include "base/status.h"

// From now until the process ends, this thread and those it starts read and write files below
// `folder` only; the system's shared libraries, fonts and devices stay readable, because libraries
// are loaded at their first use. `folder` is borrowed and must outlive the process's last error.
// STATUS_IO when the folder cannot be opened, STATUS_SETTING when this system has no Landlock.
Status sandbox_enter(const char *folder) MUST_USE;

// The words of a file's errno: strerror's, or that the path is outside the sandbox.
const char *file_problem(int error);

#endif
