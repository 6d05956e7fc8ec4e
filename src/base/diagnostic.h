// A message with a place, and how it is shown: header, source line, carets, label, help, trace.
#ifndef BASE_DIAGNOSTIC_H
#define BASE_DIAGNOSTIC_H

#include "base/status.h"
#include "base/text.h"

typedef enum Severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE } Severity;

// One line of the trace: "in fn layer (model.tl:12), called from main (model.tl:30)".
typedef struct TraceFrame {
    const char *function; // borrowed; "main", "fn layer"
    SourcePos at;
    size_t again; // how many more calls came from the same place
} TraceFrame;

enum { DIAGNOSTIC_NOTES_MAX = 4 };
typedef struct DiagnosticNote {
    const char *text;
    Span span; // {0, 0}: no place
} DiagnosticNote;

typedef struct Diagnostic {
    Severity severity;
    const char *kind;    // "shape"; NULL for none
    const char *message; // all strings are borrowed; NULL or "" when absent
    const char *label;
    const char *help;
    Span span;
    // Further places: shown as "note: <text>" with their own source lines, up to one without text.
    DiagnosticNote notes[DIAGNOSTIC_NOTES_MAX];
    const TraceFrame *trace; // innermost first
    size_t trace_count;
} Diagnostic;

// Appends the diagnostic as LANGUAGE.md section 8 shows it. A span over several lines is underlined
// on its first; long lines are cut around the span; tabs and wide characters keep the carets right.
void diagnostic_render(Text *out, const Diagnostic *diagnostic, bool color);
// The diagnostic that an ErrorRecord amounts to (borrows from it).
Diagnostic diagnostic_from_error(const ErrorRecord *error);
// True when standard error is a terminal and NO_COLOR is not set.
bool diagnostic_color(void);

// A growing list of diagnostics that own their strings; syntax and check errors are collected in
// one.
typedef struct DiagnosticList {
    Diagnostic *items;
    size_t count, capacity;
    size_t error_count;
} DiagnosticList;
// Copies every string of the diagnostic.
void diagnostic_list_add(DiagnosticList *list, const Diagnostic *diagnostic);
// Those from index `from` on in the order of their places; several at one place stay as they came.
void diagnostic_list_sort(DiagnosticList *list, size_t from);
void diagnostic_list_free(DiagnosticList *list);
// Prints those that are at least that severe on standard error.
void diagnostics_show(const DiagnosticList *list, Severity least);

#endif
