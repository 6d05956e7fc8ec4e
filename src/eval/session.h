// A session: lines that run one after the other on one interpreter and share their variables. A
// line that fails or is interrupted leaves variables and memory as they were before it
// (value/snapshot.h). Everything here but session_free runs inside interp_enter.
#ifndef EVAL_SESSION_H
#define EVAL_SESSION_H

#include "eval/interp.h"

typedef struct Session Session;
typedef struct Line Line;

Session *session_new(Interp *interp);
// Clears every variable in reverse order and forgets every name.
void session_reset(Session *session);
void session_free(Session *session); // after session_reset

// Parses, checks and lowers. NULL when that finds errors; diagnostics has them, and warnings. One
// line at a time: session_keep or session_drop must follow.
Line *session_prepare(Session *session, const SourceFile *source, DiagnosticList *diagnostics);
// May be called again: the line runs again. *value: what its last statement gave, to be released;
// NONE when it failed. An interrupt that came is a failure even when the line ran to its end.
Status session_run(Line *line, Value *value) MUST_USE;
// Whether the line ends with an expression whose value is to be seen: no `;` behind it.
bool line_shows_value(const Line *line);
bool line_is_expression(const Line *line);
const Program *line_program(const Line *line);
// What the line declared and did stays. Frees the line.
void session_keep(Line *line);
// As if the line had never been. Keeps error_current(). Frees the line.
void session_drop(Line *line);

// The names, oldest first. `value` is NULL for names that are not variables.
typedef struct SessionName {
    const Binding *binding;
    const char *name;
    const Value *value;
} SessionName;
size_t session_name_count(const Session *session);
SessionName session_name(const Session *session, size_t index);
// What a name means: the latest of that name; false when the session has none.
bool session_find(const Session *session, const char *name, size_t length, SessionName *out);
// A new reference to what a variable or a function of the session is. STATUS_NAME.
Status session_get(const Session *session, const char *name, size_t length, Value *out) MUST_USE;
// Gives the variable of that name a value (taken); makes the variable where there is none.
// STATUS_NAME for what is not a name.
Status session_define(Session *session, const char *name, Value value) MUST_USE;
// Gives the variable `_` a value (taken).
void session_set_last(Session *session, Value value);

#endif
