// Lists and tuples: growing arrays of values.
#include <string.h>

#include "interp/heap.h"

static Value new_list(ValueKind kind, size_t capacity) {
    List *list = (List *)heap_new_object(kind, sizeof(List));
    Value value = {.kind = kind, .as.list = list};
    if (capacity) list_reserve(list, capacity);
    return value;
}

Value value_list(size_t capacity) {
    return new_list(VALUE_LIST, capacity);
}

Value value_tuple(size_t capacity) {
    return new_list(VALUE_TUPLE, capacity);
}

void list_reserve(List *list, size_t capacity) {
    if (capacity <= list->capacity) return;
    ASSERT(capacity <= SIZE_MAX / 2 / sizeof(Value));
    size_t bytes = capacity * sizeof(Value);
    list->items = list->items ? heap_resize(list->items, bytes) : heap_allocate(bytes);
    list->capacity = capacity;
}

static void make_room(List *list) {
    if (list->count == list->capacity) list_reserve(list, list->capacity ? list->capacity * 2 : 4);
}

void list_push(List *list, Value item) {
    make_room(list);
    list->items[list->count++] = item;
}

void list_insert(List *list, size_t index, Value item) {
    ASSERT(index <= list->count);
    make_room(list);
    memmove(list->items + index + 1, list->items + index, (list->count - index) * sizeof(Value));
    list->items[index] = item;
    list->count++;
}

Value list_remove(List *list, size_t index) {
    ASSERT(index < list->count);
    Value item = list->items[index];
    list->count--;
    memmove(list->items + index, list->items + index + 1, (list->count - index) * sizeof(Value));
    list->items[list->count] = value_none();
    return item;
}
