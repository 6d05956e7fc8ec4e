// The check before running: names to bindings and slots, arity and argument names, misplaced
// statements. Reports every mistake it is certain of; what it cannot know it leaves to run time.
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include "base/diagnostic.h"
#include "base/source.h"
#include "catalog/catalog.h"
#include "catalog/settings.h"
#include "parser/ast.h"

typedef enum BindingKind {
    BINDING_GLOBAL,   // slot of the top level, seen by every function
    BINDING_LOCAL,    // slot of the function's frame
    BINDING_FUNCTION, // a hoisted fn of the file
    BINDING_STRUCT,
    BINDING_BUILTIN,
    BINDING_RELATION,  // a relation or an entity type
    BINDING_MODULE,    // import "x" as m
    BINDING_DIMENSION, // a symbolic dimension of an annotation: a local that is bound per call
    BINDING_DTYPE,     // a dtype's word used as a value; slot is the DType
    BINDING_CONSTANT,  // pi, e, inf, nan
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
    const Constant *constant;
    bool assigned, used;
    const Node *learned;     // the learn block whose body declares it for the scope around; or NULL
    bool parameter;          // variables: declared as learnable: assignments set its numbers
    bool shared;             // a function that does not own it may change it, at any call
    const struct Fact *fact; // what inference knows of it at the point where it is
    const char *inferred;    // what it is first given, "float32[2, 3]"; NULL: not known
    TypeNode *type;          // variables: as annotated, or NULL
    TypeNode *awaits;        // variables: declared as this without a value; the first is converted
    Node *impls;             // STRUCT: the last impl, which leads to those before it
    Program *program; // FUNCTION, STRUCT, GLOBAL: the file that declares it; MODULE: the file meant
    void *lowered;    // the evaluator's own
    struct Relation *relation; // RELATION: the engine's, of the check and then of the evaluator
};

bool binding_is_entity_type(const Binding *binding);

// A setting of a learn block; NULL when it is not given.
const Setting *learn_setting(const Node *node, SettingId id);

// The function of that name in the last impl of the struct that has one; NULL: none. *several, when
// not NULL: another impl has one too, and the fields of a value decide.
FunctionNode *impl_function(const Binding *type, const char *name, bool *several);

// Resolves every name of the program in place; diagnostics get errors and warnings.
// Mistakes of shapes and kinds are errors where the program would certainly fail.
void check_program(Program *program, DiagnosticList *diagnostics);
// The same with warnings for what would fail in code that may never run.
void check_program_fully(Program *program, DiagnosticList *diagnostics);

// Where `import "path"` in the file `importer` leads: next to that file, in a folder of TL_PATH,
// for "std/..." next to tl or in the program itself. False: nowhere; *tried then lists the paths.
bool imports_find(const char *importer, const char *path, Text *found, Text *tried);
// The same of "std/..." alone, wherever the importing file is.
bool imports_find_standard(const char *path, Text *found, Text *tried);
// Reads what these found.
Status imports_load(const char *path, const SourceFile **out) MUST_USE;

// A check that goes on: each line of a session is a small program that sees the names of those
// before it. Its variables, once kept, are BINDING_GLOBAL and outlive the line's program;
// functions, structs and imported files stay those of the programs that declared them.
typedef struct CheckSession CheckSession;
CheckSession *check_session_new(void);
void check_session_free(CheckSession *session);
// One of check_session_keep and check_session_drop must follow, with or without errors.
void check_line(CheckSession *session, Program *program, DiagnosticList *diagnostics);
void check_session_keep(CheckSession *session, Program *program);
void check_session_drop(CheckSession *session, Program *program);
// A variable that no line declares.
Binding *check_session_define(CheckSession *session, const char *name);
// The names, oldest first; a name may be there once as a variable and once as anything else.
size_t check_session_count(const CheckSession *session);
Binding *check_session_name(const CheckSession *session, size_t index);
// The variable of that name, or NULL.
Binding *check_session_variable(const CheckSession *session, const char *name, size_t length);

#endif
