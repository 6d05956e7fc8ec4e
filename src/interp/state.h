// The interpreter's own state, shared by the evaluator's files.
#ifndef INTERP_STATE_H
#define INTERP_STATE_H

#include <signal.h>

#include "interp/interp.h"

enum { TRACE_FIRST = 10, TRACE_LAST = 5 };

// The calls that the last failure came through: the first few, the last few, and how many between.
typedef struct Trace {
    TraceFrame first[TRACE_FIRST], last[TRACE_LAST];
    size_t count;
    SourcePos called_at; // of the call that the failure left last; 0: none yet
    TraceFrame shown[TRACE_FIRST + 1 + TRACE_LAST];
    char skipped[48];
} Trace;

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
    InterpOptions options;
    Arena arena;             // lowered code
    const char *stack_limit; // calls below this address are too deep
    VECTOR(ModuleState *) modules;
    Value *roots;          // rooted: a list that keeps the code's constants alive
    VECTOR(void *) rooted; // freed with the interpreter
    Trace trace;
    bool exit_requested;
    int exit_status;
};

extern volatile sig_atomic_t interp_interrupted;

// The interrupt has come: records it.
Value interp_fail_interrupted(Span span);
#define CHECK_INTERRUPT(span)                                                                      \
    do {                                                                                           \
        if (UNLIKELY(interp_interrupted)) return interp_fail_interrupted(span);                    \
    } while (0)

// Notes on the way out of a call that the failure came through it.
void trace_add(Interp *interp, const char *function, SourcePos at);
void trace_clear(Interp *interp);
// The trace put aside while a drop runs.
typedef struct TraceMark {
    Trace *saved;
} TraceMark;
TraceMark trace_set_aside(Interp *interp);
void trace_restore(Interp *interp, TraceMark *mark);
// The interpreter of this process, NULL when there is none.
Interp *interp_running(void);
// Remembers where a function's text lies, for reports that name functions.
void interp_note_function(const FunctionNode *function);
// Memory from heap_allocate_rooted that goes with the interpreter.
void interp_keep_rooted(Interp *interp, void *memory);

#endif
