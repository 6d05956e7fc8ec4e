// The constants of logic programs as numbers of 32 bits: integers that fit into 31 bits stand for
// themselves, everything else (texts, floats, booleans, tuples, larger integers) is kept once in a
// table. Two constants are the same exactly when their numbers are.
#ifndef LOGIC_CONSTANT_H
#define LOGIC_CONSTANT_H

#include "base/memory.h"
#include "base/text.h"

typedef uint32_t Datum;     // a constant
enum { CONSTANT_NONE = 0 }; // of no value: an unbound variable

typedef VECTOR(Datum) DatumList;

typedef enum ConstantKind {
    CONSTANT_INT,
    CONSTANT_FLOAT,
    CONSTANT_BOOL,
    CONSTANT_TEXT, // entities and strings
    CONSTANT_TUPLE,
    CONSTANT_SET, // of a column that unites its values: items without repetition, in order
} ConstantKind;

typedef struct ConstantEntry {
    uint8_t kind;
    bool known; // it occurs in a fact or is declared: a name of its spelling means it
    uint32_t hash, length;
    union {
        int64_t integer;
        double number;
        char *text;   // NUL-terminated
        Datum *items; // of a TUPLE or SET
    } as;
} ConstantEntry;

typedef struct ConstantTable {
    VECTOR(ConstantEntry) entries; // entry 0 is CONSTANT_NONE
    uint32_t *slots;               // numbers of entries, 0: empty; a power of two of them
    size_t slot_count;
    size_t bytes; // of texts and tuples
    bool frozen;  // others read it meanwhile: a constant that is not in it is refused,
    bool refused; // said here, and CONSTANT_NONE in its place
} ConstantTable;

void constants_free(ConstantTable *table);
size_t constants_bytes(const ConstantTable *table);
size_t constants_growth(const ConstantTable *table, size_t count); // bytes wanted for as many more
Datum constant_int(ConstantTable *table, int64_t value);
Datum constant_float(ConstantTable *table, double value);
Datum constant_bool(ConstantTable *table, bool value);
Datum constant_text(ConstantTable *table, const char *text, size_t length);
Datum constant_tuple(ConstantTable *table, const Datum *items, size_t count);
// The union of two constants, of which those that are not sets stand for the set of themselves.
Datum constant_unite(ConstantTable *table, Datum a, Datum b);
// The text's constant, or CONSTANT_NONE where nothing has made it yet.
Datum constant_find_text(const ConstantTable *table, const char *text, size_t length);

enum { CONSTANT_SMALL = INT32_MIN }; // the bit that marks a small integer
static inline bool constant_is_small(Datum constant) {
    return constant >> 31;
}
static inline int64_t constant_small(Datum constant) {
    return (int32_t)(constant << 1) >> 1;
}
static inline const ConstantEntry *constant_entry(const ConstantTable *table, Datum constant) {
    return &table->entries.items[constant];
}
static inline ConstantKind constant_kind(const ConstantTable *table, Datum constant) {
    if (constant_is_small(constant)) return CONSTANT_INT;
    return (ConstantKind)constant_entry(table, constant)->kind;
}
int64_t constant_integer(const ConstantTable *table, Datum constant); // of an INT
// The value of an INT or FLOAT; false for the others.
bool constant_number(const ConstantTable *table, Datum constant, double *out);
void constant_set_known(ConstantTable *table, Datum constant);
bool constant_is_known(const ConstantTable *table, Datum constant);
// Numbers by value, texts by their bytes, booleans, tuples by their first difference; false for
// kinds that have no order among each other.
bool constant_compare(const ConstantTable *table, Datum a, Datum b, int *out);
// STATUS_TYPE: they have no order.
Status constants_fail_order(const ConstantTable *table, Datum a, Datum b);
// As answers show it; texts inside tuples stand in quotes.
void constant_print(const ConstantTable *table, Datum constant, Text *out);
const char *constant_kind_name(ConstantKind kind);

#endif
