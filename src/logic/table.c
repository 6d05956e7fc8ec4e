// Rows, their hash, and indexes. Everything grows by doubling, by less when it is large; chains of
// an index are in ascending order because rows are only ever added at the end.
#include "logic/table.h"

#include <math.h>
#include <stdlib.h>

#include "logic/hash.h"

enum { ROWS_FIRST = 8, SLOTS_FIRST = 16, LARGE = 1 << 16, WEIGHED_FIRST = 4096 };

static size_t rows_after(size_t capacity) {
    if (capacity == 0) return ROWS_FIRST;
    return capacity < LARGE ? capacity * 2 : capacity + capacity / 4;
}

static size_t slots_after(size_t count) {
    return count < LARGE ? count * 2 : count + count / 2;
}

// Where the search in so many slots begins.
static inline size_t slot_first(uint32_t hash, size_t count) {
    return (size_t)((uint64_t)hash * count >> 32);
}

static inline size_t slot_next(size_t slot, size_t count) {
    return slot + 1 == count ? 0 : slot + 1;
}

// Bits of a slot for row + 1, of so many rows; those above hold bits of the hash, by which most
// other keys are told apart without a look at their rows.
static uint32_t mask_of(size_t capacity) {
    uint32_t mask = 1;
    while (mask <= capacity) mask = mask * 2 + 1;
    return mask;
}

static inline uint32_t slot_of(uint32_t hash, uint32_t row, uint32_t mask) {
    ASSERT(row < mask);
    return (uint32_t)(hash * ((uint64_t)mask + 1)) | (row + 1);
}

static inline uint32_t slot_row(uint32_t slot, uint32_t mask) {
    return (slot & mask) - 1;
}

static inline bool slot_may_have(uint32_t slot, uint32_t hash, uint32_t mask) {
    return ((slot_of(hash, 0, mask) ^ slot) & ~mask) == 0;
}

// Another row with the same key.
static inline uint32_t slot_with(uint32_t slot, uint32_t row, uint32_t mask) {
    return (slot & ~mask) | (row + 1);
}

// Slots get room for row numbers below the capacity.
static void slots_widen(uint32_t *slots, size_t count, uint32_t *mask, size_t capacity) {
    uint32_t before = *mask, wider = mask_of(capacity);
    if (wider <= before) return;
    ASSERT(((wider + 1) & wider) == 0 && wider > capacity);
    uint64_t factor = ((uint64_t)wider + 1) / ((uint64_t)before + 1);
    for (size_t i = 0; i < count; i++)
        if (slots[i] && slots[i] != ROW_NONE)
            slots[i] = (uint32_t)((slots[i] & ~before) * factor) | (slots[i] & before);
    *mask = wider;
}

static uint32_t hash_values(const Datum *values, Columns columns) {
    uint32_t hash = hash_begin(1);
    for (Columns left = columns; left; left &= left - 1)
        hash = hash_add(hash, values[__builtin_ctz(left)]);
    return hash_end(hash);
}

static uint32_t hash_row(const Table *table, uint32_t row, Columns columns) {
    uint32_t hash = hash_begin(1);
    for (Columns left = columns; left; left &= left - 1)
        hash = hash_add(hash, table->columns[__builtin_ctz(left)][row]);
    return hash_end(hash);
}

static bool row_has(const Table *table, uint32_t row, const Datum *values, Columns columns) {
    for (Columns left = columns; left; left &= left - 1) {
        int column = __builtin_ctz(left);
        if (table->columns[column][row] != values[column]) return false;
    }
    return true;
}

Table *table_new(uint32_t arity, Columns key) {
    ASSERT(arity <= ARITY_MAX);
    ASSERT((key & ~columns_all(arity)) == 0);
    Table *table = memory_allocate_zeroed(1, sizeof *table);
    table->arity = arity;
    table->key = key;
    table->columns = memory_allocate_zeroed(arity + 1, sizeof *table->columns);
    return table;
}

static void indexes_free(Table *table) {
    for (size_t i = 0; i < table->indexes.count; i++) {
        Index *index = table->indexes.items[i];
        free(index->slots);
        free(index->next);
        free(index);
    }
    VECTOR_FREE(&table->indexes);
}

void table_free(Table *table) {
    if (!table) return;
    indexes_free(table);
    for (uint32_t i = 0; i < table->arity; i++) free(table->columns[i]);
    free(table->columns);
    free(table->gone);
    free(table->slots);
    free(table->distinct);
    cells_free(table->cells);
    free(table);
}

// --- the hash over the key

// Where a key is, or the place for it.
static size_t slot_find(const Table *table, const Datum *values, uint32_t hash) {
    ASSERT(table->slots_used < table->slot_count);
    size_t at = slot_first(hash, table->slot_count);
    size_t place = SIZE_MAX;
    for (;; at = slot_next(at, table->slot_count)) {
        uint32_t slot = table->slots[at];
        if (slot == 0) return place == SIZE_MAX ? at : place;
        if (slot == ROW_NONE)
            place = place == SIZE_MAX ? at : place;
        else if (slot_may_have(slot, hash, table->mask) &&
                 row_has(table, slot_row(slot, table->mask), values, table->key))
            return at;
    }
}

static bool row_has_key_of(const Table *table, uint32_t row, uint32_t other) {
    for (Columns left = table->key; left; left &= left - 1) {
        const Datum *column = table->columns[__builtin_ctz(left)];
        if (column[row] != column[other]) return false;
    }
    return true;
}

// Of rows with the same key the first that comes stays: the others are superseded.
static void slots_insert(Table *table, uint32_t row) {
    bool several = table->key != columns_all(table->arity);
    uint32_t hash = hash_row(table, row, table->key);
    size_t at = slot_first(hash, table->slot_count);
    for (; table->slots[at]; at = slot_next(at, table->slot_count))
        if (several && row_has_key_of(table, slot_row(table->slots[at], table->mask), row)) return;
    ASSERT(row < table->count);
    table->slots[at] = slot_of(hash, row, table->mask);
    table->slots_used++;
}

// With every row from `hashed` on.
static void slots_rebuild(Table *table, size_t least) {
    ASSERT(table->hashed <= table->count);
    size_t live = table->hashed ? table->count - table->hashed : table_live(table);
    size_t wanted = least;
    while (wanted < live + live / 2 + 2 && wanted) wanted = slots_after(wanted);
    free(table->slots);
    table->slots = wanted ? memory_allocate_zeroed(wanted, sizeof *table->slots) : NULL;
    table->slot_count = wanted;
    table->slots_used = 0;
    table->mask = mask_of(table->capacity);
    for (uint32_t row = table->count; row-- > table->hashed;)
        if (!table_is_dead(table, row)) slots_insert(table, row);
}

static void slots_free(Table *table) {
    free(table->slots);
    table->slots = NULL;
    table->slot_count = table->slots_used = 0;
}

uint32_t table_find_recent(const Table *table, const Datum *values) {
    if (table->slot_count == 0) return ROW_NONE;
    uint32_t slot = table->slots[slot_find(table, values, hash_values(values, table->key))];
    return slot == 0 || slot == ROW_NONE ? ROW_NONE : slot_row(slot, table->mask);
}

void table_number_rows(Table *table) {
    if (!table->cells || table->hashed == 0) return;
    table->numbered = true;
    table->hashed = 0;
    slots_rebuild(table, table->count ? SLOTS_FIRST : 0);
}

uint32_t table_find(const Table *table, const Datum *values) {
    if (table->cells) {
        if (!cells_have(table->cells, values)) return ROW_NONE;
        table_number_rows((Table *)(uintptr_t)table); // what is asked does not change
    }
    return table_find_recent(table, values);
}

bool table_has(const Table *table, const Datum *values) {
    if (table->cells) return cells_have(table->cells, values);
    return table_find_recent(table, values) != ROW_NONE;
}

// --- bits in the place of the hash

// The hash knows the rows that it has to.
static void slots_set(Table *table) {
    uint32_t hashed = table->cells && !table->numbered ? table->segment : 0;
    if (table->hashed == hashed && hashed != table->count) return;
    table->hashed = hashed;
    if (hashed == ROW_NONE)
        slots_free(table);
    else
        slots_rebuild(table, table->count > hashed || hashed == 0 ? SLOTS_FIRST : 0);
}

// With bits rows are found without numbers, until somebody asks for these.
static void slots_forget(Table *table) {
    ASSERT(table->cells);
    slots_free(table);
    table->hashed = table->segment = ROW_NONE;
}

// Makes the choice anew, for the rows that there are and one that will come, or NULL.
static void table_weigh(Table *table, const Datum *also) {
    bool forced = table->room->wanted != REPRESENTATION_CHOSEN;
    uint32_t twice = table->count < ROW_NONE / 2 ? table->count * 2 : ROW_NONE;
    table->weigh_at = twice > WEIGHED_FIRST ? twice : WEIGHED_FIRST;
    if (forced && table->count == 0) table->weigh_at = 1;
    cells_free(table->cells);
    table->cells = NULL;
    if (forced ? table->count > 0 : table->count >= WEIGHED_FIRST)
        table->cells = cells_make(table, table->room, also);
    slots_set(table);
}

void table_give_room(Table *table, CellsRoom *room) {
    if (table->key != columns_all(table->arity) || table->arity == 0) return;
    table->room = room;
    table->segment = ROW_NONE;
    table_weigh(table, NULL);
}

void table_begin_segment(Table *table, bool numbers) {
    table->segment = numbers ? table->count : ROW_NONE;
    if (table->cells) slots_set(table);
}

// --- rows

static void rows_grow(Table *table) {
    size_t capacity = rows_after(table->capacity);
    ASSERT(capacity < ROW_NONE);
    for (uint32_t i = 0; i < table->arity; i++)
        table->columns[i] = memory_resize(table->columns[i], capacity * sizeof(Datum));
    if (table->gone) {
        size_t before = (table->capacity + 63) / 64, after = (capacity + 63) / 64;
        table->gone = memory_resize(table->gone, after * sizeof *table->gone);
        memset(table->gone + before, 0, (after - before) * sizeof *table->gone);
    }
    table->capacity = capacity;
    slots_widen(table->slots, table->slot_count, &table->mask, capacity);
}

static uint32_t row_put(Table *table, const Datum *values) {
    if (table->count == table->capacity) rows_grow(table);
    ASSERT(table->count < table->capacity);
    for (uint32_t i = 0; i < table->arity; i++) table->columns[i][table->count] = values[i];
    return table->count++;
}

uint32_t table_append(Table *table, const Datum *values) {
    if (table->cells && !cells_add(table->cells, values)) {
        table_weigh(table, values);
        if (table->cells) cells_add(table->cells, values);
    }
    if (table->hashed == ROW_NONE) {
        row_put(table, values);
    } else {
        if (table->slots_used * 4 >= table->slot_count * 3) slots_rebuild(table, SLOTS_FIRST);
        ASSERT(table->slots_used < table->slot_count); // the search for a key ends
        uint32_t hash = hash_values(values, table->key);
        size_t slot = slot_find(table, values, hash);
        ASSERT(table->slots[slot] == 0 || table->slots[slot] == ROW_NONE); // a new key
        table->slots_used += table->slots[slot] == 0;
        uint32_t row = row_put(table, values);
        table->slots[slot] = slot_of(hash, row, table->mask);
    }
    if (table->room && table->count >= table->weigh_at) table_weigh(table, NULL);
    return table->count - 1;
}

uint32_t table_number(Table *table, Datum value) {
    ASSERT(table->arity == 1);
    uint32_t row = table_find(table, &value);
    return row == ROW_NONE ? table_append(table, &value) : row;
}

uint32_t table_supersede(Table *table, uint32_t row, const Datum *values) {
    ASSERT(!table->cells);
    size_t slot = slot_find(table, values, hash_values(values, table->key));
    ASSERT(slot_row(table->slots[slot], table->mask) == row);
    uint32_t added = row_put(table, values);
    table->slots[slot] = slot_with(table->slots[slot], added, table->mask);
    return added;
}

void table_bury(Table *table, uint32_t row) {
    ASSERT(row < table->count && !table_is_dead(table, row));
    if (!table->gone)
        table->gone = memory_allocate_zeroed((table->capacity + 63) / 64, sizeof *table->gone);
    table->gone[row / 64] |= (uint64_t)1 << row % 64;
    table->dead++;
    ASSERT(table->dead <= table->count);
}

void table_read(const Table *table, uint32_t row, Datum *values) {
    ASSERT(row < table->count);
    for (uint32_t i = 0; i < table->arity; i++) values[i] = table->columns[i][row];
}

void table_remove(Table *table, uint32_t row) {
    Datum values[ARITY_MAX];
    table_read(table, row, values);
    table_number_rows(table);
    size_t slot = slot_find(table, values, hash_values(values, table->key));
    ASSERT(slot_row(table->slots[slot], table->mask) == row);
    table->slots[slot] = ROW_NONE;
    if (table->cells) cells_remove(table->cells, values);
    table_bury(table, row);
}

// The room that as many rows would have been given.
static void rows_shrink(Table *table) {
    size_t capacity = 0;
    while (capacity < table->count) capacity = rows_after(capacity);
    if (capacity >= table->capacity) return;
    for (uint32_t i = 0; i < table->arity; i++) {
        if (capacity) {
            table->columns[i] = memory_resize(table->columns[i], capacity * sizeof(Datum));
            continue;
        }
        free(table->columns[i]);
        table->columns[i] = NULL;
    }
    table->capacity = capacity;
}

void table_compact(Table *table) {
    uint32_t kept = 0;
    for (uint32_t row = 0; row < table->count; row++) {
        if (table_is_dead(table, row)) continue;
        for (uint32_t i = 0; i < table->arity; i++)
            table->columns[i][kept] = table->columns[i][row];
        kept++;
    }
    ASSERT(kept == table_live(table));
    table->count = kept;
    table->dead = 0;
    free(table->gone);
    table->gone = NULL;
    indexes_free(table);
    free(table->distinct);
    table->distinct = NULL;
    rows_shrink(table);
    table->hashed = 0;
    table->segment = ROW_NONE; // the rows have new numbers
    table->numbered = false;
    slots_rebuild(table, table->count ? SLOTS_FIRST : 0);
    if (table->room) table_weigh(table, NULL);
}

static void *bytes_copy(const void *bytes, size_t count) {
    if (!bytes) return NULL;
    return memcpy(memory_allocate(count), bytes, count);
}

Table *table_copy(const Table *table) {
    Table *copy = table_new(table->arity, table->key);
    copy->count = table->count;
    copy->dead = table->dead;
    copy->capacity = table->capacity;
    for (uint32_t i = 0; i < table->arity; i++)
        copy->columns[i] = bytes_copy(table->columns[i], table->capacity * sizeof(Datum));
    copy->gone = bytes_copy(table->gone, (table->capacity + 63) / 64 * sizeof *table->gone);
    slots_rebuild(copy, copy->count ? SLOTS_FIRST : 0);
    if (table->room) table_give_room(copy, table->room);
    return copy;
}

static size_t slot_of_row(const Table *table, uint32_t row) {
    size_t at = slot_first(hash_row(table, row, table->key), table->slot_count);
    while (slot_row(table->slots[at], table->mask) != row) at = slot_next(at, table->slot_count);
    return at;
}

static void slots_permute(Table *table, uint32_t first, const uint32_t *order) {
    uint32_t count = table->count - first;
    SCOPED_MEMORY size_t *slots = memory_allocate((count + 1) * sizeof *slots);
    for (uint32_t j = 0; j < count; j++) slots[j] = slot_of_row(table, first + j);
    for (uint32_t j = 0; j < count; j++) {
        uint32_t *slot = &table->slots[slots[order[j] - first]];
        *slot = slot_with(*slot, first + j, table->mask);
    }
}

void table_permute(Table *table, uint32_t first, const uint32_t *order) {
    ASSERT(first <= table->count);
    uint32_t count = table->count - first;
    if (count == 0) return;
    if (table->hashed <= first) slots_permute(table, first, order);
    if (table->hashed > first) slots_forget(table);
    SCOPED_MEMORY Datum *moved = memory_allocate((count + 1) * sizeof *moved);
    for (uint32_t i = 0; i < table->arity; i++) {
        Datum *column = table->columns[i];
        for (uint32_t j = 0; j < count; j++) moved[j] = column[order[j]];
        memcpy(column + first, moved, count * sizeof *moved);
    }
}

// --- indexes

static size_t index_slot(const Table *table, const Index *index, const Datum *values,
                         uint32_t hash) {
    size_t at = slot_first(hash, index->slot_count);
    for (; index->slots[at]; at = slot_next(at, index->slot_count)) {
        uint32_t slot = index->slots[at];
        if (slot_may_have(slot, hash, index->mask) &&
            row_has(table, slot_row(slot, index->mask), values, index->columns))
            break;
    }
    return at;
}

uint32_t index_first(const Table *table, const Index *index, const Datum *values) {
    ASSERT(index->covered <= table->count);
    if (index->groups == 0) return ROW_NONE;
    uint32_t hash = hash_values(values, index->columns);
    uint32_t slot = index->slots[index_slot(table, index, values, hash)];
    return slot == 0 ? ROW_NONE : index->next[slot_row(slot, index->mask)];
}

static void index_grow_slots(const Table *table, Index *index) {
    size_t count = index->slot_count ? slots_after(index->slot_count) : SLOTS_FIRST;
    uint32_t *slots = memory_allocate_zeroed(count, sizeof *slots);
    for (size_t i = 0; i < index->slot_count; i++) {
        if (index->slots[i] == 0) continue;
        uint32_t hash = hash_row(table, slot_row(index->slots[i], index->mask), index->columns);
        size_t at = slot_first(hash, count);
        while (slots[at]) at = slot_next(at, count);
        slots[at] = index->slots[i];
    }
    free(index->slots);
    index->slots = slots;
    index->slot_count = count;
}

static void index_extend(const Table *table, Index *index, uint32_t limit) {
    ASSERT(limit <= table->count);
    if (index->capacity < limit) {
        index->capacity = table->capacity;
        index->next = memory_resize(index->next, index->capacity * sizeof *index->next);
        slots_widen(index->slots, index->slot_count, &index->mask, index->capacity);
    }
    Datum values[ARITY_MAX];
    for (; index->covered < limit; index->covered++) {
        uint32_t row = index->covered;
        if (table_is_dead(table, row)) continue;
        if ((uint64_t)index->groups * 4 >= index->slot_count * 3) index_grow_slots(table, index);
        table_read(table, row, values);
        uint32_t hash = hash_values(values, index->columns);
        size_t slot = index_slot(table, index, values, hash);
        uint32_t last = index->slots[slot] ? slot_row(index->slots[slot], index->mask) : row;
        ASSERT(last <= row); // in ascending order
        index->groups += index->slots[slot] == 0;
        index->next[row] = last == row ? row : index->next[last];
        index->next[last] = row;
        index->slots[slot] = slot_of(hash, row, index->mask);
    }
}

Index *table_index(Table *table, Columns columns, uint32_t limit) {
    ASSERT((columns & ~columns_all(table->arity)) == 0);
    Index *index = NULL;
    for (size_t i = 0; i < table->indexes.count && !index; i++)
        if (table->indexes.items[i]->columns == columns) index = table->indexes.items[i];
    if (!index) {
        index = memory_allocate_zeroed(1, sizeof *index);
        index->columns = columns;
        VECTOR_PUSH(&table->indexes, index);
    }
    index_extend(table, index, limit);
    return index;
}

// --- statistics

// Linear counting: as many bits as rows, one for each value; those that stay 0 tell how many there
// are.
static double column_count(const Table *table, uint32_t column) {
    enum { BITS_MIN = 1024, BITS_MAX = 1 << 22 };
    size_t bits = BITS_MIN;
    while (bits < table->count && bits < BITS_MAX) bits *= 2;
    uint64_t *seen = memory_allocate_zeroed(bits / 64, sizeof *seen);
    for (uint32_t row = 0; row < table->count; row++) {
        uint32_t hash = hash_row(table, row, 1u << column) & (uint32_t)(bits - 1);
        seen[hash / 64] |= (uint64_t)1 << hash % 64;
    }
    size_t ones = 0;
    for (size_t i = 0; i < bits / 64; i++) ones += (size_t)__builtin_popcountll(seen[i]);
    free(seen);
    double zeros = ones < bits ? (double)(bits - ones) : 1;
    return (double)bits * log((double)bits / zeros);
}

// Counted anew when the table has doubled.
double table_distinct(Table *table, Columns columns) {
    if (!table->distinct || table->count / 2 >= table->counted) {
        if (!table->distinct)
            table->distinct = memory_allocate((table->arity + 1) * sizeof *table->distinct);
        for (uint32_t i = 0; i < table->arity; i++) table->distinct[i] = column_count(table, i);
        table->counted = table->count;
    }
    double product = 1;
    for (Columns left = columns; left; left &= left - 1) {
        double values = table->distinct[__builtin_ctz(left)];
        if (values > 1) product *= values;
    }
    return product < table->count ? product : table->count ? table->count : 1;
}

size_t table_growth(const Table *table, uint32_t rows) {
    size_t bytes = 0, capacity = rows_after(table->capacity);
    bool full = (size_t)table->count + rows > table->capacity;
    if (full) bytes += capacity * (table->arity + table->indexes.count) * sizeof(Datum);
    bool dense = ((size_t)table->slots_used + rows) * 4 >= table->slot_count * 3;
    if (dense) bytes += slots_after(table->slot_count) * sizeof *table->slots;
    for (size_t i = 0; i < table->indexes.count; i++) {
        const Index *index = table->indexes.items[i];
        dense = ((size_t)index->groups + rows) * 4 >= index->slot_count * 3;
        if (dense) bytes += slots_after(index->slot_count) * sizeof *index->slots;
    }
    return bytes;
}

size_t table_bytes(const Table *table) {
    size_t bytes = sizeof *table + table->capacity * table->arity * sizeof(Datum) +
                   table->slot_count * sizeof *table->slots;
    if (table->distinct) bytes += (table->arity + 1) * sizeof *table->distinct;
    bytes += cells_bytes(table->cells);
    if (table->gone) bytes += (table->capacity + 63) / 64 * sizeof *table->gone;
    for (size_t i = 0; i < table->indexes.count; i++) {
        const Index *index = table->indexes.items[i];
        bytes += sizeof *index + index->slot_count * sizeof *index->slots +
                 index->capacity * sizeof *index->next;
    }
    return bytes;
}
