// What the files of repl/ share.
#ifndef REPL_INTERNAL_H
#define REPL_INTERNAL_H

#include "eval/session.h"

// A statement that ran, for :save.
typedef struct Spoken {
    char *text;
    char *declares; // the function or struct that it declares, else NULL
    bool gives_last;
} Spoken;

typedef struct Repl {
    Interp *interp;
    Session *session;
    bool interactive; // on a terminal
    bool color;
    bool memory_line;
    bool ended;
    int ended_by; // the signal that ended it, or 0
    int units;    // read so far
    VECTOR(Spoken) spoken;
} Repl;

// repl.c
// Runs a text as one line of the session and shows its value. False when it failed, which was
// shown.
bool repl_run_source(Repl *repl, const SourceFile *source);
// "error: ..." of error_current() on standard error.
void repl_show_error(void);

void repl_show_failure(const Repl *repl, Status status);

// signals.c
void signals_begin(void);
void signals_end(void);
// Waits until standard input has something to read; false: a signal came first.
bool signals_wait_input(void);
bool signals_take_interrupt(void);    // Ctrl-C since the last call
bool signals_take_resume(void);       // the process was stopped and goes on
bool signals_take_resize(void);       // the terminal has another size
int signals_ending(void);             // the signal that asks for the end, or 0
void signals_pass_interrupt(bool on); // whether Ctrl-C stops the program that runs

// input.c: the terminal, and what is typed when it is none.
typedef enum InputEvent { INPUT_UNIT, INPUT_INTERRUPTED, INPUT_END } InputEvent;
void input_begin(Repl *repl);
void input_end(void);
// One unit: as many lines as its brackets need. `prompt` is shown on a terminal.
InputEvent input_read(const Repl *repl, const char *prompt, Text *unit);
void input_clear_screen(const Repl *repl); // of a terminal that can

// complete.c
void complete_begin(Repl *repl);

// commands.c
// Runs the unit when it is a command of the REPL (":vars", "quit", "?name"); false when it is not.
bool command_run_unit(Repl *repl, const char *unit);
size_t command_count_all(void);
const char *command_name(size_t index); // without the colon

// inspect.c
void inspect_name(Repl *repl, const char *name, size_t length);
void inspect_facts(Repl *repl, const char *name); // of a relation
void inspect_rules(Repl *repl);
void inspect_variables(const Repl *repl);
// A field path such as "model.blk": a new reference, or ABSENT.
Value inspect_path(const Repl *repl, const char *path, size_t length);

// memory.c
void memory_show(const Repl *repl);
void memory_append_line(Text *out); // "live 4.00 MB, cached 0.00 MB, peak 8.00 MB"
void memory_append_bytes(Text *out, uint64_t bytes);

// measure.c
void measure_run(Repl *repl, const char *code);

// save.c
void spoken_add(Repl *repl, const Program *program, bool gives_last);
void spoken_clear(Repl *repl);
Status spoken_save(Repl *repl, const char *path) MUST_USE;

#endif
