// Runs programs. A runtime has one interpreter at a time; it owns the globals, the temporary
// values, and what lies on the heap, and gives everything back in interp_free.
#ifndef EVAL_INTERP_H
#define EVAL_INTERP_H

#include <stdio.h>

#include "base/runtime.h"
#include "base/timing.h"
#include "check/check.h"
#include "value/value.h"

typedef struct Interp Interp;

typedef struct InterpOptions {
    int argument_count;
    char *const *arguments; // the script's: args()
    const char *script;     // its path; NULL when it is not a file
    bool has_seed;
    uint64_t seed;
    bool quiet, verbose;
} InterpOptions;

typedef struct Evaluation Evaluation; // of a runtime
Evaluation *evaluation_new(void);
void evaluation_free(Evaluation *evaluation);

Interp *interp_new(Runtime *runtime, const InterpOptions *options);
// Runs top level, then main. The first failure is left in error_current() with its trace; every
// scope was left in order (drops ran). STATUS_OK also after exit(n): see interp_exit_requested.
Status interp_run(Interp *interp, Program *program) MUST_USE;
// Runs the top level, then the tests (or benches: kind is NODE_TEST or NODE_BENCH) whose names
// contain `filter` (NULL: all), in the order of the text; main does not run. A bench runs once to
// warm up and then again and again. After each, `report` is told its name, its outcome (the words
// of a failure are in error_current(), the trace in interp_trace) and the times of a bench. A
// failure of the top level is returned.
typedef struct SectionReport {
    void (*report)(void *context, const char *name, Status status, Timing *timing);
    void *context;
} SectionReport;
Status interp_run_sections(Interp *interp, Program *program, NodeKind kind, const char *filter,
                           const SectionReport *report) MUST_USE;
// Runs fn on the large stack that the calls above use, and waits: for whoever runs many lines.
Status interp_enter(Interp *interp, void (*fn)(void *context), void *context) MUST_USE;
// The same on the stack of this thread, which is smaller as a rule but costs no thread; where it is
// very small, on the large one.
Status interp_enter_here(Interp *interp, void (*fn)(void *context), void *context) MUST_USE;
bool interp_exit_requested(const Interp *interp, int *status);
// Clears every variable in reverse order, releases everything; buffers rescued from reference
// cycles are counted and said. Afterwards live device bytes are what they were before interp_new.
// Returns `status`, or that of an exit(n) which a drop called meanwhile.
int interp_free(Interp *interp, int status);
// Async-signal-safe: the next statement or kernel boundary stops with STATUS_INTERRUPT.
void interp_interrupt(Interp *interp);

// Asks for the end of the program (exit(n)). Returns VALUE_FAIL, which no `catch` receives.
Value interp_request_exit(Interp *interp, int status);
// What args() gives: the words after the script's name.
char *const *interp_script_arguments(const Interp *interp, int *count);
// What script_path() gives; never NULL.
const char *interp_script_path(const Interp *interp);

#endif
