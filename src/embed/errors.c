// Failures as structures: the record, its place, and the whole message as text.
#include <stdlib.h>
#include <string.h>

#include "base/diagnostic.h"
#include "base/source.h"
#include "embed/embed.h"
#include "eval/state.h"
#include "eval/trace.h"

void failed_free(Failed *failed) {
    free(failed->file);
    free(failed->text);
    free(failed);
}

static void place(Failed *failed, Span span) {
    SourcePlace begin = source_find(span.begin), end = source_find(span.end);
    if (!begin.file) return;
    failed->file = memory_copy_string(begin.file->name, strlen(begin.file->name));
    failed->error.file = failed->file;
    failed->error.line = begin.line;
    failed->error.column = begin.column;
    failed->error.end_line = end.file ? end.line : begin.line;
    failed->error.end_column = end.file ? end.column : begin.column + 1;
}

// The record's texts are the error's.
static void name_fields(Failed *failed) {
    failed->error.kind = failed->record.kind;
    failed->error.message = failed->record.message;
    failed->error.label = failed->record.label;
    failed->error.help = failed->record.help;
}

static void replace(tl_runtime *owner, Failed *failed, const Text *text) {
    failed->text = memory_copy_string(text_get(text), text->length);
    failed->error.text = failed->text;
    if (owner->failed) failed_free(owner->failed);
    owner->failed = failed;
}

static void describe(Failed *failed, const Interp *interp) {
    failed->record = *error_current();
    name_fields(failed);
    place(failed, failed->record.span);
    int status;
    if (failed->record.code != STATUS_OK || !interp || !interp_exit_requested(interp, &status))
        return;
    failed->error.exit_status = status;
    snprintf(failed->record.kind, sizeof failed->record.kind, "exit");
    snprintf(failed->record.message, sizeof failed->record.message,
             "the program ended itself by exit(%d)", status);
}

// The first error of a list, with the texts of all.
static void describe_list(Failed *failed, const DiagnosticList *list, Text *text) {
    const Diagnostic *first = NULL;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].severity != SEVERITY_ERROR) continue;
        if (!first) first = &list->items[i];
        diagnostic_render(text, &list->items[i], false);
    }
    ErrorRecord *record = &failed->record;
    snprintf(record->kind, sizeof record->kind, "%s", first->kind ? first->kind : "");
    snprintf(record->message, sizeof record->message, "%s", first->message);
    snprintf(record->label, sizeof record->label, "%s", first->label ? first->label : "");
    snprintf(record->help, sizeof record->help, "%s", first->help ? first->help : "");
    name_fields(failed);
    place(failed, first->span);
}

void embed_set_failed(tl_runtime *owner, const DiagnosticList *diagnostics) {
    Failed *failed = memory_allocate_zeroed(1, sizeof *failed);
    SCOPED_TEXT(text);
    if (diagnostics) {
        describe_list(failed, diagnostics, &text);
    } else {
        describe(failed, owner->interp);
        Diagnostic diagnostic = diagnostic_from_error(&failed->record);
        diagnostic.trace = interp_trace(owner->interp, &diagnostic.trace_count);
        diagnostic_render(&text, &diagnostic, false);
        trace_clear(owner->interp);
    }
    replace(owner, failed, &text);
    error_clear();
}

const tl_error *tl_last_error(const tl_runtime *runtime) {
    static const tl_error none = {.kind = "", .message = "", .label = "", .help = "", .text = ""};
    return runtime && runtime->failed ? &runtime->failed->error : &none;
}

tl_status tl_fail(tl_runtime *runtime, const char *kind, const char *message, const char *help) {
    Entry entry = embed_enter(runtime);
    (void)fail(STATUS_USER, "%s", message ? message : "");
    snprintf(error_current()->kind, ERROR_KIND_MAX, "%s", kind ? kind : "error");
    if (help) fail_help("%s", help);
    return embed_finish(entry, STATUS_USER);
}
