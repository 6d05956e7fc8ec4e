// What inference finds, as diagnostics: the words of the error that was recorded, the operands with
// their types and the places where they were made, and the calls that lead there.
#include <stdlib.h>

#include "check/infer/infer.h"
#include "check/operator_words.h"

enum { FOUND_MAX = 20, SOURCE_SHOWN_MAX = 40, TRACE_MAX = 12 };

// The text of an operand where it is short enough to stand in a label; NULL otherwise.
static const char *operand_source(const Operand *operand, size_t *length) {
    if (operand->span.end <= operand->span.begin) return NULL;
    const char *text = source_text(operand->span, length);
    bool shown = *length > 0 && *length <= SOURCE_SHOWN_MAX && !memchr(text, '\n', *length);
    return shown ? text : NULL;
}

static void append_operand(Text *label, const Operand *operand) {
    size_t length = 0;
    const char *text = operand_source(operand, &length);
    Text value = {0};
    fact_describe(operand->fact, &value);
    SourcePlace place = source_find(operand->fact->made.begin);
    bool tensor = operand->fact->kind == FACT_TENSOR;
    if (text && length == value.length && memcmp(text, text_get(&value), length) == 0) {
        text_free(&value); // a literal says itself what it is
        return;
    }
    if (label->length) text_append_string(label, ", ");
    if (text) text_format(label, "%.*s is ", (int)length, text);
    text_append_string(label, text_get(&value));
    if (tensor && place.file) text_format(label, " (from line %d)", place.line);
    text_free(&value);
}

// Advice calls the operands x and b: here they get the names that the program has.
static void name_operands(const Operand *operands, size_t count) {
    ASSERT(operands != NULL || count == 0);
    for (size_t i = 0; i < count && count == 2; i++) {
        size_t length = 0;
        const char *text = operand_source(&operands[i], &length);
        if (i == 1) operator_name_operand("transpose(b)", text, length);
        if (operands[i].fact->kind != FACT_STRING) operator_name_operand("str(x)", text, length);
    }
}

// A note at the place where an operand was made, unless that is in the line of the error.
static bool note_origin(Inference *in, const Operand *operand, Span span, DiagnosticNote *note) {
    if (operand->fact->kind != FACT_TENSOR) return false;
    Span made = operand->fact->made;
    SourcePlace there = source_find(made.begin), here = source_find(span.begin);
    if (!there.file || (there.file == here.file && there.line == here.line)) return false;
    SCOPED_TEXT(text);
    size_t length = 0;
    const char *name = operand_source(operand, &length);
    if (name) {
        text_append(&text, name, length);
        text_append_string(&text, " is ");
    }
    fact_describe(operand->fact, &text);
    text_append_string(&text, name ? ", made here" : " is made here");
    *note = (DiagnosticNote){arena_copy_string(&in->arena, text_get(&text), text.length), made};
    return true;
}

static size_t trace_calls(const Inference *in, Span span, TraceFrame *frames) {
    ASSERT(in->activation != NULL);
    size_t count = 0;
    SourcePos at = span.begin;
    const Activation *activation = in->activation;
    for (; activation->at.begin && count + 1 < TRACE_MAX; activation = activation->outer) {
        frames[count++] = (TraceFrame){.function = activation->title, .at = at};
        at = activation->at.begin;
    }
    const char *outermost = activation->title ? activation->title : "the top level";
    if (count > 0) frames[count++] = (TraceFrame){.function = outermost, .at = at};
    return count;
}

static void diagnostic_own(Diagnostic *diagnostic) {
    DiagnosticList list = {0};
    diagnostic_list_add(&list, diagnostic);
    *diagnostic = list.items[0];
    free(list.items);
}

static void diagnostic_disown(Diagnostic *diagnostic) {
    DiagnosticList list = {.items = memory_allocate(sizeof *diagnostic), .count = 1};
    list.items[0] = *diagnostic;
    diagnostic_list_free(&list);
}

void infer_free_found(Inference *in) {
    for (size_t i = 0; i < in->found.count; i++) diagnostic_disown(&in->found.items[i]);
    VECTOR_FREE(&in->found);
}

// True when the place has its diagnostic already; a warning there gives way to an error.
static bool is_reported(Inference *in, Span span, Severity severity) {
    for (size_t i = 0; i < in->found.count; i++) {
        Diagnostic *known = &in->found.items[i];
        if (known->span.begin != span.begin || known->span.end != span.end) continue;
        if (known->severity <= severity) return true;
        diagnostic_disown(known);
        in->found.items[i] = in->found.items[--in->found.count];
        return false;
    }
    return in->found.count >= FOUND_MAX;
}

// Whether an earlier operand has the same text and the same value.
static bool is_repeated(const Operand *operands, size_t index) {
    ASSERT(operands != NULL);
    size_t length = 0, other_length = 0;
    const char *text = operand_source(&operands[index], &length);
    for (size_t i = 0; text && i < index; i++) {
        const char *other = operand_source(&operands[i], &other_length);
        if (other && length == other_length && memcmp(text, other, length) == 0 &&
            fact_equal(operands[i].fact, operands[index].fact))
            return true;
    }
    return false;
}

void infer_report(Inference *in, Span span, const Operand *operands, size_t count) {
    ASSERT(operands != NULL || count == 0);
    Severity severity = infer_certain(in) ? SEVERITY_ERROR : SEVERITY_WARNING;
    if (in->silent || in->dead || in->fuel <= 0) return;
    if ((severity == SEVERITY_WARNING && !in->warnings) || is_reported(in, span, severity)) return;
    SCOPED_TEXT(label);
    SCOPED_TEXT(help);
    TraceFrame frames[TRACE_MAX];
    Diagnostic diagnostic = {.severity = severity,
                             .kind = error_current()->kind,
                             .message = error_current()->message,
                             .span = span,
                             .trace = frames};
    size_t notes = 0;
    for (size_t i = 0; i < count; i++) {
        if (operands[i].fact->kind == FACT_ANY || is_repeated(operands, i)) continue;
        append_operand(&label, &operands[i]);
        if (notes < DIAGNOSTIC_NOTES_MAX &&
            note_origin(in, &operands[i], span, &diagnostic.notes[notes]))
            notes++;
    }
    name_operands(operands, count);
    text_append_string(&help, error_current()->help);
    if (severity == SEVERITY_WARNING)
        text_format(&help, "%sthis fails whenever it runs", help.length ? "; " : "");
    diagnostic.label = text_get(&label);
    diagnostic.help = text_get(&help);
    diagnostic.trace_count = trace_calls(in, span, frames);
    diagnostic_own(&diagnostic);
    VECTOR_PUSH(&in->found, diagnostic);
}
