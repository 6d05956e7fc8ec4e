// The check before running: names to bindings and slots, arity and argument names, misplaced
// statements. Reports every mistake it is certain of; what it cannot know it leaves to run time.
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include "base/diagnostic.h"
#include "catalog/catalog.h"
#include "parser/ast.h"

typedef enum BindingKind {
    BINDING_GLOBAL,   // slot of the top level, seen by every function
    BINDING_LOCAL,    // slot of the function's frame
    BINDING_FUNCTION, // a hoisted fn of the file
    BINDING_STRUCT,
    BINDING_BUILTIN,
    BINDING_MODULE,    // import "x" as m
    BINDING_DIMENSION, // a symbolic dimension of an annotation: a local that is bound per call
    BINDING_DTYPE,     // a dtype's word used as a value; slot is the DType
} BindingKind;

struct Binding {
    BindingKind kind;
    Word word;     // as declared
    int slot;      // GLOBAL, LOCAL
    bool captured; // LOCAL used by an inner function: the slot holds a cell
    int capture_index;
    FunctionNode *owner; // LOCAL: whose frame; NULL for the top level's own blocks
    Node *declaration;   // FUNCTION, STRUCT, LET...
    const Builtin *builtin;
    bool assigned, used;
    TypeNode *type;   // variables: as annotated, or NULL
    Program *program; // FUNCTION, STRUCT, GLOBAL: the file that declares it; MODULE: the file meant
    void *lowered;    // the evaluator's own
};

// Resolves every name of the program in place; diagnostics get errors and warnings.
void check_program(Program *program, DiagnosticList *diagnostics);

#endif
