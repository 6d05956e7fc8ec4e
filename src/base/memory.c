// Host memory: malloc that does not return NULL, arenas, growing arrays, and what happens when the
// system refuses. Knows nothing of the interpreter: a flag of the runtime tells it.
#include "base/memory.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/output.h"
#include "base/runtime.h"
#include "base/source.h"

enum { RESERVE_BYTES = 4 * 1024 * 1024 };

// Returned when the system refuses, so that what is under way can be ended in order. Mapped,
// because malloc may keep what is freed, and the collector's heap could not have it. The memory is
// the process's, and so is its reserve.
static _Atomic(void *) reserve;

// What tests ask for: the request so many from now is refused, and every one above a size. They
// stand for the system, which is one for all runtimes.
static bool refusing;
static _Atomic int64_t refuse_in;
static size_t refuse_above;

void memory_fill_reserve(void) {
    if (atomic_load(&reserve)) return;
    void *empty = NULL;
    void *filled =
        mmap(NULL, RESERVE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (filled == MAP_FAILED) return;
    if (!atomic_compare_exchange_strong(&reserve, &empty, filled)) munmap(filled, RESERVE_BYTES);
}

void memory_refuse(int64_t nth, size_t above) {
    refusing = true;
    atomic_store(&refuse_in, nth);
    refuse_above = above ? above : SIZE_MAX;
}

bool memory_refuses(size_t bytes) {
    if (LIKELY(!refusing)) return false;
    return bytes > refuse_above || atomic_fetch_sub(&refuse_in, 1) == 1;
}

void memory_note_refusal(size_t bytes) {
    void *room = atomic_exchange(&reserve, NULL);
    if (room) munmap(room, RESERVE_BYTES);
    Runtime *runtime = runtime_current;
    if (!runtime) return;
    size_t none = 0; // the first refusal is the one to name
    atomic_compare_exchange_strong(&runtime->exhausted_bytes, &none, bytes ? bytes : 1);
    runtime_interrupt(runtime, INTERRUPT_MEMORY);
}

static Status refuse_foreseen(void) {
    fail(STATUS_MEMORY, "%s", atomic_exchange(&runtime_current->foreseen, NULL));
    return fail_help("hold less at once, or make tensors in parts; this was foretold while the "
                     "program ran");
}

Status memory_exhausted(void) {
    if (UNLIKELY(atomic_load(&runtime_current->foreseen) != NULL)) return refuse_foreseen();
    size_t bytes = atomic_exchange(&runtime_current->exhausted_bytes, 0);
    if (LIKELY(bytes == 0)) return STATUS_OK;
    memory_fill_reserve();
    fail(STATUS_MEMORY, "out of memory: the system refused %zu bytes", bytes);
    return fail_help("let go of what is no longer needed (x = none), or work in smaller pieces");
}

_Noreturn void memory_end(size_t bytes) {
    SourcePlace place = {0};
    if (runtime_current) {
        output_flush();
        place = source_find(origin_current.at);
    }
    fprintf(stderr, "error[memory]: out of memory: the system refused %zu bytes\n", bytes);
    if (place.file) fprintf(stderr, " --> %s:%d:%d\n", place.file->name, place.line, place.column);
    _Exit(1);
}

void *memory_allocate(size_t bytes) {
    return memory_resize(NULL, bytes);
}

void *memory_allocate_zeroed(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) memory_end(SIZE_MAX);
    if (bytes == 0) bytes = 1;
    void *pointer = memory_refuses(bytes) ? NULL : calloc(1, bytes);
    if (LIKELY(pointer != NULL)) return pointer;
    memory_note_refusal(bytes);
    pointer = memory_refuses(bytes) ? NULL : calloc(1, bytes);
    if (!pointer) memory_end(bytes);
    return pointer;
}

void *memory_try_resize(void *pointer, size_t bytes) {
    if (bytes == 0) bytes = 1;
    void *resized = memory_refuses(bytes) ? NULL : realloc(pointer, bytes);
    if (LIKELY(resized != NULL)) return resized;
    memory_note_refusal(bytes);
    return memory_refuses(bytes) ? NULL : realloc(pointer, bytes);
}

void *memory_resize(void *pointer, size_t bytes) {
    void *resized = memory_try_resize(pointer, bytes);
    if (UNLIKELY(!resized)) memory_end(bytes);
    return resized;
}

char *memory_copy_string(const char *string, size_t length) {
    char *copy = memory_allocate(length + 1);
    memcpy(copy, string, length);
    ASSERT(string != NULL || length == 0);
    copy[length] = '\0';
    return copy;
}

void *vector_grow(void *items, size_t *capacity, size_t item_bytes) {
    ASSERT(item_bytes > 0);
    size_t grown = *capacity ? *capacity * 2 : 8;
    ASSERT(grown <= SIZE_MAX / item_bytes);
    *capacity = grown;
    return memory_resize(items, grown * item_bytes);
}

enum { ARENA_BLOCK_BYTES = 64 * 1024, ARENA_ALIGNMENT = 16 };

struct ArenaBlock {
    ArenaBlock *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

void *arena_allocate(Arena *arena, size_t bytes) {
    bytes = (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    ASSERT(bytes <= SIZE_MAX - ARENA_ALIGNMENT);
    ArenaBlock *block = arena->blocks;
    if (!block || block->size - block->used < bytes) {
        ASSERT(!block || block->used <= block->size);
        size_t size = bytes > ARENA_BLOCK_BYTES ? bytes : ARENA_BLOCK_BYTES;
        block = memory_allocate(sizeof(ArenaBlock) + size);
        *block = (ArenaBlock){.next = arena->blocks, .size = size};
        arena->blocks = block;
    }
    void *pointer = block->bytes + block->used;
    ASSERT(bytes <= block->size - block->used);
    block->used += bytes;
    return memset(pointer, 0, bytes);
}

char *arena_copy_string(Arena *arena, const char *string, size_t length) {
    char *copy = arena_allocate(arena, length + 1);
    memcpy(copy, string, length);
    return copy;
}

void arena_free(Arena *arena) {
    while (arena->blocks) {
        ArenaBlock *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}

void memory_free_of(void *pointer_or_vector) {
    void *memory, *none = NULL;
    memcpy(&memory, pointer_or_vector, sizeof memory);
    free(memory);
    memcpy(pointer_or_vector, &none, sizeof none);
}
