// The interpreter's own state, shared by the evaluator's files.
#ifndef EVAL_STATE_H
#define EVAL_STATE_H

#include "eval/interp.h"

enum { TRACE_FIRST = 10, TRACE_LAST = 5 };

// The calls that the last failure came through: the first few, the last few, and how many between.
typedef struct Trace {
    TraceFrame first[TRACE_FIRST], last[TRACE_LAST];
    size_t count;
    SourcePos called_at; // of the call that the failure left last; 0: none yet
    TraceFrame shown[TRACE_FIRST + 1 + TRACE_LAST];
    char skipped[48];
} Trace;

// What lowered code lies in, and what keeps its constants alive.
typedef struct CodeStore {
    Arena arena;
    Value *roots;                // rooted: a list of constants
    Value *texts;                // rooted: a dictionary of those that are strings, by themselves
    VECTOR(void *) rooted;       // freed with the store
    VECTOR(struct Rule *) rules; // of queries, freed with the store
} CodeStore;
CodeStore *code_store_new(void);
void code_store_release(CodeStore *store); // the constants; afterwards no code may run
void code_store_free(CodeStore *store);    // NULL is allowed

// A file of the program: its variables, and whether its top level has run.
typedef struct ModuleState {
    Program *program;
    Value *globals;                 // rooted
    const struct Code **statements; // of the top level
    size_t statement_count;
    const struct FunctionCode *main;
    bool started;
} ModuleState;

struct Interp {
    Runtime *runtime;
    InterpOptions options;
    CodeStore *store; // where lowering puts code
    size_t functions_lowered;
    const char *stack_limit; // calls below this address are too deep
    VECTOR(ModuleState *) modules;
    VECTOR(struct Page *) pages; // of models
    Text declared;               // by the page that is being opened: a line for each name
    Trace trace;
    Text asserted;             // what was compared in the assert that is about to fail; else empty
    bool keeps_interrupted;    // a session: what a learn block has reached at a Ctrl-C is kept
    struct Reasoner *reasoner; // reason/: the logic program; NULL while there is none
    bool exit_requested;
    int exit_status;
    struct Caught *caught; // the innermost error whose handler runs
    bool measured_error;   // the words of the one that was caught last may be of a run only
    VECTOR(SourcePos)
    warned_lines; // that a broadcast warning was given for; each is warned of once
};

// Functions and where their text lies, kept after the interpreter is gone: memory reports name
// them.
typedef struct FunctionPlace {
    Span span;
    char *name;
} FunctionPlace;

// What outlives the interpreters of a runtime, one after the other.
struct Evaluation {
    Interp *running; // NULL: none
    VECTOR(FunctionPlace) function_places;
    uint64_t types_made; // structs, each renewal included
};

// What the next statement, call or iteration of this thread must look at (base/runtime.h).
static inline int interp_interrupts(void) {
    return runtime_interrupts(runtime_current);
}

// Says at the error just recorded what the failed assert compared.
void asserted_label(Interp *interp);

// The interrupt has come, memory was refused, or a drop ends the program: records it.
Value interp_fail_interrupted(Span span);
static inline int interp_interrupted(const Interp *interp) {
    return runtime_interrupts(interp->runtime);
}
#define CHECK_INTERRUPT(span)                                                                      \
    do {                                                                                           \
        if (UNLIKELY(interp_interrupts())) return interp_fail_interrupted(span);                   \
    } while (0)

// Notes on the way out of a call that the failure came through it.
void trace_add(Interp *interp, const char *function, SourcePos at);
void trace_clear(Interp *interp);
typedef struct Failure Failure;
// A caught error while its handler runs: error(e) raises it again as it was.
typedef struct Caught {
    const Instance *value;
    Failure *failure;
    struct Caught *outer;
} Caught;
bool value_is_error(Value value); // what `catch e` gives
// False: the value is not that of an error whose handler runs.
bool failure_raise_again(Interp *interp, Value error);
// The failure that is on its way out, put aside while a drop runs; NULL when there is none.
Failure *failure_set_aside(Interp *interp);
void failure_forget(Failure *failure);
void failure_restore(Interp *interp, Failure *failure);
// The interpreter of this thread's runtime, NULL when there is none.
Interp *interp_running(void);
// Remembers where a function's text lies, for reports that name functions.
void interp_note_function(const FunctionNode *function);
// Memory from heap_allocate_rooted that goes with the code being made.
void interp_keep_rooted(Interp *interp, void *memory);
void interp_keep_rule(Interp *interp, struct Rule *rule); // the same of a query's rule
// Runs a lowered file: its top level, then its main. The value of the last statement, NONE after a
// main.
Value interp_run_module(Interp *interp, ModuleState *module);
// STATUS_OK also when the value failed because of exit(n).
Status interp_status_of(const Interp *interp, Value value);

#endif
