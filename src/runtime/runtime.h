// The life of a runtime: everything that runs own hangs from it (base/runtime.h).
#ifndef RUNTIME_RUNTIME_H
#define RUNTIME_RUNTIME_H

#include "base/runtime.h"

// Runtimes are independent of each other; each is used by one thread at a time, which has entered
// it (runtime_enter).
Runtime *runtime_new(void);
// Closes its devices and frees what is left; nobody is in it, its interpreter was freed, and what
// anything else held on its devices was released.
void runtime_free(Runtime *runtime);

#endif
