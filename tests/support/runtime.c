// Unit tests call the layers directly: the thread that runs them is in a runtime from the start.
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"

__attribute__((constructor)) static void begin(void) {
    runtime_enter(runtime_new());
}

// The driver of a GPU has ended by its own atexit when this runs: what is open there is left to it.
__attribute__((destructor)) static void end(void) {
    const char *device = getenv("TL_TEST_DEVICE");
    if (!device || strcmp(device, "cpu") == 0) runtime_free(runtime_current);
}
