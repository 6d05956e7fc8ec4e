// What an element or a field of a place is made of, for what reads and writes it without its code.
#ifndef EVAL_PLACES_H
#define EVAL_PLACES_H

#include "eval/code.h"
#include "value/object.h"

// A struct's field lies where it lay the last time, while the type is the same.
typedef struct FieldMemory {
    uint64_t type; // its id, 0: none yet
    int index;
} FieldMemory;

typedef struct PlaceParts {
    const Code *object;
    const Code *index;         // of an element; else NULL
    const FieldMemory *memory; // of a field: kept by its code, which knows the name
} PlaceParts;
// False when the code is neither an element by one index nor a field.
bool place_parts(const Code *code, PlaceParts *out);

// NULL: out of range.
static inline Value *list_find(const List *list, int64_t index) {
    uint64_t position = (uint64_t)(index < 0 ? index + (int64_t)list->count : index);
    return position < list->count ? &list->items[position] : NULL;
}

#endif
