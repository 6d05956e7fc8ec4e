#include "base/runtime.h"

_Thread_local Runtime *runtime_current;

Runtime *runtime_enter(Runtime *runtime) {
    Runtime *before = runtime_current;
    runtime_current = runtime;
    return before;
}
