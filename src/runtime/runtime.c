// Makes the parts of a runtime and frees them in reverse order. Knows what they are called.
#include "runtime/runtime.h"

#include <stdlib.h>

#include "base/aside.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/source.h"
#include "device/work.h"
#include "eval/interp.h"
#include "learn/learn.h"
#include "library/state.h"
#include "tensor/gradient/tape.h"
#include "tensor/state.h"
#include "value/heap.h"

Runtime *runtime_new(void) {
    memory_fill_reserve();
    Runtime *runtime = memory_allocate_zeroed(1, sizeof *runtime), *before = runtime_enter(runtime);
    runtime->output = output_new();
    runtime->sources = sources_new();
    runtime->devices = devices_new();
    runtime->work = work_new();
    runtime->tensors = tensors_new();
    runtime->tape = tape_new();
    runtime->evaluation = evaluation_new();
    runtime->learning = learning_new();
    runtime->input = input_new();
    runtime->patterns = patterns_new();
    runtime_enter(before);
    return runtime;
}

void runtime_free(Runtime *runtime) {
    Runtime *before = runtime_enter(runtime);
    patterns_free(runtime->patterns);
    input_free(runtime->input);
    learning_free(runtime->learning);
    evaluation_free(runtime->evaluation);
    heap_end(runtime->heap);
    devices_free(runtime->devices); // before what their buffers' owners look at
    tape_free(runtime->tape);
    tensors_free(runtime->tensors);
    work_free(runtime->work);
    aside_free(runtime->aside);
    sources_free(runtime->sources);
    output_free(runtime->output);
    runtime_enter(before == runtime ? NULL : before);
    free(runtime);
}
