#include "base/key_index.h"

#include <stdlib.h>
#include <uthash.h>

#include "base/memory.h"

typedef struct Entry {
    size_t at;
    UT_hash_handle hh;
    char key[];
} Entry;

struct KeyIndex {
    Entry *entries;
    Arena arena; // of the entries
    size_t count;
};

KeyIndex *key_index_new(void) {
    return memory_allocate_zeroed(1, sizeof(KeyIndex));
}

size_t key_index_count(const KeyIndex *index) {
    return index->count;
}

bool key_index_find(const KeyIndex *index, const void *key, size_t length, size_t *at) {
    Entry *entry;
    HASH_FIND(hh, index->entries, key, length, entry);
    if (entry) *at = entry->at;
    return entry != NULL;
}

void key_index_add(KeyIndex *index, const void *key, size_t length) {
    ASSERT(key != NULL);
    size_t at = index->count++, first;
    if (key_index_find(index, key, length, &first)) return;
    Entry *entry = arena_allocate(&index->arena, sizeof *entry + length);
    entry->at = at;
    memcpy(entry->key, key, length);
    HASH_ADD_KEYPTR(hh, index->entries, entry->key, length, entry);
}

void key_index_clear(KeyIndex *index) {
    HASH_CLEAR(hh, index->entries);
    arena_free(&index->arena);
    index->count = 0;
}

void key_index_free(KeyIndex *index) {
    if (!index) return;
    key_index_clear(index);
    free(index);
}
