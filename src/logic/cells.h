// A set of rows as bits: each column has a range of values, and a row is a cell of the box that
// these make. Bits of all cells (dense), or of the words of 64 cells that are not empty (sparse).
#ifndef LOGIC_CELLS_H
#define LOGIC_CELLS_H

#include "logic/constant.h"

// How the rows of a table are found.
typedef enum Representation {
    REPRESENTATION_CHOSEN, // by predicted cost
    REPRESENTATION_TUPLES, // by a hash of row numbers
    REPRESENTATION_SPARSE,
    REPRESENTATION_BITS,
} Representation;

// What all sets of bits of a store share.
typedef struct CellsRoom {
    Representation wanted; // CHOSEN but in tests
    uint64_t bytes_most, bytes;
} CellsRoom;

typedef struct SparseWord {
    uint64_t number; // + 1; 0: empty
    uint64_t bits;
} SparseWord;

typedef struct Cells {
    CellsRoom *room;
    uint32_t arity;
    uint32_t *low;      // of each column's range
    uint64_t *span;     // and how many values it has
    uint64_t *words;    // dense: a bit a cell
    SparseWord *sparse; // or a hash of words, by number
    size_t word_count;  // of `words` or places in `sparse`: there a power of two
    size_t words_used;  // of `sparse`
} Cells;

typedef struct Table Table;

// The set of the table's rows in the representation that is wanted or predicted to cost least;
// NULL: tuples, or more bytes than the room has. `also`: a row that will come, or NULL.
Cells *cells_make(const Table *table, CellsRoom *room, const Datum *also);
void cells_free(Cells *cells); // NULL is allowed
bool cells_have(const Cells *cells, const Datum *values);
// false: a value is out of its column's range, or the room is full.
bool cells_add(Cells *cells, const Datum *values);
void cells_remove(Cells *cells, const Datum *values);
size_t cells_bytes(const Cells *cells); // NULL: 0
const char *cells_name(const Cells *cells);

#endif
