// malloc that does not return NULL, an arena, and a growing array.
//
// When the system refuses memory, a reserve goes back to it and the request is served from that;
// the refusal is noted at the runtime, and whoever runs a program fails its next statement with
// "out of memory" (memory_exhausted). A request that is too large even so gives NULL from
// memory_try_resize, whose callers leave what they make incomplete, because no statement follows;
// from the others it ends the process with the same words.
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>
#include <string.h>

#include "base/status.h"

void *memory_allocate(size_t bytes);                     // uninitialised
void *memory_allocate_zeroed(size_t count, size_t size); // overflow-checked
void *memory_resize(void *pointer, size_t bytes);
void *memory_try_resize(void *pointer, size_t bytes);        // NULL when there is not enough
char *memory_copy_string(const char *string, size_t length); // adds a NUL

// Before a run: puts the reserve aside, which all runtimes of the process share.
void memory_fill_reserve(void);
// STATUS_MEMORY once after memory was refused to the runtime of this thread, with the words
// recorded; fills the reserve again.
Status memory_exhausted(void) MUST_USE;
// For tests: from now the nth request is refused once (0: none), and always each of more than
// `above` bytes (0: none).
void memory_refuse(int64_t nth, size_t above);
// For other allocators (the collector's heap, the device's pool): whether to refuse this request,
// the note that one was refused, and the end when it cannot be served at all.
bool memory_refuses(size_t bytes);
void memory_note_refusal(size_t bytes);
COLD _Noreturn void memory_end(size_t bytes);

// An arena: everything allocated from it goes at once. Alignment 16.
typedef struct ArenaBlock ArenaBlock;
typedef struct Arena {
    ArenaBlock *blocks;
} Arena;
void *arena_allocate(Arena *arena, size_t bytes);                         // zeroed
char *arena_copy_string(Arena *arena, const char *string, size_t length); // adds a NUL
void arena_free(Arena *arena);

// A growing array of T: declare `VECTOR(Node *) nodes;`, zero-initialise, push, free.
#define VECTOR(T)                                                                                  \
    struct {                                                                                       \
        T *items;                                                                                  \
        size_t count, capacity;                                                                    \
    }
#define VECTOR_PUSH(vector, item)                                                                  \
    do {                                                                                           \
        if ((vector)->count == (vector)->capacity)                                                 \
            (vector)->items =                                                                      \
                vector_grow((vector)->items, &(vector)->capacity, sizeof *(vector)->items);        \
        (vector)->items[(vector)->count++] = (item);                                               \
    } while (0)
#define VECTOR_FREE(vector)                                                                        \
    (free((vector)->items), (vector)->items = NULL, (vector)->count = (vector)->capacity = 0)
void *vector_grow(void *items, size_t *capacity, size_t item_bytes);

// Before the declaration of a pointer to memory, or of a VECTOR: freed when its scope is left.
// A function that fails leaves NULL: memory_free_of(out).
#define SCOPED_MEMORY __attribute__((cleanup(memory_free_of)))
void memory_free_of(void *pointer_or_vector);

#endif
