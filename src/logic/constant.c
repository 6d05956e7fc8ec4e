// The table of constants: each kind is hashed by its content.
#include "logic/constant.h"

#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "logic/hash.h"

enum { SLOTS_FIRST = 64, NOT_FOUND = 0 };

static uint32_t hash_words(uint32_t kind, const uint32_t *words, size_t count) {
    uint32_t hash = hash_begin(kind);
    for (size_t i = 0; i < count; i++) hash = hash_add(hash, words[i]);
    return hash_end(hash);
}

static uint32_t hash_bytes(uint32_t kind, const void *bytes, size_t length) {
    uint32_t hash = hash_begin(kind), word;
    ASSERT(bytes != NULL || length == 0);
    const char *at = bytes;
    for (; length >= sizeof word; at += sizeof word, length -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = hash_add(hash, word);
    }
    word = (uint32_t)length;
    memcpy(&word, at, length);
    return hash_end(hash_add(hash, word));
}

static bool entry_is(const ConstantEntry *entry, const ConstantEntry *wanted) {
    if (entry->hash != wanted->hash || entry->kind != wanted->kind) return false;
    switch ((ConstantKind)entry->kind) {
    case CONSTANT_TEXT:
        return entry->length == wanted->length &&
               memcmp(entry->as.text, wanted->as.text, entry->length) == 0;
    case CONSTANT_TUPLE:
    case CONSTANT_SET:
        return entry->length == wanted->length &&
               memcmp(entry->as.items, wanted->as.items, entry->length * sizeof(Datum)) == 0;
    default: return entry->as.integer == wanted->as.integer; // floats by their bits
    }
}

static size_t slot_of(const ConstantTable *table, const ConstantEntry *wanted) {
    ASSERT(table->slot_count > 0 && (table->slot_count & (table->slot_count - 1)) == 0);
    size_t at = wanted->hash & (table->slot_count - 1);
    while (table->slots[at] && !entry_is(&table->entries.items[table->slots[at]], wanted))
        at = (at + 1) & (table->slot_count - 1);
    return at;
}

static void slots_grow(ConstantTable *table) {
    free(table->slots);
    table->slot_count = table->slot_count ? table->slot_count * 2 : SLOTS_FIRST;
    ASSERT(table->slot_count > table->entries.count);
    table->slots = memory_allocate_zeroed(table->slot_count, sizeof *table->slots);
    for (size_t i = 1; i < table->entries.count; i++)
        table->slots[slot_of(table, &table->entries.items[i])] = (uint32_t)i;
}

size_t constants_bytes(const ConstantTable *table) {
    return table->bytes + table->slot_count * sizeof *table->slots +
           table->entries.capacity * sizeof *table->entries.items;
}

size_t constants_growth(const ConstantTable *table, size_t count) {
    size_t bytes = 0, after = table->entries.count + count;
    if (after > table->entries.capacity)
        bytes += table->entries.capacity * 2 * sizeof *table->entries.items;
    if (after * 2 >= table->slot_count) bytes += table->slot_count * 2 * sizeof *table->slots;
    return bytes;
}

static Datum find(const ConstantTable *table, const ConstantEntry *wanted) {
    return table->slot_count ? table->slots[slot_of(table, wanted)] : NOT_FOUND;
}

// Takes what the entry points to only when it is new; says so.
static Datum intern(ConstantTable *table, const ConstantEntry *wanted, bool *added) {
    if (table->frozen) {
        Datum there = find(table, wanted);
        table->refused |= there == NOT_FOUND;
        *added = false;
        return there;
    }
    if (table->entries.count * 2 >= table->slot_count) slots_grow(table);
    if (table->entries.count == 0) VECTOR_PUSH(&table->entries, (ConstantEntry){0});
    size_t slot = slot_of(table, wanted);
    *added = table->slots[slot] == 0;
    if (*added) {
        table->slots[slot] = (uint32_t)table->entries.count;
        ASSERT(table->entries.count < (uint32_t)CONSTANT_SMALL);
        VECTOR_PUSH(&table->entries, *wanted);
    }
    return table->slots[slot];
}

static Datum intern_plain(ConstantTable *table, ConstantKind kind, int64_t bits) {
    ASSERT(kind < CONSTANT_TEXT);
    bool added;
    ConstantEntry entry = {.kind = (uint8_t)kind, .as.integer = bits};
    entry.hash = hash_bytes(kind, &bits, sizeof bits);
    return intern(table, &entry, &added);
}

Datum constant_int(ConstantTable *table, int64_t value) {
    enum { SMALL_LIMIT = 1 << 30 };
    if (value >= -SMALL_LIMIT && value < SMALL_LIMIT)
        return (uint32_t)value | (uint32_t)CONSTANT_SMALL;
    return intern_plain(table, CONSTANT_INT, value);
}

Datum constant_float(ConstantTable *table, double value) {
    if (value == 0) value = 0; // both zeros are one constant
    if (isnan(value)) value = NAN;
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return intern_plain(table, CONSTANT_FLOAT, bits);
}

Datum constant_bool(ConstantTable *table, bool value) {
    return intern_plain(table, CONSTANT_BOOL, value);
}

static ConstantEntry text_entry(const char *text, size_t length) {
    ASSERT(length <= UINT32_MAX);
    ConstantEntry entry = {.kind = CONSTANT_TEXT, .length = (uint32_t)length};
    entry.as.text = (char *)(uintptr_t)text;
    entry.hash = hash_bytes(CONSTANT_TEXT, text, length);
    return entry;
}

Datum constant_text(ConstantTable *table, const char *text, size_t length) {
    bool added;
    ConstantEntry entry = text_entry(text, length);
    Datum constant = intern(table, &entry, &added);
    if (!added) return constant;
    table->entries.items[constant].as.text = memory_copy_string(text, length);
    table->bytes += length + 1;
    return constant;
}

Datum constant_find_text(const ConstantTable *table, const char *text, size_t length) {
    ConstantEntry entry = text_entry(text, length);
    return find(table, &entry);
}

static Datum intern_items(ConstantTable *table, ConstantKind kind, const Datum *items,
                          size_t count) {
    ASSERT(kind >= CONSTANT_TUPLE && count <= UINT32_MAX);
    bool added;
    ConstantEntry entry = {.kind = (uint8_t)kind, .length = (uint32_t)count};
    entry.as.items = (Datum *)(uintptr_t)items;
    entry.hash = hash_words(kind, items, count);
    Datum constant = intern(table, &entry, &added);
    if (!added) return constant;
    Datum *copy = memory_allocate((count + 1) * sizeof *copy);
    memcpy(copy, items, count * sizeof *copy);
    table->entries.items[constant].as.items = copy;
    table->bytes += (count + 1) * sizeof *copy;
    return constant;
}

Datum constant_tuple(ConstantTable *table, const Datum *items, size_t count) {
    return intern_items(table, CONSTANT_TUPLE, items, count);
}

// By kind, then as constant_compare has it.
static int order_of(const ConstantTable *table, Datum a, Datum b) {
    int order;
    if (constant_compare(table, a, b, &order) && (order != 0 || a == b)) return order;
    int kinds = (int)constant_kind(table, a) - (int)constant_kind(table, b);
    return kinds ? kinds : a < b ? -1 : 1;
}

static size_t items_of(const ConstantTable *table, const Datum *constant, const Datum **items) {
    bool set = constant_kind(table, *constant) == CONSTANT_SET;
    *items = set ? constant_entry(table, *constant)->as.items : constant;
    return set ? constant_entry(table, *constant)->length : 1;
}

Datum constant_unite(ConstantTable *table, Datum a, Datum b) {
    const Datum *x, *y;
    size_t x_count = items_of(table, &a, &x), y_count = items_of(table, &b, &y), count = 0;
    SCOPED_MEMORY Datum *merged = memory_allocate((x_count + y_count) * sizeof *merged);
    while (x_count > 0 || y_count > 0) {
        int order = x_count == 0 ? 1 : y_count == 0 ? -1 : order_of(table, *x, *y);
        merged[count++] = order <= 0 ? *x : *y;
        if (order <= 0) x++, x_count--;
        if (order >= 0) y++, y_count--;
    }
    return intern_items(table, CONSTANT_SET, merged, count);
}

void constants_free(ConstantTable *table) {
    for (size_t i = 1; i < table->entries.count; i++) {
        ConstantEntry *entry = &table->entries.items[i];
        if (entry->kind == CONSTANT_TEXT) free(entry->as.text);
        if (entry->kind >= CONSTANT_TUPLE) free(entry->as.items);
    }
    VECTOR_FREE(&table->entries);
    free(table->slots);
    *table = (ConstantTable){0};
}

int64_t constant_integer(const ConstantTable *table, Datum constant) {
    if (constant_is_small(constant)) return constant_small(constant);
    return constant_entry(table, constant)->as.integer;
}

bool constant_number(const ConstantTable *table, Datum constant, double *out) {
    ConstantKind kind = constant_kind(table, constant);
    if (kind == CONSTANT_INT)
        *out = (double)constant_integer(table, constant);
    else if (kind == CONSTANT_FLOAT)
        *out = constant_entry(table, constant)->as.number;
    return kind == CONSTANT_INT || kind == CONSTANT_FLOAT;
}

void constant_set_known(ConstantTable *table, Datum constant) {
    ASSERT(constant_is_small(constant) || constant < table->entries.count);
    if (!constant_is_small(constant)) table->entries.items[constant].known = true;
}

bool constant_is_known(const ConstantTable *table, Datum constant) {
    return constant != CONSTANT_NONE && !constant_is_small(constant) &&
           constant_entry(table, constant)->known;
}

// Exact: the integer is not rounded to a double.
static int compare_int_float(int64_t integer, double number) {
    if (isnan(number) || number >= 0x1p63) return -1;
    if (number < -0x1p63) return 1;
    int64_t floor = (int64_t)number;
    if (integer != floor) return integer < floor ? -1 : 1;
    double rest = number - (double)floor;
    return rest > 0 ? -1 : rest < 0;
}

static int compare_floats(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) - isnan(b); // nan stands after every number
    return a < b ? -1 : a > b;
}

static int compare_numbers(const ConstantTable *table, Datum a, Datum b) {
    bool a_int = constant_kind(table, a) == CONSTANT_INT;
    bool b_int = constant_kind(table, b) == CONSTANT_INT;
    int64_t x = a_int ? constant_integer(table, a) : 0, y = b_int ? constant_integer(table, b) : 0;
    if (a_int && b_int) return x < y ? -1 : x > y;
    if (a_int) return compare_int_float(x, constant_entry(table, b)->as.number);
    if (b_int) return -compare_int_float(y, constant_entry(table, a)->as.number);
    return compare_floats(constant_entry(table, a)->as.number, constant_entry(table, b)->as.number);
}

static bool is_number(ConstantKind kind) {
    return kind == CONSTANT_INT || kind == CONSTANT_FLOAT;
}

bool constant_compare(const ConstantTable *table, Datum a, Datum b, int *out) {
    *out = 0;
    if (a == b) return true;
    ConstantKind kind = constant_kind(table, a), other = constant_kind(table, b);
    if (is_number(kind) && is_number(other)) {
        *out = compare_numbers(table, a, b);
        return true;
    }
    if (kind != other) return false;
    const ConstantEntry *x = constant_entry(table, a), *y = constant_entry(table, b);
    size_t shorter = x->length < y->length ? x->length : y->length;
    if (kind == CONSTANT_TEXT) *out = memcmp(x->as.text, y->as.text, shorter);
    if (kind == CONSTANT_BOOL) *out = (int)x->as.integer - (int)y->as.integer;
    for (size_t i = 0; kind >= CONSTANT_TUPLE && i < shorter && *out == 0; i++)
        if (!constant_compare(table, x->as.items[i], y->as.items[i], out)) return false;
    if (*out == 0) *out = x->length < y->length ? -1 : x->length > y->length;
    return true;
}

static void print_item(const ConstantTable *table, Datum constant, bool quoted, Text *out) {
    if (constant_kind(table, constant) == CONSTANT_INT) {
        number_append_integer(out, constant_integer(table, constant));
        return;
    }
    const ConstantEntry *entry = constant_entry(table, constant);
    switch ((ConstantKind)entry->kind) {
    case CONSTANT_FLOAT: number_append_float(out, entry->as.number); break;
    case CONSTANT_BOOL: text_append_string(out, entry->as.integer ? "true" : "false"); break;
    case CONSTANT_TEXT:
        if (quoted)
            text_append_quoted(out, entry->as.text, entry->length);
        else
            text_append(out, entry->as.text, entry->length);
        break;
    default:
        text_append_char(out, entry->kind == CONSTANT_SET ? '{' : '(');
        for (size_t i = 0; i < entry->length; i++) {
            if (i > 0) text_append_string(out, ", ");
            print_item(table, entry->as.items[i], true, out);
        }
        if (entry->kind == CONSTANT_SET)
            text_append_char(out, '}');
        else
            text_append_string(out, entry->length == 1 ? ",)" : ")");
    }
}

void constant_print(const ConstantTable *table, Datum constant, Text *out) {
    print_item(table, constant, false, out);
}

const char *constant_kind_name(ConstantKind kind) {
    ASSERT((unsigned)kind <= CONSTANT_SET);
    static const char *const names[] = {"int", "float", "bool", "string", "tuple", "set"};
    return names[kind];
}

Status constants_fail_order(const ConstantTable *table, Datum a, Datum b) {
    ASSERT(a != b);
    SCOPED_TEXT(left);
    SCOPED_TEXT(right);
    constant_print(table, a, &left);
    constant_print(table, b, &right);
    fail(STATUS_TYPE, "%s and %s have no order: one is of type %s, the other of type %s",
         text_get(&left), text_get(&right), constant_kind_name(constant_kind(table, a)),
         constant_kind_name(constant_kind(table, b)));
    return STATUS_TYPE;
}
