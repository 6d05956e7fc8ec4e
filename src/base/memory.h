// malloc that does not return NULL, an arena, and a growing array. A failed small host allocation
// ends the process with a message (the torture tests inject failures through memory_fail_after).
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>
#include <string.h>

#include "base/status.h"

void *memory_allocate(size_t bytes);               // uninitialised
void *memory_allocate_zeroed(size_t count, size_t size); // overflow-checked
void *memory_resize(void *pointer, size_t bytes);
char *memory_copy_string(const char *string, size_t length); // adds a NUL

// An arena: everything allocated from it goes at once. Alignment 16.
typedef struct ArenaBlock ArenaBlock;
typedef struct Arena {
    ArenaBlock *blocks;
} Arena;
void *arena_allocate(Arena *arena, size_t bytes); // zeroed
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
            (vector)->items = vector_grow((vector)->items, &(vector)->capacity,                    \
                                          sizeof *(vector)->items);                                \
        (vector)->items[(vector)->count++] = (item);                                               \
    } while (0)
#define VECTOR_FREE(vector)                                                                        \
    (free((vector)->items), (vector)->items = NULL, (vector)->count = (vector)->capacity = 0)
void *vector_grow(void *items, size_t *capacity, size_t item_bytes);

#endif
