// The collector's memory, the live list of counted objects, prompt release and the search for
// reference cycles. The only file that knows libgc. Knows nothing of how code runs.
#define GC_THREADS
#include "value/heap.h"

#include <gc.h>
#include <gc/gc_mark.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "base/runtime.h"
#include "device/buffer.h"
#include "device/settings.h"
#include "value/dict.h"

// Precedes every counted object. An object is on the live list while its count is above 0; the list
// is what keeps it from the collector, so a cycle survives until heap_collect_cycles finds it.
typedef struct Header {
    struct Header *previous, *next; // live list; next alone: the release queue
    struct Header *work;            // stack of reached objects, then chain of garbage
    int64_t external;               // references that do not come from other objects
    uint32_t kind;
    uint16_t bytes; // of the object after it; 0: more than SPARE_BYTES_MAX
    bool reached;
} Header;

enum { CYCLES_MIN = 100000, SPARE_BYTES_MAX = 64, SPARE_UNIT = 8, SPARES_MAX = 65536 };
enum { HUGE_PAGE_BYTES = 2 << 20, LARGE_BYTES_MIN = 4 * HUGE_PAGE_BYTES };

// Objects whose count became 0 and whose contents are still to be released, in order.
typedef struct ReleaseQueue {
    Header *first, *last;
} ReleaseQueue;

// Small objects that were released, and some that were never used, wait for one of the same size,
// linked by `next`: making one then costs no call of the collector.
typedef struct Spares {
    Header *first;
    int count;
} Spares;

// Lies in the collector's memory, which everything that it points to stays alive by. The collector
// itself is one for the process, all heaps share it.
struct Heap {
    Header live; // the ends of the list
    // The fewest objects alive since the last search for cycles: the next one is due when as many
    // again (and some) were added.
    size_t object_count, object_count_least;
    size_t rescued;
    bool collecting;
    void (*drop_hook)(Instance *instance);
    ReleaseQueue *active_queue;
    Header *reached_stack;
    Spares spares[SPARE_BYTES_MAX / SPARE_UNIT + 1];
    const String **characters; // string.c; NULL until the first is made
};

static inline Heap *own_heap(void) {
    return runtime_current->heap;
}

static void collect_for_pool(void) {
    heap_collect_cycles();
}

// A program with little on the heap would else collect every few hundred KB, and mark all of its
// own code each time.
enum { COLLECT_MIN_BYTES = 2 << 20 };
static pthread_key_t registered_key; // set in threads that the collector was told of here
static int large_kind;               // of objects that are scanned, but not zeroed by the collector

static void leave_collector(void *registered) {
    (void)registered;
    GC_unregister_my_thread();
}

// The collector takes the thread that starts it for the first of the process, and its stack for
// that of main, unless it is told.
static void start_collector(void) {
    struct GC_stack_base base;
    ASSERT(pthread_key_create(&registered_key, leave_collector) == 0);
    GC_set_warn_proc(GC_ignore_warn_proc);
    if (GC_get_stack_base(&base) == GC_SUCCESS) GC_set_stackbottom(NULL, &base);
    GC_set_markers_count(1);
    GC_set_all_interior_pointers(1);
    GC_set_min_bytes_allocd(COLLECT_MIN_BYTES);
    GC_INIT();
    large_kind = (int)GC_new_kind(GC_new_free_list(), GC_DS_LENGTH, 1, 0);
    GC_allow_register_threads();
    pthread_setspecific(registered_key, &registered_key); // it may end before the process does
}

// Threads that are not of our making: what their stacks point to stays, until they end.
static void register_thread(void) {
    static _Thread_local bool known;
    if (LIKELY(known)) return;
    known = true;
    if (GC_thread_is_registered()) return;
    struct GC_stack_base base;
    ASSERT(GC_get_stack_base(&base) == GC_SUCCESS && GC_register_my_thread(&base) == GC_SUCCESS);
    pthread_setspecific(registered_key, &registered_key);
}

void heap_start(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_collector);
    register_thread();
    if (own_heap()) return;
    Heap *heap = heap_allocate_rooted(sizeof *heap);
    ASSERT(runtime_current != NULL);
    heap->live.previous = heap->live.next = &heap->live;
    runtime_current->heap = heap;
    pool_set_collector(collect_for_pool);
}

static bool is_strict(void) {
    DeviceSettings settings;
    return device_settings_read(&settings) == STATUS_OK &&
           settings.memory_check == MEMORY_CHECK_STRICT;
}

void heap_end(Heap *heap) {
    if (!heap) return;
    // heap_clear_all came before, or nothing was made. An object that C code has lost ends nobody's
    // program: it is a mistake where memory is asked to be exact.
    if (is_strict()) ASSERT(heap->live.next == &heap->live);
    heap_free(heap->characters);
    heap_free(heap);
}

const String **heap_characters(size_t count) {
    Heap *heap = own_heap();
    if (UNLIKELY(!heap->characters))
        heap->characters = heap_allocate_rooted(count * sizeof *heap->characters);
    return heap->characters;
}

// A request, and when it is refused once more from the reserve (base/memory.h). NULL: not even so.
#define REQUEST(call, bytes)                                                                       \
    ({                                                                                             \
        void *made_ = memory_refuses(bytes) ? NULL : (call);                                       \
        if (UNLIKELY(!made_)) {                                                                    \
            memory_note_refusal(bytes);                                                            \
            made_ = memory_refuses(bytes) ? NULL : (call);                                         \
        }                                                                                          \
        made_;                                                                                     \
    })

static void *certain(void *pointer, size_t bytes) {
    if (UNLIKELY(!pointer)) memory_end(bytes);
    return pointer;
}

void *heap_allocate(size_t bytes) {
    return certain(REQUEST(GC_MALLOC(bytes), bytes), bytes);
}

void *heap_try_allocate_bytes(size_t bytes) {
    return REQUEST(GC_MALLOC_ATOMIC(bytes), bytes);
}

void *heap_allocate_bytes(size_t bytes) {
    return certain(heap_try_allocate_bytes(bytes), bytes);
}

void *heap_allocate_rooted(size_t bytes) {
    return certain(REQUEST(GC_MALLOC_UNCOLLECTABLE(bytes), bytes), bytes);
}

// Zeroed, on huge pages where the system has them: they are asked for before anything is written.
static void *allocate_large(size_t bytes) {
    ASSERT(bytes >= LARGE_BYTES_MIN);
    void *made = GC_generic_malloc(bytes, large_kind);
    if (!made) return NULL;
    uintptr_t begin = ((uintptr_t)made + HUGE_PAGE_BYTES - 1) & -(uintptr_t)HUGE_PAGE_BYTES;
    uintptr_t end = ((uintptr_t)made + bytes) & -(uintptr_t)HUGE_PAGE_BYTES;
    madvise((void *)begin, end - begin, MADV_HUGEPAGE); // only advice: a refusal changes nothing
    return memset(made, 0, GC_size(made));
}

static void *resize_large(void *pointer, size_t bytes) {
    size_t before = pointer ? GC_size(pointer) : 0;
    if (before >= bytes) return pointer;
    void *made = REQUEST(allocate_large(bytes), bytes);
    if (made && pointer) {
        memcpy(made, pointer, before);
        GC_FREE(pointer);
    }
    return made;
}

void *heap_try_resize(void *pointer, size_t bytes) {
    if (bytes >= LARGE_BYTES_MIN) return resize_large(pointer, bytes);
    if (!pointer) return REQUEST(GC_MALLOC(bytes), bytes);
    return REQUEST(GC_REALLOC(pointer, bytes), bytes);
}

void heap_free(void *pointer) {
    GC_FREE(pointer);
}

static Header *header_of(const void *object) {
    return (Header *)((uintptr_t)object - sizeof(Header));
}

static Counted *object_of(Header *header) {
    return (Counted *)(header + 1);
}

static void link_live(Heap *heap, Header *header) {
    header->previous = heap->live.previous;
    header->next = &heap->live;
    heap->live.previous->next = header;
    heap->live.previous = header;
    heap->object_count++;
}

static void unlink_live(Heap *heap, Header *header) {
    ASSERT(heap->object_count > 0);
    header->previous->next = header->next;
    header->next->previous = header->previous;
    header->previous = header->next = NULL;
    if (--heap->object_count < heap->object_count_least)
        heap->object_count_least = heap->object_count;
}

static void add_spare(Heap *heap, Header *header, size_t bytes) {
    ASSERT(bytes > 0 && bytes <= SPARE_BYTES_MAX && bytes % SPARE_UNIT == 0);
    Spares *list = &heap->spares[bytes / SPARE_UNIT];
    header->bytes = (uint16_t)bytes;
    header->next = list->first;
    list->first = header;
    list->count++;
}

// As many as the collector has together, for one passage of its lock.
static void make_spares(Heap *heap, size_t bytes) {
    size_t whole = sizeof(Header) + bytes;
    void *next, *made = certain(REQUEST(GC_malloc_many(whole), whole), whole);
    for (; made; made = next) {
        next = GC_NEXT(made);
        GC_NEXT(made) = NULL;
        add_spare(heap, made, bytes);
    }
}

static Header *allocate_object(Heap *heap, size_t bytes) {
    bool small = bytes <= SPARE_BYTES_MAX && bytes % SPARE_UNIT == 0;
    if (!small) return heap_allocate(sizeof(Header) + bytes);
    Spares *list = &heap->spares[bytes / SPARE_UNIT];
    if (!list->first) make_spares(heap, bytes);
    Header *spare = list->first;
    list->first = spare->next;
    ASSERT(list->count > 0);
    list->count--;
    return spare;
}

// What waits is empty, so that it keeps nothing alive.
static void free_object(Heap *heap, Header *header) {
    if (header->bytes == 0 || heap->spares[header->bytes / SPARE_UNIT].count >= SPARES_MAX) {
        heap_free(header);
        return;
    }
    size_t bytes = header->bytes;
    memset(header, 0, sizeof *header + bytes);
    add_spare(heap, header, bytes);
}

Counted *heap_new_object(ValueKind kind, size_t bytes) {
    Heap *heap = own_heap();
    size_t added = heap->object_count - heap->object_count_least;
    if (UNLIKELY(added >= CYCLES_MIN && added >= heap->object_count_least)) heap_collect_cycles();
    Header *header = allocate_object(heap, bytes);
    header->kind = (uint32_t)kind;
    link_live(heap, header);
    Counted *object = object_of(header);
    ASSERT(object->refs == 0); // nobody has held on to what waited to be used again
    object->refs = 1;
    return object;
}

size_t heap_bytes(void) {
    return GC_get_heap_size() - GC_get_unmapped_bytes();
}

size_t heap_object_count(void) {
    return own_heap() ? own_heap()->object_count : 0;
}

void heap_set_drop_hook(void (*hook)(Instance *instance)) {
    own_heap()->drop_hook = hook;
}

// Calls visit for each value that the object holds.
static void visit_contents(Header *header, void (*visit)(Value value)) {
    Counted *object = object_of(header);
    switch ((ValueKind)header->kind) {
    case VALUE_LIST:
    case VALUE_TUPLE: {
        List *list = (List *)object;
        for (size_t i = 0; i < list->count; i++) visit(list->items[i]);
        break;
    }
    case VALUE_DICT: dict_visit((Dict *)object, visit); break;
    case VALUE_STRUCT: {
        Instance *instance = (Instance *)object;
        for (size_t i = 0; i < instance->type->field_count; i++) visit(instance->fields[i]);
        break;
    }
    case VALUE_FUNCTION: {
        Function *function = (Function *)object;
        for (size_t i = 0; i < function->cell_count; i++) {
            if (!function->cells[i]) continue;
            visit((Value){.kind = VALUE_CELL, .as.cell = function->cells[i]});
        }
        break;
    }
    case VALUE_CELL: visit(((Cell *)object)->value); break;
    case VALUE_HANDLE: visit(((Handle *)object)->attached); break;
    default: break;
    }
}

// Takes the contents away from an object, so that it holds nothing; releases them.
static void empty_object(Header *header) {
    Counted *object = object_of(header);
    switch ((ValueKind)header->kind) {
    case VALUE_LIST:
    case VALUE_TUPLE: {
        List *list = (List *)object;
        List taken = *list;
        list->items = NULL;
        list->count = list->capacity = 0;
        for (size_t i = 0; i < taken.count; i++) value_release(taken.items[i]);
        heap_free(taken.items);
        break;
    }
    case VALUE_DICT: dict_clear((Dict *)object); break;
    case VALUE_STRUCT: {
        Instance *instance = (Instance *)object;
        for (size_t i = 0; i < instance->type->field_count; i++) {
            Value field = instance->fields[i];
            instance->fields[i] = value_absent();
            value_release(field);
        }
        break;
    }
    case VALUE_FUNCTION: {
        Function *function = (Function *)object;
        for (size_t i = 0; i < function->cell_count; i++) {
            if (!function->cells[i]) continue;
            Value cell = {.kind = VALUE_CELL, .as.cell = function->cells[i]};
            function->cells[i] = NULL;
            value_release(cell);
        }
        break;
    }
    case VALUE_CELL: {
        Value content = ((Cell *)object)->value;
        ((Cell *)object)->value = value_absent();
        value_release(content);
        break;
    }
    case VALUE_HANDLE: {
        Handle *handle = (Handle *)object;
        void *payload = handle->payload;
        Value attached = handle->attached;
        handle->payload = NULL;
        handle->attached = value_none();
        if (payload && handle->type->release) handle->type->release(payload);
        value_release(attached);
        break;
    }
    default: break;
    }
}

static bool wants_drop(const Heap *heap, Header *header) {
    if (header->kind != VALUE_STRUCT || !heap->drop_hook) return false;
    Instance *instance = (Instance *)object_of(header);
    return instance->type->has_drop && !instance->dropped;
}

// Runs the drop hook of an instance; what it releases is released at once, not queued behind us.
static void run_drop(Heap *heap, Header *header) {
    ReleaseQueue *outer = heap->active_queue;
    heap->active_queue = NULL;
    Instance *instance = (Instance *)object_of(header);
    instance->dropped = true;
    heap->drop_hook(instance);
    heap->active_queue = outer;
}

static void destroy_queued(Heap *heap, Header *header) {
    if (wants_drop(heap, header)) {
        Counted *object = object_of(header);
        object->refs = 1;
        link_live(heap, header);
        run_drop(heap, header);
        ASSERT(object->refs > 0);
        if (--object->refs > 0) return;
        unlink_live(heap, header);
    }
    empty_object(header);
    free_object(heap, header);
}

void value_release_counted(Value value) {
    if (value.kind == VALUE_TENSOR) {
        tensor_destroy(value.as.tensor);
        return;
    }
    ASSERT(value.as.counted->refs == 0); // -1: released once more than retained
    Heap *heap = own_heap();
    Header *header = header_of(value.as.counted);
    ASSERT(header->kind == value.kind);
    unlink_live(heap, header);
    if (heap->active_queue) {
        if (heap->active_queue->last)
            heap->active_queue->last->next = header;
        else
            heap->active_queue->first = header;
        heap->active_queue->last = header;
        return;
    }
    ReleaseQueue queue = {header, header};
    heap->active_queue = &queue;
    while (queue.first) {
        Header *first = queue.first;
        queue.first = first->next;
        if (!queue.first) queue.last = NULL;
        first->next = NULL;
        destroy_queued(heap, first);
    }
    heap->active_queue = NULL;
}

static void count_internal(Value value) {
    if (value_is_counted(value) && value.kind != VALUE_TENSOR)
        header_of(value.as.counted)->external--;
}

static void reach(Value value) {
    if (!value_is_counted(value) || value.kind == VALUE_TENSOR) return;
    Header *header = header_of(value.as.counted);
    if (header->reached) return;
    header->reached = true;
    Heap *heap = own_heap();
    header->work = heap->reached_stack;
    heap->reached_stack = header;
}

// Every count is exact, so an object whose references all come from other objects, none of which is
// reached from outside, can only be part of a cycle. Returns the chain of such objects (by `work`).
static Header *find_unreached(Heap *heap) {
    for (Header *h = heap->live.next; h != &heap->live; h = h->next) {
        h->external = object_of(h)->refs;
        h->reached = false;
    }
    for (Header *h = heap->live.next; h != &heap->live; h = h->next)
        visit_contents(h, count_internal);
    for (Header *h = heap->live.next; h != &heap->live; h = h->next) {
        ASSERT(h->external >= 0); // as many hold an object as its count says
        if (h->external == 0 || h->reached) continue;
        h->reached = true;
        h->work = NULL;
        heap->reached_stack = h;
        while (heap->reached_stack) {
            Header *top = heap->reached_stack;
            heap->reached_stack = top->work;
            visit_contents(top, reach);
        }
    }
    Header *garbage = NULL;
    for (Header *h = heap->live.previous; h != &heap->live; h = h->previous) {
        if (h->reached) continue;
        h->work = garbage;
        garbage = h;
    }
    return garbage;
}

// Empties a chain of objects; each is held until its own turn, so the chain stays valid.
static void release_chain(Header *chain) {
    for (Header *h = chain; h; h = h->work) object_of(h)->refs++;
    while (chain) {
        Header *next = chain->work;
        empty_object(chain);
        ASSERT(object_of(chain)->refs > 0);
        value_release((Value){.kind = chain->kind, .as.counted = object_of(chain)});
        chain = next;
    }
}

// Drops of cyclic garbage may reach any of it again: true when one ran, then all is looked at anew.
static bool run_one_drop(Heap *heap, Header *garbage) {
    for (Header *h = garbage; h; h = h->work) {
        if (!wants_drop(heap, h)) continue;
        Value held = value_retain((Value){.kind = VALUE_STRUCT, .as.counted = object_of(h)});
        run_drop(heap, h);
        value_release(held);
        return true;
    }
    return false;
}

static uint64_t live_buffers(void) {
    Device *device = device_default_opened();
    return device ? pool_statistics(device).live_buffers : 0;
}

size_t heap_collect_cycles(void) {
    Heap *heap = own_heap();
    if (heap->collecting) return 0;
    heap->collecting = true;
    uint64_t before = live_buffers();
    Header *garbage = find_unreached(heap);
    while (garbage && run_one_drop(heap, garbage)) garbage = find_unreached(heap);
    release_chain(garbage);
    uint64_t after = live_buffers();
    size_t found = before > after ? (size_t)(before - after) : 0;
    heap->rescued += found;
    heap->object_count_least = heap->object_count;
    heap->collecting = false;
    return found;
}

static Header *chain_of_all(Heap *heap) {
    Header *chain = NULL;
    for (Header *h = heap->live.previous; h != &heap->live; h = h->previous) {
        h->work = chain;
        chain = h;
    }
    return chain;
}

size_t heap_clear_all(void) {
    Heap *heap = own_heap();
    heap_collect_cycles();
    ASSERT(!heap->collecting);
    uint64_t before = live_buffers();
    Header *rest = chain_of_all(heap);
    while (rest && run_one_drop(heap, rest)) rest = chain_of_all(heap);
    release_chain(rest);
    uint64_t after = live_buffers();
    size_t total = heap->rescued + (before > after ? (size_t)(before - after) : 0);
    heap->rescued = 0;
    GC_gcollect();
    return total;
}

size_t heap_rescued_buffers(void) {
    return own_heap()->rescued;
}

// A thread's errors are its own: the record travels back to the caller.
typedef struct StackJob {
    Runtime *runtime;
    void (*fn)(void *argument);
    void *argument;
    Origin origin;
    ErrorRecord error;
} StackJob;

static void *run_job(void *pointer) {
    StackJob *job = pointer;
    ASSERT(job->runtime != NULL);
    runtime_current = job->runtime;
    origin_current = job->origin;
    job->fn(job->argument);
    job->error = *error_current();
    return NULL;
}

// Signals go to the thread that works, so that they interrupt what it waits for in the system.
static void wait_for(pthread_t thread) {
    sigset_t interrupts, before;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    sigaddset(&interrupts, SIGTERM);
    sigaddset(&interrupts, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &interrupts, &before);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

Status heap_run_on_stack(size_t stack_bytes, void (*fn)(void *argument), void *argument) {
    heap_start();
    ASSERT(stack_bytes > 0 && fn != NULL);
    StackJob *job = heap_allocate_rooted(sizeof *job);
    *job = (StackJob){
        .runtime = runtime_current, .fn = fn, .argument = argument, .origin = origin_current};
    pthread_attr_t attributes;
    pthread_t thread;
    int error = pthread_attr_init(&attributes);
    if (!error) error = pthread_attr_setstacksize(&attributes, stack_bytes);
    if (!error) error = pthread_create(&thread, &attributes, run_job, job);
    pthread_attr_destroy(&attributes);
    if (error) {
        heap_free(job);
        return fail(STATUS_MEMORY, "the system refused a thread with a stack of %zu MB: %s",
                    stack_bytes >> 20, strerror(error));
    }
    wait_for(thread);
    *error_current() = job->error;
    heap_free(job);
    return STATUS_OK;
}
