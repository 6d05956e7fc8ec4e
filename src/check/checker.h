// What the files of check/ share: the state of one program's check, scopes and symbols.
#ifndef CHECK_CHECKER_H
#define CHECK_CHECKER_H

#include "check/check.h"
#include "logic/constant.h"
#include "parser/parser.h"

typedef struct Scope Scope;
typedef struct Symbol Symbol;
typedef struct Checker Checker;

// One meaning of a name in one scope; the list from a symbol's top goes outward.
typedef struct Entry {
    Binding *binding;
    Symbol *symbol;
    Scope *scope;
    bool pending; // a variable of the top level whose text has not been reached yet
    struct Entry *outer, *next_in_scope;
} Entry;

struct Scope {
    Scope *outer;
    Entry *entries;
    FunctionNode *function; // whose frame the scope's slots are in; NULL: the top level's
    int first_slot;
    bool global; // the top level itself: its variables are BINDING_GLOBAL
    bool own;    // the names that a learn block itself gives
    bool hoists; // it or one around has functions, which hold cells in the slots of variables that
                 // begin later: no inner scope may have used these slots
    Node *learn; // the body of this learn block: what it declares goes on in the scope around,
                 // unless the program has a variable of the name
};

typedef struct Module Module;
typedef VECTOR(Module *) ModuleVector;

// Files that one run consists of, each once.
typedef struct ModuleTable {
    ModuleVector modules;
    ConstantTable constants; // texts that names in atoms mean: declared, or in a fact (known)
    ConstantTable members;   // those that entity types declare
} ModuleTable;
void module_table_free(ModuleTable *table);

struct Module {
    const char *path; // canonical; NULL for text that is not a file
    Program *program;
    Checker *checker;
    ModuleVector imports; // without an alias: their names are visible here
    bool visited;         // mark of a walk over the imports
};

// What may stand where a statement stands.
typedef enum Place { PLACE_TOP, PLACE_FUNCTION, PLACE_SECTION } Place;

struct Checker {
    Module *module;
    Program *program;
    Arena *arena;
    DiagnosticList *diagnostics;
    ModuleTable *table;
    Symbol *symbols;
    Scope *scope;
    Scope *top, *imported;  // the scope of the top level, and that of names from other files
    FunctionNode *function; // NULL in the top level's own statements
    Place place;
    int loop_depth;
    int slot_next, slot_max;     // of the current frame
    const Word *type_parameters; // of the struct, impl and functions around, with their count
    size_t type_parameter_count;
};

// The head of a vector in the program's arena: push without owing a free.
#define ARENA_PUSH(arena, vector, item)                                                            \
    do {                                                                                           \
        if ((vector)->count == (vector)->capacity)                                                 \
            (vector)->items = checker_grow((arena), (vector)->items, &(vector)->capacity,          \
                                           sizeof *(vector)->items);                               \
        (vector)->items[(vector)->count++] = (item);                                               \
    } while (0)
void *checker_grow(Arena *arena, void *items, size_t *capacity, size_t item_bytes);

// report.c. `extra` gives label, help and note; NULL for none. Strings are copied.
typedef struct ReportExtra {
    const char *label, *help, *note;
    Span note_span;
} ReportExtra;
void report(Checker *checker, Status kind, Span span, const ReportExtra *extra, const char *format,
            ...) PRINTF_LIKE(5, 6);
void report_warning(Checker *checker, Span span, const ReportExtra *extra, const char *format, ...)
    PRINTF_LIKE(4, 5);
void report_note(Checker *checker, Span span, const ReportExtra *extra, const char *format, ...)
    PRINTF_LIKE(4, 5);
// A name that means nothing here, once per name; suggests the nearest that could stand there.
typedef enum Wanted {
    WANTED_NAME,
    WANTED_FUNCTION,
    WANTED_VARIABLE,
    WANTED_STRUCT,
    WANTED_TYPE,
    WANTED_RELATION,
    WANTED_ENTITY_TYPE,
    WANTED_PLACE, // an entity, in the brackets of a relation
    WANTED_INDEX  // in other brackets
} Wanted;
void report_unknown(Checker *checker, const Word *word, Wanted wanted);

// scope.c
const Entry *symbol_top(Checker *checker, const Word *word); // NULL when the name means nothing
// The variable of the name, of the same function, whose block ended last; NULL when there is none.
const Binding *symbol_ended(Checker *checker, const Word *word);
bool symbol_mark_reported(Checker *checker, const Word *word); // false: it was already
// The names in scope whose nearest meaning fits (NULL: all); arena memory.
size_t symbol_visible(Checker *checker, bool (*fits)(const Binding *), const char ***out);
void symbols_free(Checker *checker);
void scope_push(Checker *checker, Scope *scope);
int scope_pop(Checker *checker); // returns the number of slots that the scope's variables take
Entry *scope_add(Checker *checker, const Word *word, Binding *binding);
// Below every other meaning of the name, as imports are.
void scope_add_outermost(Checker *checker, Scope *scope, const Word *word, Binding *binding);
Binding *binding_new(Checker *checker, BindingKind kind, const Word *word);
// Declares a variable in the current scope; one of the same block is used again.
Binding *scope_declare(Checker *checker, const Word *word, Node *declaration);
// The variable just declared does not exist yet for the statements above its text.
void scope_set_pending(Checker *checker, const Binding *binding);
// A new variable without a name that a script could use, or one that must not reuse another.
Binding *scope_declare_new(Checker *checker, BindingKind kind, const Word *word);
// The name's nearest variable; NULL when there is none.
Binding *scope_find_variable(Checker *checker, const Word *word);
bool entry_is_visible(const Checker *checker, const Entry *entry);
bool binding_is_variable(const Binding *binding);
// Notes a use: marks it used and captured where an inner function reaches out.
void binding_use(Checker *checker, Binding *binding);

// names.c
Binding *name_resolve(Checker *checker, const Word *word); // NULL when unknown; no report
void name_resolve_node(Checker *checker, Node *node, bool call_position);
// Reports a name that means an import: that has members, but is not a value.
void name_want_value(Checker *checker, const Node *node);
Candidate *name_candidates(Checker *checker, const Word *word);
Binding *name_find_in(const Program *program, const Word *name); // what a file offers; or NULL
// The member of an import that the object names, reported where there is none; NULL: no import.
Binding *name_find_member(Checker *checker, const Node *object, const Word *name);
void report_member(Checker *checker, const Program *program, const Word *import, const Word *name);
// The struct that a pattern, literal, path or impl names, of an import when `module` names one;
// NULL (reported) for other names.
Binding *struct_resolve(Checker *checker, Node *module, const Word *name);

// expressions.c
void check_expression(Checker *checker, Node *node); // whose value is used; NULL is allowed
// The same where it depends on what is around whether the value is used.
void check_node(Checker *checker, Node *node);
void check_receiver(Checker *checker, Node *node);      // what stands before a `.`: imports too
void check_pattern(Checker *checker, Pattern *pattern); // declares what it binds

// calls.c
void check_call(Checker *checker, Node *node);
void check_method_call(Checker *checker, Node *node);

// statements.c
void check_statement(Checker *checker, Node *node);
void check_for(Checker *checker, Node *node);    // comprehensions too
void check_block(Checker *checker, Node *block); // with a scope of its own
void check_statements(Checker *checker, Node *block);
void warn_lost(Checker *checker, const Node *node); // of a statement whose value is not used

// learn.c
void check_learn(Checker *checker, Node *node);

// declarations.c
// `symbols`: where dimension names are bound; NULL: they mean variables or anything.
void check_type(Checker *checker, TypeNode *type, FunctionNode *symbols);
void check_function(Checker *checker, FunctionNode *function);
void check_struct(Checker *checker, Node *node);
// Sets the type parameters to those of an impl; the caller resets their count.
void impl_parameters(Checker *checker, Node *node);
void report_twice(Checker *checker, const char *what, const Word *name, const Word *first);

// impls.c
void declare_impls(Checker *checker);
void forget_impls(const Program *program); // those that a struct of another program knows of
void check_path(Checker *checker, Node *node);
// A file's functions, structs and modules, and the variables that its top level declares.
void declare_top(Checker *checker);
// The variables that a plain `x = e` of the top level defines: what imports give is known by now.
void declare_assigned(Checker *checker);
void check_top(Checker *checker);

// unused.c: values that are lost and code that is never reached, once names are resolved.
void warn_unused(Checker *checker);
void warn_replaced_globals(Checker *checker); // replaced.c

// imports.c
// Loads what the program imports, and what that imports, each file once and none that the table has
// already; the table lists a file after those it imports.
void modules_load(ModuleTable *table, Program *program, DiagnosticList *diagnostics);
void imports_declare(Checker *checker);

#endif
