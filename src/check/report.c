// Diagnostics of the check. Knows how unknown names are explained, not how they are found.
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>

#include "check/checker.h"

static void add(Checker *checker, Severity severity, const char *kind, Span span,
                const ReportExtra *extra, const char *message) {
    Diagnostic diagnostic = {.severity = severity, .kind = kind, .message = message, .span = span};
    if (extra) {
        diagnostic.label = extra->label;
        diagnostic.help = extra->help;
        diagnostic.notes[0] = (DiagnosticNote){extra->note, extra->note_span};
    }
    diagnostic_list_add(checker->diagnostics, &diagnostic);
}

#define REPORT(severity, kind)                                                                     \
    do {                                                                                           \
        Text message = {0};                                                                        \
        va_list arguments;                                                                         \
        va_start(arguments, format);                                                               \
        text_format_v(&message, format, arguments);                                                \
        va_end(arguments);                                                                         \
        add(checker, severity, kind, span, extra, text_get(&message));                             \
        text_free(&message);                                                                       \
    } while (0)

void report(Checker *checker, Status kind, Span span, const ReportExtra *extra, const char *format,
            ...) {
    REPORT(SEVERITY_ERROR, status_word(kind));
}

void report_warning(Checker *checker, Span span, const ReportExtra *extra, const char *format,
                    ...) {
    REPORT(SEVERITY_WARNING, NULL);
}

void report_note(Checker *checker, Span span, const ReportExtra *extra, const char *format, ...) {
    REPORT(SEVERITY_NOTE, NULL);
}

// Words of other languages and what they are called here.
static const struct {
    const char *foreign, *here;
} foreign_words[] = {
    {"True", "true"},
    {"False", "false"},
    {"None", "none"},
    {"null", "none"},
    {"nil", "none"},
    {"nullptr", "none"},
    {"elif", "else if"},
    {"var", "let"},
    {"const", "let"},
    {"def", "fn"},
    {"func", "fn"},
    {"function", "fn"},
    {"lambda", "fn(x) { ... }"},
    {"this", "self"},
    {"println", "print"},
    {"printf", "print"},
    {"raise", "error(\"message\")"},
    {"throw", "error(\"message\")"},
    {"except", "catch"},
    {"switch", "match"},
    {"pass", "{ }"},
    {"length", "len"},
    {"to_string", "str"},
    {"toString", "str"},
    {"inf", "float(\"inf\")"},
    {"Infinity", "float(\"inf\")"},
    {"nan", "float(\"nan\")"},
    {"NaN", "float(\"nan\")"},
    {"pi", "3.141592653589793"},
    {"size", "numel"},
};

static const char *foreign_find(const Word *word) {
    for (size_t i = 0; i < sizeof foreign_words / sizeof *foreign_words; i++)
        if (strcmp(word->text, foreign_words[i].foreign) == 0) return foreign_words[i].here;
    return NULL;
}

static const char *nearest_name(Checker *checker, const char *name) {
    const char **names;
    size_t count = symbol_visible(checker, &names);
    const char *near = catalog_nearest(name, names, count);
    if (near) return near;
    size_t rows = catalog_count(), known = rows + DTYPE_COUNT;
    const char **builtins = memory_allocate(known * sizeof *builtins);
    for (size_t i = 0; i < rows; i++) builtins[i] = catalog_get(i)->signature.name;
    for (size_t i = rows; i < known; i++) builtins[i] = dtype_info[i - rows].name;
    near = catalog_nearest(name, builtins, known);
    free(builtins);
    return near;
}

void report_unknown(Checker *checker, const Word *word, const char *what) {
    if (!symbol_mark_reported(checker, word)) return;
    const Entry *entry = symbol_top(checker, word);
    if (entry && !entry_is_visible(checker, entry)) {
        ReportExtra later = {.label = "it has no value yet at this point",
                             .note = "it is defined here",
                             .note_span = entry->binding->word.span};
        report(checker, STATUS_NAME, word->span, &later, "`%s` is used before it is defined",
               word->text);
        return;
    }
    Text help = {0};
    const char *foreign = foreign_find(word);
    const char *near = foreign ? NULL : nearest_name(checker, word->text);
    if (foreign) text_format(&help, "here this is written `%s`", foreign);
    if (near) text_format(&help, "did you mean `%s`?", near);
    ReportExtra extra = {.help = help.length ? text_get(&help) : NULL};
    report(checker, STATUS_NAME, word->span, &extra, "unknown %s `%s`", what, word->text);
    text_free(&help);
}
