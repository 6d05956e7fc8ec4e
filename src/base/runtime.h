// Everything that a run owns hangs from a Runtime. Each part is a struct that the named file alone
// knows, makes and frees; runtime/runtime.c does so for all of them, in order.
//
// Who has a handle that leads to the runtime (an Interp, a Device) uses that. Operations on
// tensors, values and source texts have none, and a parameter more on each of some thousand
// functions would serve nobody: they belong to the runtime of their thread, which whoever enters
// from outside (a program's main, the embedding API, a worker that takes a part of a kernel) sets.
#ifndef BASE_RUNTIME_H
#define BASE_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

// What the next statement, call or iteration must look at; 0 most of the time. EXIT: a drop has
// called exit(n), which the code that let its value go has not seen.
enum { INTERRUPT_SIGNAL = 1, INTERRUPT_MEMORY = 2, INTERRUPT_EXIT = 4 };

typedef struct Runtime {
    atomic_int interrupts;     // from any thread and from signal handlers
    atomic_bool holds_signals; // INTERRUPT_SIGNAL waits until whoever holds it asks
    atomic_bool signal_waits;
    atomic_int signal; // main/program.c: the one that came; 0: none that counts any more
    atomic_size_t exhausted_bytes; // base/memory.c: of the request that was refused; 0: none was
    // base/memory.c: why the program cannot fit, which was found next to its run; NULL: nobody
    // asks.
    _Atomic(const char *) foreseen;
    bool foretells;                // device/foretell.h; here, because calls ask
    bool tape_recording;           // tensor/gradient/tape.h; here, because every operation asks
    atomic_bool file_faulted;      // base/file_map.c: a mapped file lacked bytes; nobody asked yet
    struct Sources *sources;       // base/source.c
    struct Output *output;         // base/output.c
    struct Aside *aside;           // base/aside.c; NULL: files are written where they belong
    struct Devices *devices;       // device/device.c
    struct Work *work;             // device/work.c
    struct Tensors *tensors;       // tensor/tensor.c
    struct Tape *tape;             // tensor/gradient/tape.c
    struct Heap *heap;             // value/heap.c; NULL until heap_start
    struct Evaluation *evaluation; // eval/interp.c
    struct Learning *learning;     // learn/learn.c
    struct Input *input;           // library/builtin_output.c
    struct Patterns *patterns;     // library/builtin_regex.c
} Runtime;

// NULL in a thread that runs nothing of a runtime's.
extern _Thread_local Runtime *runtime_current;

// The runtime of this thread from here on; returns the one before, to go back to.
Runtime *runtime_enter(Runtime *runtime);

static inline int runtime_interrupts(const Runtime *runtime) {
    return atomic_load_explicit(&runtime->interrupts, memory_order_relaxed);
}
// Async-signal-safe.
static inline void runtime_interrupt(Runtime *runtime, int flags) {
    if (flags & INTERRUPT_SIGNAL && atomic_load(&runtime->holds_signals)) {
        atomic_store(&runtime->signal_waits, true);
        flags &= ~INTERRUPT_SIGNAL;
    }
    atomic_fetch_or_explicit(&runtime->interrupts, flags, memory_order_release);
}
// Returns the setting before. An interrupt that came while signals were held is raised afterwards.
static inline bool runtime_hold_signals(Runtime *runtime, bool holds) {
    bool before = atomic_exchange(&runtime->holds_signals, holds);
    if (!holds && atomic_exchange(&runtime->signal_waits, false))
        runtime_interrupt(runtime, INTERRUPT_SIGNAL);
    return before;
}
// Those of the flags that had come.
static inline int runtime_take_interrupts(Runtime *runtime, int flags) {
    return atomic_fetch_and_explicit(&runtime->interrupts, ~flags, memory_order_acquire) & flags;
}

#endif
