// Who holds device memory: by variable, with the line that made it.
#include <stdio.h>
#include <stdlib.h>
#include <uthash.h>

#include "device/buffer.h"
#include "device/statistics.h"
#include "repl/internal.h"
#include "value/object.h"

// Something that was seen: an object, or a buffer.
typedef struct Seen {
    const void *thing;
    UT_hash_handle hh;
} Seen;

// A walk through everything that a value holds.
typedef struct Walk {
    Seen *seen;
    VECTOR(Value) todo; // borrowed
    uint64_t bytes, tensors;
    Origin largest; // where the largest buffer was made
    uint64_t largest_bytes;
} Walk;

static bool see(Walk *walk, const void *thing) {
    Seen *seen;
    HASH_FIND_PTR(walk->seen, &thing, seen);
    if (seen) return false;
    seen = memory_allocate_zeroed(1, sizeof *seen);
    seen->thing = thing;
    HASH_ADD_PTR(walk->seen, thing, seen);
    return true;
}

static void walk_free(Walk *walk) {
    Seen *seen, *next;
    HASH_ITER(hh, walk->seen, seen, next) {
        HASH_DEL(walk->seen, seen);
        free(seen);
    }
    VECTOR_FREE(&walk->todo);
}

static void visit_tensor(Walk *walk, const Tensor *tensor) {
    const Buffer *buffer = tensor->view.buffer;
    walk->tensors++;
    if (!buffer || !see(walk, buffer)) return;
    walk->bytes += buffer->bytes;
    if (buffer->bytes < walk->largest_bytes) return;
    walk->largest_bytes = buffer->bytes;
    walk->largest = buffer->origin;
}

static void push(Walk *walk, Value value) {
    VECTOR_PUSH(&walk->todo, value);
}

static void visit(Walk *walk, Value value) {
    if (value.kind == VALUE_TENSOR) visit_tensor(walk, value.as.tensor);
    if (!value_is_counted(value) || value.kind == VALUE_TENSOR) return;
    if (!see(walk, value.as.pointer)) return;
    switch ((ValueKind)value.kind) {
    case VALUE_LIST:
    case VALUE_TUPLE:
        for (size_t i = 0; i < value.as.list->count; i++) push(walk, value.as.list->items[i]);
        break;
    case VALUE_DICT:
        for (size_t i = 0; i < dict_count(value.as.dict); i++) {
            Value key, item;
            dict_entry(value.as.dict, i, &key, &item);
            push(walk, item);
        }
        break;
    case VALUE_STRUCT:
        for (size_t i = 0; i < value.as.instance->type->field_count; i++)
            push(walk, value.as.instance->fields[i]);
        break;
    case VALUE_FUNCTION:
        for (size_t i = 0; i < value.as.function->cell_count; i++)
            if (value.as.function->cells[i]) push(walk, value.as.function->cells[i]->value);
        break;
    default: break;
    }
}

static void walk_value(Walk *walk, Value value) {
    walk->bytes = walk->tensors = walk->largest_bytes = 0;
    push(walk, value);
    while (walk->todo.count) visit(walk, walk->todo.items[--walk->todo.count]);
}

void memory_append_bytes(Text *out, uint64_t bytes) {
    if (bytes < 10000)
        text_format(out, "%llu B", (unsigned long long)bytes);
    else
        text_format(out, "%.2f MB", (double)bytes / 0x1p20);
}

static PoolStatistics statistics(void) {
    Device *device = device_default_opened();
    return device ? pool_statistics(device) : (PoolStatistics){0};
}

void memory_append_line(Text *out) {
    PoolStatistics now = statistics();
    text_append_string(out, "live ");
    memory_append_bytes(out, now.live_bytes);
    text_append_string(out, ", cached ");
    memory_append_bytes(out, now.cached_bytes);
    text_append_string(out, ", peak ");
    memory_append_bytes(out, now.peak_bytes);
}

// One variable with device memory of its own.
typedef struct Holder {
    const char *name;
    uint64_t bytes, tensors;
    Origin origin;
} Holder;

static int compare_holders(const void *a, const void *b) {
    const Holder *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void show_holder(const Holder *holder) {
    SCOPED_TEXT(text);
    memory_append_bytes(&text, holder->bytes);
    printf("%12s  %-12s", text_get(&text), holder->name);
    SourcePlace place = source_find(holder->origin.at);
    if (holder->tensors > 1) printf("  %llu tensors", (unsigned long long)holder->tensors);
    if (place.file) printf("  made at %s:%d:%d", place.file->name, place.line, place.column);
    printf("\n");
}

void memory_show(const Repl *repl) {
    SCOPED_TEXT(text);
    PoolStatistics now = statistics();
    memory_append_line(&text);
    printf("%s\n", text_get(&text));
    SCOPED_MEMORY VECTOR(Holder) holders = {0};
    Walk walk = {0};
    uint64_t held = 0;
    for (size_t i = 0; i < session_name_count(repl->session); i++) {
        SessionName name = session_name(repl->session, i);
        if (!name.value) continue;
        walk_value(&walk, *name.value); // what two variables share counts for the older one
        Holder holder = {name.name, walk.bytes, walk.tensors, walk.largest};
        held += walk.bytes;
        if (walk.bytes) VECTOR_PUSH(&holders, holder);
    }
    walk_free(&walk);
    if (holders.count) qsort(holders.items, holders.count, sizeof(Holder), compare_holders);
    for (size_t i = 0; i < holders.count; i++) show_holder(&holders.items[i]);
    Holder rest = {.name = "(others)", .bytes = now.live_bytes > held ? now.live_bytes - held : 0};
    if (rest.bytes) show_holder(&rest);
}
