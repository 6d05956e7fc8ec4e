// The interpreter's heap: memory that the collector owns, and the list of every counted object on
// it. Counts release promptly; what reference cycles keep is found by heap_collect_cycles. Pointers
// to strings and ranges must lie on this heap, on the interpreter's stack or in static data: the
// collector does not look into malloc'd memory.
#ifndef VALUE_HEAP_H
#define VALUE_HEAP_H

#include "value/object.h"

// Starts the collector, tells it of this thread, and starts the heap of its runtime; may be called
// again.
typedef struct Heap Heap;
void heap_start(void);
void heap_end(Heap *heap); // empty again; NULL is allowed
// Zeroed, scanned, collected when nothing points to it.
void *heap_allocate(size_t bytes);
// The same for bytes without pointers; not zeroed.
void *heap_allocate_bytes(size_t bytes);
// Zeroed, scanned, lives until heap_free: for what only malloc'd memory points to.
void *heap_allocate_rooted(size_t bytes);
// Of sizes that a script decides; NULL when there is not enough memory (see base/memory.h). The
// resized memory is scanned.
void *heap_try_allocate_bytes(size_t bytes);
void *heap_try_resize(void *pointer, size_t bytes);
void heap_free(void *pointer); // NULL is allowed; only for memory that nothing else points to

// A counted object of `bytes` bytes with one reference, zeroed, on the live list as `kind`.
// Released by value_release when its count becomes 0.
Counted *heap_new_object(ValueKind kind, size_t bytes);
size_t heap_object_count(void);
// What the collector has from the system, for all runtimes of the process.
size_t heap_bytes(void);

// Runs fn(argument) on a thread of its own with a stack of that size which the collector knows, and
// waits for it. STATUS_MEMORY when the system refuses the thread.
Status heap_run_on_stack(size_t stack_bytes, void (*fn)(void *argument), void *argument) MUST_USE;

// Called for an instance of a type with has_drop when its last reference goes, before its fields
// are released. The instance is borrowed and holds one reference during the call; keeping another
// resurrects it. Errors are the hook's to report.
void heap_set_drop_hook(void (*hook)(Instance *instance));

// Releases objects that only reference cycles keep; returns how many device buffers that gave back.
// pool_set_collector and, now and then, heap_new_object call it.
size_t heap_collect_cycles(void);
// The end of the run, after every variable was cleared: the same, then empties whatever still holds
// references. Returns the buffers rescued by both.
size_t heap_clear_all(void);
// Buffers rescued from cycles since the start or the last heap_clear_all.
size_t heap_rescued_buffers(void);

// string.c: the heap's table of so many strings, each NULL until it is made.
const String **heap_characters(size_t count);

#endif
