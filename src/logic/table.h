// A set of rows of constants in the order in which they came: columns, a hash over the key columns,
// and indexes over other sets of columns, made when first asked for. Knows nothing of rules.
#ifndef LOGIC_TABLE_H
#define LOGIC_TABLE_H

#include "logic/cells.h"

enum { ARITY_MAX = 32, ROW_NONE = UINT32_MAX };

typedef uint32_t Columns; // a set of columns, as bits

// From the values of some columns to the rows that have them, in ascending order: rings, of which
// the last row is known and leads to the first.
typedef struct Index {
    Columns columns;
    uint32_t covered; // rows that it knows
    uint32_t groups;  // different keys
    uint32_t *slots;  // last row of each key's ring (table.c); 0: empty
    size_t slot_count;
    uint32_t mask;   // bits of a slot that hold the row
    uint32_t *next;  // by row: the next of its key
    size_t capacity; // of next
} Index;

struct Table {
    uint32_t arity;
    Columns key;    // rows with equal key columns are the same row
    uint32_t count; // rows, dead ones included
    uint32_t dead;  // rows that were removed or replaced
    size_t capacity;
    Datum **columns;
    uint64_t *gone;  // a bit a row: it is dead; NULL while there is none
    uint32_t *slots; // rows (table.c); 0: empty, ROW_NONE: removed
    size_t slot_count, slots_used;
    uint32_t mask;     // bits of a slot that hold the row
    CellsRoom *room;   // of the bits that may find rows instead of the hash; NULL: they may not
    Cells *cells;      // NULL: the hash knows every row
    uint32_t hashed;   // the first row that the hash knows; ROW_NONE: it knows none
    uint32_t segment;  // with bits: the rows from here on are to be known; ROW_NONE: none
    bool numbered;     // somebody has asked for the number of any row: all are to be known
    uint32_t weigh_at; // how many rows there are when the choice is made again
    VECTOR(Index *) indexes;
    double *distinct; // different values of each column, guessed when there were `counted` rows
    uint32_t counted;
};

Table *table_new(uint32_t arity, Columns key);
void table_free(Table *table);         // NULL is allowed
Table *table_copy(const Table *table); // its rows; indexes are made anew when asked for
static inline Columns columns_all(uint32_t arity) {
    return arity >= 32 ? ~0u : (1u << arity) - 1;
}
static inline Datum table_at(const Table *table, uint32_t row, uint32_t column) {
    return table->columns[column][row];
}
static inline bool table_is_dead(const Table *table, uint32_t row) {
    return table->gone && (table->gone[row / 64] >> row % 64 & 1);
}
static inline uint32_t table_live(const Table *table) {
    return table->count - table->dead;
}
// From now on rows are found by what is predicted to cost least. Every column is of the key.
void table_give_room(Table *table, CellsRoom *room);
// Rows are put behind the present ones; `numbers`: those will be asked for by table_find_recent.
void table_begin_segment(Table *table, bool numbers);
// Whether a row with these values in the key columns is there.
bool table_has(const Table *table, const Datum *values);
// The same, of the segment's rows its number; ROW_NONE: it is none of them.
uint32_t table_find_recent(const Table *table, const Datum *values);
// The row with these values in the key columns, or ROW_NONE.
uint32_t table_find(const Table *table, const Datum *values);
// From now on table_find changes nothing, so that several threads may ask.
void table_number_rows(Table *table);
// Adds a row that table_find does not find.
uint32_t table_append(Table *table, const Datum *values);
// The row of a value in a table of one column, added when it is new.
uint32_t table_number(Table *table, Datum value);
// Adds a row in the place of another with the same key, which stays visible until it is buried.
uint32_t table_supersede(Table *table, uint32_t row, const Datum *values);
void table_bury(Table *table, uint32_t row);
void table_remove(Table *table, uint32_t row);
// Leaves out the dead rows; rows get new numbers, indexes and room that is not needed go.
void table_compact(Table *table);
// Puts the rows from `first` on in the order of `order`, row numbers of the same range.
void table_permute(Table *table, uint32_t first, const uint32_t *order);
void table_read(const Table *table, uint32_t row, Datum *values);
// How many different values these columns have, as if they did not depend on each other: at
// least 1.
double table_distinct(Table *table, Columns columns);
size_t table_bytes(const Table *table);
size_t table_growth(const Table *table, uint32_t rows); // bytes wanted when so many come

// The index over these columns, which knows the rows below `limit`: those that stay where they are.
Index *table_index(Table *table, Columns columns, uint32_t limit);
// The first row of those whose columns have these values (others are not looked at); ROW_NONE.
uint32_t index_first(const Table *table, const Index *index, const Datum *values);
static inline uint32_t index_next(const Index *index, uint32_t row) {
    uint32_t next = index->next[row];
    return next > row ? next : ROW_NONE; // behind the last
}

#endif
