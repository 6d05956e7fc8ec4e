// Dictionaries: entries in insertion order in one array, found through an open-addressed table of
// entry numbers. Removal leaves a hole that the next growth or walk by index closes.
#include "value/dict.h"

#include <string.h>

#include "catalog/catalog.h"
#include "value/heap.h"
#include "value/print.h"

typedef struct Entry {
    Value key; // ABSENT: a hole
    Value item;
} Entry;

struct Dict {
    Counted counted;
    size_t count, used, capacity; // live entries; entries with holes; room in the array
    Entry *entries;
    uint32_t *table; // table_size is twice the capacity, a power of two; EMPTY or an entry number
    size_t table_size;
};

enum { EMPTY = UINT32_MAX, CAPACITY_MIN = 8, CAPACITY_MAX = 1 << 30 };

static inline uint64_t mix(uint64_t h) {
    h ^= h >> 32;
    h *= 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
    return h;
}

// Integers are their own hash: keys that are counted up lie one after the other in the table.
static inline uint64_t hash_key(Value key) {
    return key.kind == VALUE_STRING ? mix(string_hash(key.as.string)) : (uint64_t)key.as.integer;
}

// The slots that a key may take, one after the other. Each takes in five more bits of the hash, so
// that keys which agree in the low ones part soon; once none is left, every slot is met.
typedef struct Probe {
    size_t slot, mask;
    uint64_t rest;
} Probe;

static inline Probe probe_begin(const Dict *dict, uint64_t hash) {
    size_t mask = dict->table_size - 1;
    return (Probe){.slot = hash & mask, .mask = mask, .rest = hash};
}

static inline void probe_next(Probe *probe) {
    probe->rest >>= 5;
    probe->slot = (probe->slot * 5 + probe->rest + 1) & probe->mask;
}

static inline bool same_key(Value a, Value b) {
    if (a.kind != b.kind) return false;
    if (a.kind == VALUE_STRING)
        return a.as.string == b.as.string || string_equals(a.as.string, b.as.string);
    return a.as.integer == b.as.integer;
}

Value value_dict(void) {
    Dict *dict = (Dict *)heap_new_object(VALUE_DICT, sizeof(Dict));
    return (Value){.kind = VALUE_DICT, .as.dict = dict};
}

size_t dict_count(const Dict *dict) {
    return dict->count;
}

static void table_insert(Dict *dict, uint64_t hash, uint32_t number) {
    Probe probe = probe_begin(dict, hash);
    while (dict->table[probe.slot] != EMPTY) probe_next(&probe);
    dict->table[probe.slot] = number;
}

// Closes the holes and rebuilds the table for `capacity` entries. False when there is no memory for
// them: the dictionary stays as it is.
static bool rebuild(Dict *dict, size_t capacity) {
    ASSERT(dict->used >= dict->count);
    ASSERT(capacity >= dict->count);
    Entry *entries = capacity <= CAPACITY_MAX
                         ? heap_try_resize(NULL, capacity * sizeof *entries)
                         : heap_try_resize(NULL, SIZE_MAX / 2); // more than there can be
    uint32_t *table = entries ? heap_try_allocate_bytes(capacity * 2 * sizeof *table) : NULL;
    if (UNLIKELY(!table)) return false;
    size_t used = 0;
    for (size_t i = 0; i < dict->used; i++) {
        if (dict->entries[i].key.kind != VALUE_ABSENT) entries[used++] = dict->entries[i];
    }
    ASSERT(used == dict->count); // `used` counts the holes too, and nothing else
    heap_free(dict->entries);
    heap_free(dict->table);
    dict->entries = entries;
    dict->used = used;
    dict->capacity = capacity;
    dict->table_size = capacity * 2;
    dict->table = table;
    memset(dict->table, 0xFF, dict->table_size * sizeof *dict->table);
    for (size_t i = 0; i < used; i++) table_insert(dict, hash_key(entries[i].key), (uint32_t)i);
    return true;
}

// The entry of a key, or NULL. Holes stay in the table, so that probing passes over them.
static inline Entry *find(const Dict *dict, Value key, uint64_t hash) {
    if (!dict->count) return NULL;
    Probe probe = probe_begin(dict, hash);
    for (; dict->table[probe.slot] != EMPTY; probe_next(&probe)) {
        Entry *entry = &dict->entries[dict->table[probe.slot]];
        if (same_key(entry->key, key)) return entry;
    }
    return NULL;
}

Value dict_get(const Dict *dict, Value key) {
    Entry *entry = find(dict, key, hash_key(key));
    return entry ? entry->item : value_absent();
}

Value *dict_find(Dict *dict, Value key) {
    Entry *entry = find(dict, key, hash_key(key));
    return entry ? &entry->item : NULL;
}

void dict_set(Dict *dict, Value key, Value item) {
    uint64_t hash = hash_key(key);
    Entry *entry = find(dict, key, hash);
    if (entry) {
        Value old = entry->item;
        entry->item = item;
        value_release(old);
        return;
    }
    if (dict->used == dict->capacity) {
        size_t capacity = dict->capacity ? dict->capacity : CAPACITY_MIN;
        if (dict->count * 4 > capacity * 3) capacity *= 2;
        if (!rebuild(dict, capacity)) {
            value_release(item);
            return;
        }
    }
    ASSERT(key.kind == VALUE_STRING || key.kind == VALUE_INT || key.kind == VALUE_BOOL);
    ASSERT(item.kind != VALUE_FAIL && dict->used < dict->capacity);
    if (key.kind == VALUE_STRING) string_end(key.as.string);
    dict->entries[dict->used] = (Entry){key, item};
    table_insert(dict, hash, (uint32_t)dict->used++);
    dict->count++;
}

bool dict_remove(Dict *dict, Value key, Value *removed) {
    Entry *entry = find(dict, key, hash_key(key));
    if (!entry) return false;
    *removed = entry->item;
    entry->key = entry->item = value_absent();
    ASSERT(dict->count > 0);
    dict->count--;
    return true;
}

void dict_clear(Dict *dict) {
    Dict taken = *dict;
    ASSERT(taken.count <= taken.used && taken.used <= taken.capacity);
    dict->entries = NULL;
    dict->table = NULL;
    dict->count = dict->used = dict->capacity = dict->table_size = 0;
    for (size_t i = 0; i < taken.used; i++) value_release(taken.entries[i].item);
    heap_free(taken.entries);
    heap_free(taken.table);
}

// The number of the live entry at an index among holes.
static size_t entry_number(const Dict *dict, size_t index) {
    ASSERT(index < dict->count);
    size_t number = 0;
    while (dict->entries[number].key.kind == VALUE_ABSENT || index-- > 0) number++;
    return number;
}

// The word that was meant; in a large dictionary nobody looks for it.
static const char *nearest_key(const Dict *dict, Value key) {
    enum { KEYS_MAX = 256 };
    const char *names[KEYS_MAX];
    size_t count = 0;
    if (key.kind != VALUE_STRING || dict->count > KEYS_MAX) return NULL;
    for (size_t i = 0; i < dict->used; i++)
        if (dict->entries[i].key.kind == VALUE_STRING)
            names[count++] = string_end(dict->entries[i].key.as.string)->bytes;
    return catalog_nearest(string_end(key.as.string)->bytes, names, count);
}

Status dict_fail_missing(const Dict *dict, Value key, const char *help) {
    const char *near = nearest_key(dict, key);
    Status status = fail(STATUS_KEY, "the dictionary has no key %s", value_text(key).text);
    if (near) return fail_help("there is \"%s\"", near);
    return help ? fail_help("%s", help) : status;
}

void dict_entry(const Dict *dict, size_t index, Value *key, Value *item) {
    ASSERT(index < dict->count);
    // Closing the holes changes nothing that can be seen, so a reader may do it.
    if (dict->used != dict->count && !rebuild((Dict *)dict, dict->capacity))
        index = entry_number(dict, index);
    *key = dict->entries[index].key;
    *item = dict->entries[index].item;
}

void dict_visit(Dict *dict, void (*visit)(Value value)) {
    for (size_t i = 0; i < dict->used; i++) visit(dict->entries[i].item);
}

Value dict_get_word(const Dict *dict, const char *key) {
    String word = {.length = strlen(key), .codepoints = -1, .bytes = key};
    return dict_get(dict, (Value){.kind = VALUE_STRING, .as.string = &word});
}

void dict_set_word(Dict *dict, const char *key, Value item) {
    dict_set(dict, value_cstring(key), item);
}
