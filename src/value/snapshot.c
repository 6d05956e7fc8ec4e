// Snapshots of variables and containers. All values lie in one counted list, which is also the
// queue of what is still to be followed.
#include "value/snapshot.h"

#include <stdlib.h>
#include <uthash.h>

#include "base/memory.h"
#include "base/runtime.h"
#include "model/kv_cache.h"
#include "value/handles.h"
#include "value/heap.h"

// Something whose contents were noted: `count` values of the list from `first` on.
typedef struct Record {
    ValueKind kind; // VALUE_ABSENT: a variable's place
    void *object;
    size_t first, count;
    KvCache *cache; // of a handle: a fork of its cache
    UT_hash_handle hh;
} Record;

struct Snapshot {
    List *values;
    VECTOR(Record *) records;
    Record *seen;    // by object
    bool incomplete; // there was no memory for all of it
};

Snapshot *snapshot_new(void) {
    Snapshot *snapshot = memory_allocate_zeroed(1, sizeof *snapshot);
    snapshot->values = value_list(0).as.list;
    return snapshot;
}

static Record *record_new(Snapshot *snapshot, ValueKind kind, void *object) {
    Record *record = memory_allocate_zeroed(1, sizeof *record);
    ASSERT(snapshot->values != NULL);
    *record = (Record){.kind = kind, .object = object, .first = snapshot->values->count};
    size_t count = snapshot->records.count;
    ASSERT(count == 0 || snapshot->records.items[count - 1]->first <= record->first);
    VECTOR_PUSH(&snapshot->records, record);
    return record;
}

static void note(Snapshot *snapshot, Value value) {
    ASSERT(value.kind != VALUE_FAIL);
    if (snapshot->incomplete) return;
    size_t before = snapshot->values->count;
    int pending = runtime_interrupts(runtime_current) & INTERRUPT_MEMORY;
    list_push(snapshot->values, value_retain(value));
    if (LIKELY(snapshot->values->count > before)) return;
    // The refusal is not the program's, which may be about to let go of memory.
    snapshot->incomplete = true;
    if (pending) return;
    (void)runtime_take_interrupts(runtime_current, INTERRUPT_MEMORY);
    if (memory_exhausted() != STATUS_OK) error_clear();
}

void snapshot_add(Snapshot *snapshot, Value *place) {
    record_new(snapshot, VALUE_ABSENT, place)->count = 1;
    note(snapshot, *place);
}

static void note_dict(Snapshot *snapshot, const Dict *dict) {
    for (size_t i = 0; i < dict_count(dict); i++) {
        Value key, item;
        dict_entry(dict, i, &key, &item);
        note(snapshot, key);
        note(snapshot, item);
    }
}

static void note_cells(Snapshot *snapshot, const Function *function) {
    for (size_t i = 0; i < function->cell_count; i++)
        if (function->cells[i])
            note(snapshot, (Value){.kind = VALUE_CELL, .as.cell = function->cells[i]});
}

static void note_contents(Snapshot *snapshot, Value value) {
    switch ((ValueKind)value.kind) {
    case VALUE_LIST:
    case VALUE_TUPLE:
        for (size_t i = 0; i < value.as.list->count; i++) note(snapshot, value.as.list->items[i]);
        break;
    case VALUE_DICT: note_dict(snapshot, value.as.dict); break;
    case VALUE_STRUCT:
        for (size_t i = 0; i < value.as.instance->type->field_count; i++)
            note(snapshot, value.as.instance->fields[i]);
        break;
    case VALUE_FUNCTION: note_cells(snapshot, value.as.function); break;
    case VALUE_CELL: note(snapshot, value.as.cell->value); break;
    default: break;
    }
}

static bool is_cache(Value value) {
    return value.kind == VALUE_HANDLE && value.as.handle->type == &handle_cache &&
           kv_cache_part_count(value.as.handle->payload) == 1;
}

static bool has_contents(Value value) {
    if (value.kind == VALUE_HANDLE) return is_cache(value);
    return value_is_counted(value) && value.kind != VALUE_TENSOR;
}

void snapshot_take(Snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->values->count && !snapshot->incomplete; i++) {
        Value value = snapshot->values->items[i];
        if (!has_contents(value)) continue;
        Record *seen;
        HASH_FIND_PTR(snapshot->seen, &value.as.pointer, seen);
        if (seen) continue;
        Record *record = record_new(snapshot, (ValueKind)value.kind, value.as.pointer);
        HASH_ADD_PTR(snapshot->seen, object, record);
        if (is_cache(value)) record->cache = kv_cache_fork(value.as.handle->payload);
        note_contents(snapshot, value);
        record->count = snapshot->values->count - record->first;
    }
}

static void restore_place(Value *place, Value value) {
    Value old = *place;
    *place = value_retain(value);
    value_release(old);
}

static void restore_list(List *list, const Value *items, size_t count) {
    List taken = *list;
    ASSERT(list->count <= list->capacity);
    list->items = NULL;
    list->count = list->capacity = 0;
    if (!list_reserve(list, count)) { // it stays as the line left it
        *list = taken;
        return;
    }
    list_append(list, items, count);
    for (size_t i = 0; i < taken.count; i++) value_release(taken.items[i]);
    heap_free(taken.items);
}

static void restore_dict(Dict *dict, const Value *items, size_t count) {
    dict_clear(dict);
    ASSERT(count % 2 == 0); // keys and items
    for (size_t i = 0; i + 1 < count; i += 2)
        dict_set(dict, value_retain(items[i]), value_retain(items[i + 1]));
}

static void restore_record(const Record *record, const Value *items) {
    switch (record->kind) {
    case VALUE_ABSENT: restore_place(record->object, items[0]); break;
    case VALUE_LIST: restore_list(record->object, items, record->count); break;
    case VALUE_DICT: restore_dict(record->object, items, record->count); break;
    case VALUE_STRUCT:
        ASSERT(record->count == ((const Instance *)record->object)->type->field_count);
        for (size_t i = 0; i < record->count; i++)
            restore_place(&((Instance *)record->object)->fields[i], items[i]);
        break;
    case VALUE_CELL: restore_place(&((Cell *)record->object)->value, items[0]); break;
    case VALUE_HANDLE:
        ASSERT(record->cache != NULL);
        kv_cache_exchange(((const Handle *)record->object)->payload, record->cache);
        break;
    default: break; // tuples and functions do not change
    }
}

bool snapshot_is_whole(const Snapshot *snapshot) {
    return !snapshot->incomplete;
}

void snapshot_restore(Snapshot *snapshot) {
    if (snapshot->incomplete) return;
    for (size_t i = 0; i < snapshot->records.count; i++) {
        const Record *record = snapshot->records.items[i];
        ASSERT(record->first <= snapshot->values->count);
        ASSERT(record->count <= snapshot->values->count - record->first);
        restore_record(record, snapshot->values->items + record->first);
    }
}

void snapshot_free(Snapshot *snapshot) {
    HASH_CLEAR(hh, snapshot->seen);
    for (size_t i = 0; i < snapshot->records.count; i++) {
        Record *record = snapshot->records.items[i];
        if (record->cache) kv_cache_release(record->cache);
        free(record);
    }
    VECTOR_FREE(&snapshot->records);
    value_release((Value){.kind = VALUE_LIST, .as.list = snapshot->values});
    free(snapshot);
}
