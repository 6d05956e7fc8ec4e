// Layout of the collected objects that value.h leaves opaque: struct instances, functions, cells,
// dictionaries. Shared by the evaluator and the library; knows nothing of how code runs.
#ifndef VALUE_OBJECT_H
#define VALUE_OBJECT_H

#include "value/value.h"

// What a struct declaration amounts to. Allocate with heap_allocate_rooted or statically: a
// VALUE_TYPE points to one and does not keep it alive.
typedef struct StructType {
    const char *name;
    uint64_t id; // of no other type, ever; 0: not known to the evaluator
    size_t field_count;
    const char *const *field_names;
    bool has_drop;    // the drop hook runs when the last reference to an instance goes
    void *definition; // the evaluator's own: methods, field types, defaults
} StructType;

struct Instance {
    Counted counted;
    bool dropped; // the hook has run; it never runs twice
    const StructType *type;
    Value fields[]; // type->field_count of them
};
Value value_struct(const StructType *type); // every field is ABSENT
// Index of a field, or -1.
int struct_find_field(const StructType *type, const char *name, size_t length);

// A variable that an inner function captured lives in a cell, so that both see assignments.
typedef struct Cell {
    Counted counted;
    Value value;
} Cell;
Value value_cell(Value content); // VALUE_CELL; takes the content

// A closure. `code` is the evaluator's own (outlives the function).
struct Function {
    Counted counted;
    const char *name; // borrowed from the program; NULL for a lambda
    const void *code;
    size_t cell_count;
    Cell *cells[]; // counted references
};
Value value_function(const char *name, const void *code,
                     size_t cell_count); // cells are NULL: fill in

#endif
