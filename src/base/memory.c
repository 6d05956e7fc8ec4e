// Host memory: malloc that does not return NULL, arenas, growing arrays.
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

static _Noreturn void out_of_memory(size_t bytes) {
    fprintf(stderr, "tl: the host has no memory left (asked for %zu bytes)\n", bytes);
    _Exit(1);
}

void *memory_allocate(size_t bytes) {
    void *pointer = malloc(bytes ? bytes : 1);
    if (!pointer) out_of_memory(bytes);
    return pointer;
}

void *memory_allocate_zeroed(size_t count, size_t size) {
    void *pointer = calloc(count ? count : 1, size ? size : 1);
    if (!pointer) out_of_memory(size);
    return pointer;
}

void *memory_resize(void *pointer, size_t bytes) {
    void *resized = realloc(pointer, bytes ? bytes : 1);
    if (!resized) out_of_memory(bytes);
    return resized;
}

char *memory_copy_string(const char *string, size_t length) {
    char *copy = memory_allocate(length + 1);
    memcpy(copy, string, length);
    copy[length] = '\0';
    return copy;
}

void *vector_grow(void *items, size_t *capacity, size_t item_bytes) {
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
    ArenaBlock *block = arena->blocks;
    if (!block || block->size - block->used < bytes) {
        size_t size = bytes > ARENA_BLOCK_BYTES ? bytes : ARENA_BLOCK_BYTES;
        block = memory_allocate(sizeof(ArenaBlock) + size);
        *block = (ArenaBlock){.next = arena->blocks, .size = size};
        arena->blocks = block;
    }
    void *pointer = block->bytes + block->used;
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
