// Lists and tuples: growing arrays of values.
#include <string.h>

#include "value/heap.h"

static Value new_list(ValueKind kind, size_t capacity) {
    List *list = (List *)heap_new_object(kind, sizeof(List));
    Value value = {.kind = kind, .as.list = list};
    if (capacity) (void)list_reserve(list, capacity);
    return value;
}

Value value_list(size_t capacity) {
    return new_list(VALUE_LIST, capacity);
}

Value value_list_of(size_t count) {
    Value list = value_list(count);
    if (LIKELY(list.as.list->capacity >= count)) return list;
    value_release(list);
    return value_failed(
        fail(STATUS_MEMORY, "out of memory: there is none for a list of %zu values", count));
}

Value value_tuple(size_t capacity) {
    return new_list(VALUE_TUPLE, capacity);
}

bool list_reserve(List *list, size_t capacity) {
    if (capacity <= list->capacity) return true;
    ASSERT(capacity <= SIZE_MAX / 2 / sizeof(Value));
    Value *items = heap_try_resize(list->items, capacity * sizeof(Value));
    if (!items) return false;
    list->items = items;
    list->capacity = capacity;
    return true;
}

// False when there is no memory: the item goes, and the program with the next statement.
static bool make_room(List *list, Value item) {
    if (LIKELY(list->count < list->capacity)) return true;
    ASSERT(list->count == list->capacity);
    if (list_reserve(list, list->capacity ? list->capacity * 2 : 4)) return true;
    value_release(item);
    return false;
}

void list_push(List *list, Value item) {
    ASSERT(item.kind != VALUE_FAIL);
    if (make_room(list, item)) list->items[list->count++] = item;
}

void list_append(List *list, const Value *items, size_t count) {
    size_t whole = list->count + count;
    size_t capacity =
        whole > list->capacity && whole < list->capacity * 2 ? list->capacity * 2 : whole;
    if (!list_reserve(list, capacity)) return;
    ASSERT(list->capacity >= whole);
    for (size_t i = 0; i < count; i++) list->items[list->count++] = value_retain(items[i]);
}

void list_insert(List *list, size_t index, Value item) {
    ASSERT(index <= list->count);
    if (!make_room(list, item)) return;
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
