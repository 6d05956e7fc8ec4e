// Costs are predicted in bytes: a probe of the hash reads its slot and then the row, one of bits
// reads one word, so bits that take no more than the hash are never slower.
#include "logic/cells.h"

#include <stdlib.h>

#include "logic/table.h"

enum { WORD = 64, SPARSE_FIRST = 64 };

typedef struct Box {
    uint32_t low[ARITY_MAX], high[ARITY_MAX];
} Box;

// Small integers in their order, so that a few around 0 have a small range.
static inline uint32_t value_place(Datum value) {
    return value ^ (value >> 31 << 30);
}

static void box_extend(Box *box, uint32_t column, Datum value) {
    uint32_t place = value_place(value);
    if (place < box->low[column]) box->low[column] = place;
    if (place > box->high[column]) box->high[column] = place;
}

static void box_of(const Table *table, Box *box) {
    for (uint32_t i = 0; i < table->arity; i++) {
        box->low[i] = UINT32_MAX;
        box->high[i] = 0;
        for (uint32_t row = 0; row < table->count; row++)
            if (!table_is_dead(table, row)) box_extend(box, i, table_at(table, row, i));
    }
}

// With room for `also` and, where a range grows, 1/share of it more for what may follow.
static Box box_with(const Box *before, const Datum *also, uint32_t arity, uint32_t share) {
    enum { MORE = 8 };
    Box box = *before;
    for (uint32_t i = 0; i < arity; i++) {
        uint32_t low = box.low[i], high = box.high[i];
        box_extend(&box, i, also[i]);
        uint32_t more = (box.high[i] - box.low[i]) / share + MORE;
        if (box.high[i] > high && box.high[i] <= UINT32_MAX - more) box.high[i] += more;
        if (box.low[i] < low && box.low[i] >= more) box.low[i] -= more;
    }
    return box;
}

static double box_cells(const Box *box, uint32_t arity) {
    double cells = 1;
    for (uint32_t i = 0; i < arity; i++) cells *= (double)box->high[i] - box->low[i] + 1;
    return cells;
}

// The number of the cell; UINT64_MAX: out of range.
static inline uint64_t cell_of(const Cells *cells, const Datum *values) {
    uint64_t cell = 0;
    for (uint32_t i = 0; i < cells->arity; i++) {
        uint32_t at = value_place(values[i]) - cells->low[i];
        if (at >= cells->span[i]) return UINT64_MAX;
        cell = cell * cells->span[i] + at;
    }
    return cell;
}

// --- sparse words

static inline size_t sparse_place(const Cells *cells, uint64_t number) {
    size_t mask = cells->word_count - 1;
    uint64_t hash = number * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(hash ^ hash >> 32) & mask;
    while (cells->sparse[at].number && cells->sparse[at].number != number + 1) at = (at + 1) & mask;
    return at;
}

// Room for the words; false: there is none, and nothing has changed.
static bool words_resize(Cells *cells, size_t count, size_t word_bytes, void **out) {
    uint64_t before = cells_bytes(cells);
    uint64_t others = cells->room->bytes - before;
    uint64_t bytes = (uint64_t)count * word_bytes;
    if (bytes > cells->room->bytes_most || others > cells->room->bytes_most - bytes) return false;
    *out = memory_try_resize(NULL, count * word_bytes);
    if (!*out) return false;
    memset(*out, 0, count * word_bytes);
    cells->room->bytes = others + bytes;
    cells->word_count = count;
    return true;
}

static bool sparse_grow(Cells *cells) {
    SparseWord *before = cells->sparse;
    size_t count = cells->word_count;
    void *words;
    if (!words_resize(cells, count ? count * 2 : SPARSE_FIRST, sizeof *before, &words))
        return false;
    cells->sparse = words;
    for (size_t i = 0; i < count; i++)
        if (before[i].number) cells->sparse[sparse_place(cells, before[i].number - 1)] = before[i];
    free(before);
    return true;
}

static bool sparse_add(Cells *cells, uint64_t cell) {
    if (cells->words_used * 3 >= cells->word_count * 2 && !sparse_grow(cells)) return false;
    SparseWord *word = &cells->sparse[sparse_place(cells, cell / WORD)];
    cells->words_used += word->number == 0;
    word->number = cell / WORD + 1;
    word->bits |= (uint64_t)1 << cell % WORD;
    return true;
}

// --- the set

static inline uint64_t *word_find(const Cells *cells, uint64_t cell) {
    if (cells->words) return &cells->words[cell / WORD];
    return &cells->sparse[sparse_place(cells, cell / WORD)].bits;
}

bool cells_have(const Cells *cells, const Datum *values) {
    uint64_t cell = cell_of(cells, values);
    if (cell == UINT64_MAX) return false;
    return *word_find(cells, cell) >> cell % WORD & 1;
}

bool cells_add(Cells *cells, const Datum *values) {
    uint64_t cell = cell_of(cells, values);
    if (cell == UINT64_MAX) return false;
    if (!cells->words) return sparse_add(cells, cell);
    cells->words[cell / WORD] |= (uint64_t)1 << cell % WORD;
    return true;
}

void cells_remove(Cells *cells, const Datum *values) {
    uint64_t cell = cell_of(cells, values);
    ASSERT(cell != UINT64_MAX);
    *word_find(cells, cell) &= ~((uint64_t)1 << cell % WORD);
}

size_t cells_bytes(const Cells *cells) {
    if (!cells) return 0;
    return cells->word_count * (cells->sparse ? sizeof *cells->sparse : sizeof *cells->words);
}

const char *cells_name(const Cells *cells) {
    return !cells ? "tuples" : cells->words ? "dense bits" : "sparse rows";
}

void cells_free(Cells *cells) {
    if (!cells) return;
    cells->room->bytes -= cells_bytes(cells);
    free(cells->low);
    free(cells->span);
    free(cells->words);
    free(cells->sparse);
    free(cells);
}

// --- the choice

static Cells *cells_new(CellsRoom *room, const Box *box, uint32_t arity) {
    Cells *cells = memory_allocate_zeroed(1, sizeof *cells);
    cells->room = room;
    cells->arity = arity;
    cells->low = memory_allocate(arity * sizeof *cells->low);
    cells->span = memory_allocate(arity * sizeof *cells->span);
    for (uint32_t i = 0; i < arity; i++) {
        cells->low[i] = box->low[i];
        cells->span[i] = (uint64_t)box->high[i] - box->low[i] + 1;
    }
    return cells;
}

static bool rows_add(Cells *cells, const Table *table, size_t bytes_most) {
    Datum values[ARITY_MAX];
    for (uint32_t row = 0; row < table->count; row++) {
        if (table_is_dead(table, row)) continue;
        table_read(table, row, values);
        if (!cells_add(cells, values) || cells_bytes(cells) > bytes_most) return false;
    }
    return true;
}

static bool cells_fill(Cells *cells, const Table *table, bool dense, double count, size_t most) {
    void *words;
    if (!dense) return sparse_grow(cells) && rows_add(cells, table, most);
    if (!words_resize(cells, (size_t)(count / WORD) + 1, sizeof *cells->words, &words))
        return false;
    cells->words = words;
    return rows_add(cells, table, SIZE_MAX);
}

Cells *cells_make(const Table *table, CellsRoom *room, const Datum *also) {
    enum { HASH_BYTES = 8 }; // of a row, about
    const double CELLS_MOST = 0x1p62;
    Box box = {0};
    if (table_live(table) == 0 && !also) return NULL;
    size_t most = (size_t)(table_live(table) + 1) * HASH_BYTES;
    bool chosen = room->wanted == REPRESENTATION_CHOSEN;
    box_of(table, &box);
    if (also) { // twice the range, so that not every row makes bits anew, or as much as pays
        Box wide = box_with(&box, also, table->arity, 1);
        bool pays = box_cells(&wide, table->arity) / 8 <= (double)most;
        box = pays ? wide : box_with(&box, also, table->arity, 8);
    }
    double count = box_cells(&box, table->arity);
    bool dense = chosen ? count / 8 <= (double)most : room->wanted == REPRESENTATION_BITS;
    bool possible = dense ? count / 8 <= (double)room->bytes_most : count <= CELLS_MOST;
    if (!possible || room->wanted == REPRESENTATION_TUPLES) return NULL;
    Cells *cells = cells_new(room, &box, table->arity);
    if (cells_fill(cells, table, dense, count, chosen ? most : SIZE_MAX)) return cells;
    cells_free(cells);
    return NULL;
}
