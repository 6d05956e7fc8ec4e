// Unit tests call the layers directly: the thread that runs them is in a runtime from the start.
#include "runtime/runtime.h"

__attribute__((constructor)) static void begin(void) {
    runtime_enter(runtime_new());
}

__attribute__((destructor)) static void end(void) {
    runtime_free(runtime_current);
}
