// Strings: immutable UTF-8 on the collector's heap, measured and cut by code points. Short ones lie
// behind their head. Long ones lie in a store, which has room for more: a string made by appending
// shares the store of the string it begins with.
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "device/foretell.h"
#include "value/heap.h"

enum {
    LONG_MIN_BYTES = 256, // shorter ones are copied, and searched for their code points
    MARK_STEP = 16,       // code points from mark to mark
    CHARACTERS = 0x800,   // code points of one or two bytes, which are made once
};

typedef struct Store {
    size_t used, capacity;
    char bytes[]; // the longest string that shares them ends with NUL
} Store;

// Marks are made at the first index into a string that is not ASCII: where in the bytes the code
// points 0, MARK_STEP, 2 * MARK_STEP ... begin.
typedef struct LongString {
    String head;
    Store *store;
    size_t *marks;
} LongString;

static Value string_value(String *string) {
    return (Value){.kind = VALUE_STRING, .as.string = string};
}

static LongString *long_string(const String *string) {
    return string->bytes == (const char *)(string + 1) ? NULL : (LongString *)(uintptr_t)string;
}

// With room for the bytes, which the caller fills in.
static String *short_string(size_t length) {
    String *string = heap_allocate_bytes(sizeof *string + length + 1);
    char *bytes = (char *)(string + 1);
    *string = (String){.length = length, .codepoints = -1, .bytes = bytes};
    bytes[length] = '\0';
    return string;
}

static Value store_string(Store *store, size_t length) {
    LongString *string = heap_allocate(sizeof *string);
    ASSERT(length <= store->used);
    string->head = (String){.length = length, .codepoints = -1, .bytes = store->bytes};
    string->store = store;
    return string_value(&string->head);
}

static void store_append(Store *store, const char *bytes, size_t length) {
    ASSERT(length <= store->capacity - store->used);
    memcpy(store->bytes + store->used, bytes, length);
    store->used += length;
    store->bytes[store->used] = '\0';
}

// NULL when there is no memory for it: then the program fails with the next statement.
static Store *store_of(const char *bytes, size_t length, size_t capacity) {
    ASSERT(capacity >= length && capacity < SIZE_MAX / 2);
    Store *store = heap_try_allocate_bytes(sizeof *store + capacity + 1);
    if (UNLIKELY(!store)) return NULL;
    *store = (Store){.capacity = capacity};
    store_append(store, bytes, length);
    return store;
}

Value value_string(const char *bytes, size_t length) {
    if (length >= LONG_MIN_BYTES) {
        Store *store = store_of(bytes, length, length);
        return store ? store_string(store, length) : string_value(short_string(0));
    }
    String *string = short_string(length);
    if (length) memcpy((char *)(string + 1), bytes, length);
    return string_value(string);
}

Value value_cstring(const char *text) {
    return value_string(text, strlen(text));
}

const String *string_end(const String *string) {
    // A reader cannot tell that it has bytes of its own now.
    if (LIKELY(string->bytes[string->length] == '\0')) return string;
    LongString *shared = long_string(string);
    ASSERT(shared != NULL); // a short one ends with NUL
    Store *own = store_of(string->bytes, string->length, string->length);
    if (UNLIKELY(!own)) {
        static const char nothing[] = "";
        shared->head = (String){.codepoints = 0, .bytes = nothing};
        return string;
    }
    shared->store = own;
    shared->head.bytes = own->bytes;
    return string;
}

Value string_as_measured(const String *string) {
    ASSERT(foretelling());
    Value copy = value_string(string->bytes, string->length);
    copy.as.string->codepoints = STRING_MEASURED;
    return copy;
}

void string_note_look(void) {
    foretell_unknown();
}

bool string_equals_measured(const String *a, const String *b) {
    ASSERT(string_is_measured(a) || string_is_measured(b));
    if (a != b) string_note_look();
    return string_same(a, b);
}

uint64_t string_hash(const String *string) {
    if (string->hash) return string->hash;
    if (string_is_measured(string)) string_note_look();
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < string->length; i++)
        hash = (hash ^ (unsigned char)string->bytes[i]) * 0x100000001B3u;
    // Remembered in place, like the count of code points.
    return ((String *)(uintptr_t)string)->hash = hash ? hash : 1;
}

int64_t string_length(const String *string) {
    // The count is remembered in place: a cache that no reader can tell from an unchanging string.
    if (string->codepoints >= 0) return string->codepoints;
    int64_t count = (int64_t)utf8_count(string->bytes, string->length);
    if (string_is_measured(string))
        string_note_look();
    else
        ((String *)(uintptr_t)string)->codepoints = count;
    return count;
}

Value string_character(const char *bytes, size_t size) {
    uint32_t codepoint;
    if (utf8_decode(bytes, size, &codepoint) != size || codepoint >= CHARACTERS)
        return value_string(bytes, size);
    const String **made = heap_characters(CHARACTERS);
    if (!made[codepoint]) {
        String *character = value_string(bytes, size).as.string;
        character->codepoints = 1;
        made[codepoint] = character;
    }
    return string_value((String *)(uintptr_t)made[codepoint]);
}

static inline size_t character_size(const String *string, size_t at) {
    if ((unsigned char)string->bytes[at] < 0x80) return 1;
    uint32_t codepoint;
    size_t size = utf8_decode(string->bytes + at, string->length - at, &codepoint);
    return size ? size : 1;
}

// Where the code point lies that is `count` after the one at `at`.
static size_t skip(const String *string, size_t at, int64_t count) {
    for (; count > 0 && at < string->length; count--) at += character_size(string, at);
    return at;
}

// How many bytes the code point has that ends before `at`.
static size_t size_before(const String *string, size_t at) {
    size_t size = 1;
    while (size < 4 && size < at && utf8_is_continuation(string->bytes[at - size])) size++;
    return character_size(string, at - size) == size ? size : 1;
}

static size_t skip_from_end(const String *string, int64_t count) {
    size_t at = string->length;
    for (; count > 0 && at > 0; count--) at -= size_before(string, at);
    return at;
}

// NULL when there is no memory for them.
static const size_t *marks_of(LongString *string) {
    if (string->marks) return string->marks;
    size_t count = (size_t)string_length(&string->head) / MARK_STEP + 1, at = 0;
    size_t *marks = heap_try_allocate_bytes(count * sizeof *marks);
    if (UNLIKELY(!marks)) return NULL;
    ASSERT(at <= string->head.length);
    for (size_t i = 0; i < count; i++) {
        marks[i] = at;
        at = skip(&string->head, at, MARK_STEP);
    }
    return string->marks = marks;
}

// What is near an end is found from there: no marks are made for a string that is cut once.
size_t string_byte_of(const String *string, int64_t index) {
    int64_t length = string_length(string);
    ASSERT(index >= 0 && index <= length);
    if (length == (int64_t)string->length) return (size_t)index;
    if (index <= MARK_STEP) return skip(string, 0, index);
    if (length - index <= MARK_STEP) return skip_from_end(string, length - index);
    LongString *indexed = long_string(string);
    const size_t *marks = indexed ? marks_of(indexed) : NULL;
    if (!marks) return skip(string, 0, index);
    return skip(string, marks[index / MARK_STEP], index % MARK_STEP);
}

Value string_slice(const String *string, int64_t start, int64_t count) {
    int64_t length = string_length(string);
    bool ascii = length == (int64_t)string->length;
    ASSERT(start >= 0 && count >= 0 && count <= length - start);
    size_t first = ascii ? (size_t)start : string_byte_of(string, start);
    if (count == 1)
        return string_character(string->bytes + first, ascii ? 1 : character_size(string, first));
    if (count == length) return string_value((String *)(uintptr_t)string);
    size_t end = ascii                ? first + (size_t)count
                 : count <= MARK_STEP ? skip(string, first, count)
                                      : string_byte_of(string, start + count);
    ASSERT(end >= first && end <= string->length);
    Value slice = value_string(string->bytes + first, end - first);
    if (slice.as.string->length == end - first) slice.as.string->codepoints = count;
    return slice;
}

// The store of a, when what a ends with is the last that was written there and b has room behind
// it.
static Store *store_with_room(const String *a, size_t more) {
    LongString *begin = long_string(a);
    Store *store = begin ? begin->store : NULL;
    ASSERT(!store || store->used <= store->capacity);
    return store && a->bytes == store->bytes && a->length == store->used &&
                   store->capacity - store->used >= more
               ? store
               : NULL;
}

// An error at once: what the result was to replace stays as it is.
static Value value_refused(void) {
    return memory_exhausted() == STATUS_OK ? string_value(short_string(0)) : value_fail();
}

// What a string that grows has counted once need not be counted again: -1 where it was not, or
// where the bytes that meet could be of one code point.
static int64_t joined_codepoints(const String *a, const String *b) {
    if (a->codepoints < 0 || (b->length && utf8_is_continuation(b->bytes[0]))) return -1;
    return a->codepoints + string_length(b);
}

static Value concat_long(const String *a, const String *b, size_t length) {
    Store *store = store_with_room(a, b->length);
    if (!store) {
        // What grows by little is likely to grow again.
        size_t spare = b->length < a->length ? length : 0;
        store = store_of(a->bytes, a->length, length + spare);
    }
    if (UNLIKELY(!store)) return value_refused();
    int64_t codepoints = joined_codepoints(a, b);
    store_append(store, b->bytes, b->length);
    Value joined = store_string(store, length);
    joined.as.string->codepoints = codepoints;
    return joined;
}

Value string_concat(const String *a, const String *b) {
    size_t length = a->length + b->length;
    bool measured = string_is_measured(a) || string_is_measured(b);
    if (length >= LONG_MIN_BYTES && !measured) return concat_long(a, b, length);
    String *joined = short_string(length);
    memcpy((char *)(joined + 1), a->bytes, a->length);
    memcpy((char *)(joined + 1) + a->length, b->bytes, b->length);
    joined->codepoints = measured ? STRING_MEASURED : joined_codepoints(a, b);
    return string_value(joined);
}

int string_compare(const String *a, const String *b) {
    if (string_is_measured(a) || string_is_measured(b)) string_note_look();
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->bytes, b->bytes, shorter);
    if (order != 0) return order < 0 ? -1 : 1;
    return a->length < b->length ? -1 : a->length > b->length;
}

bool value_is_text(Value value, const char *text) {
    ASSERT(text != NULL);
    size_t length = strlen(text);
    return value.kind == VALUE_STRING && value.as.string->length == length &&
           memcmp(value.as.string->bytes, text, length) == 0;
}
