// Where keys first stand in a list. The keys are copied; they are added in the list's order.
#ifndef BASE_KEY_INDEX_H
#define BASE_KEY_INDEX_H

#include <stdbool.h>
#include <stddef.h>

typedef struct KeyIndex KeyIndex;

KeyIndex *key_index_new(void);
// The next of the list: its place is how many were added before.
void key_index_add(KeyIndex *index, const void *key, size_t length);
size_t key_index_count(const KeyIndex *index);
// The first place of a key; false where it was not added.
bool key_index_find(const KeyIndex *index, const void *key, size_t length, size_t *at);
void key_index_clear(KeyIndex *index);
void key_index_free(KeyIndex *index); // NULL is nothing

#endif
