// Diagnostics as text: header, place, source line, carets with their label, help, note, trace.
#include "base/diagnostic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/source.h"
#include "base/utf8.h"

enum {
    LINE_COLUMNS_MAX = 120, // a longer source line is cut around the span
    COLUMNS_BEFORE_SPAN = 40,
    TAB_COLUMNS = 4,
    TRACE_FIRST = 10, // a longer trace shows this many innermost and outermost frames
    TRACE_LAST = 5,
};

typedef struct Style {
    const char *start, *end; // escape sequences, or ""
} Style;

typedef enum StyleName {
    STYLE_ERROR,
    STYLE_WARNING,
    STYLE_NOTE,
    STYLE_BOLD,
    STYLE_GUTTER
} StyleName;

static Style style_of(StyleName name, bool color) {
    static const char *const starts[] = {"\033[1;31m", "\033[1;33m", "\033[1;36m", "\033[1m",
                                         "\033[1;34m"};
    ASSERT(name <= STYLE_GUTTER);
    return color ? (Style){starts[name], "\033[0m"} : (Style){"", ""};
}

static void append_styled(Text *out, Style style, const char *string) {
    text_append_string(out, style.start);
    text_append_string(out, string);
    text_append_string(out, style.end);
}

static bool is_shown(const char *string) {
    return string && string[0] != '\0';
}

// One code point, or one invalid byte, of a source line as it is shown.
typedef struct Cell {
    size_t bytes; // of the source
    int columns;
    char shown[16];
} Cell;

static bool must_escape(uint32_t codepoint) {
    if (codepoint == 0x200D) return false; // joins the parts of an emoji
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)codepoint);
    return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
           category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP ||
           category == UTF8PROC_CATEGORY_CN;
}

static Cell cell_read(const char *bytes, size_t length) {
    ASSERT(length > 0);
    Cell cell = {.bytes = 1};
    uint32_t codepoint = 0;
    size_t size = utf8_decode(bytes, length, &codepoint);
    if (size == 0) {
        snprintf(cell.shown, sizeof cell.shown, "\\x%02x", (unsigned char)bytes[0]);
        cell.columns = (int)strlen(cell.shown);
        return cell;
    }
    ASSERT(size <= length && size < sizeof cell.shown);
    cell.bytes = size;
    if (codepoint == '\t') {
        cell.columns = TAB_COLUMNS;
        memset(cell.shown, ' ', TAB_COLUMNS);
    } else if (must_escape(codepoint)) {
        snprintf(cell.shown, sizeof cell.shown, codepoint < 0x80 ? "\\x%02x" : "\\u{%x}",
                 (unsigned)codepoint);
        cell.columns = (int)strlen(cell.shown);
    } else {
        memcpy(cell.shown, bytes, size);
        cell.columns = utf8_width(codepoint);
    }
    return cell;
}

// The start of the cell that ends just before `at`.
static size_t cell_before(const char *line, size_t at) {
    ASSERT(at > 0);
    uint32_t codepoint;
    for (size_t size = 1; size <= 4 && size <= at; size++)
        if (utf8_decode(line + at - size, size, &codepoint) == size) return at - size;
    return at - 1;
}

// Which bytes of a line are shown: all of it, or a window around the span.
typedef struct Window {
    size_t begin, end;
} Window;

// Zero-width cells count as one column here, so that a window is bounded in bytes too.
static int counted_columns(const Cell *cell) {
    return cell->columns > 0 ? cell->columns : 1;
}

// How far a window from `begin` reaches.
static size_t window_end(const char *line, size_t length, size_t begin) {
    for (int columns = 0; begin < length;) {
        Cell cell = cell_read(line + begin, length - begin);
        columns += counted_columns(&cell);
        if (columns > LINE_COLUMNS_MAX) break;
        begin += cell.bytes;
    }
    return begin;
}

static Window window_around(const char *line, size_t length, size_t focus) {
    ASSERT(focus <= length);
    if (window_end(line, length, 0) == length) return (Window){0, length};
    size_t begin = focus;
    for (int columns = 0; begin > 0;) {
        size_t before = cell_before(line, begin);
        Cell cell = cell_read(line + before, begin - before);
        columns += counted_columns(&cell);
        if (columns > COLUMNS_BEFORE_SPAN) break;
        begin = before;
    }
    return (Window){begin, window_end(line, length, begin)};
}

typedef struct Snippet {
    Span span;
    const char *label;
    Style mark;   // of the carets and the label
    Style gutter; // of everything that is not source
    int width;    // of the line numbers
} Snippet;

static void append_gutter(Text *out, const Snippet *snippet, const char *number, const char *bar) {
    text_append_string(out, snippet->gutter.start);
    text_format(out, "%*s%s", snippet->width, number, bar);
    text_append_string(out, snippet->gutter.end);
}

// The source line and the carets under it.
static void append_source_line(Text *out, const Snippet *snippet, const SourcePlace *place) {
    const char *line = place->line_text;
    size_t length = (size_t)place->line_length;
    ASSERT(line >= place->file->text);
    size_t focus = snippet->span.begin - place->file->base - (size_t)(line - place->file->text);
    ASSERT(snippet->span.begin <= snippet->span.end);
    size_t stop = focus + (snippet->span.end - snippet->span.begin);
    if (focus > length) focus = length;
    Window window = window_around(line, length, focus);
    char number[16];
    snprintf(number, sizeof number, "%d", place->line);
    append_gutter(out, snippet, number, " | ");
    if (window.begin > 0) text_append_string(out, "...");
    int before = window.begin > 0 ? 3 : 0, marked = 0;
    for (size_t at = window.begin; at < window.end;) {
        ASSERT(window.end <= length);
        Cell cell = cell_read(line + at, length - at);
        text_append_string(out, cell.shown);
        if (at < focus)
            before += cell.columns;
        else if (at < stop)
            marked += cell.columns;
        at += cell.bytes;
    }
    if (window.end < length) text_append_string(out, "...");
    while (out->length > 0 && out->bytes[out->length - 1] == ' ') out->bytes[--out->length] = '\0';
    text_append_char(out, '\n');
    append_gutter(out, snippet, "", " | ");
    text_append_repeated(out, ' ', (size_t)before);
    text_append_string(out, snippet->mark.start);
    text_append_repeated(out, '^', marked > 0 ? (size_t)marked : 1);
    if (is_shown(snippet->label)) text_format(out, " %s", snippet->label);
    text_append_string(out, snippet->mark.end);
    text_append_char(out, '\n');
}

static void append_snippet(Text *out, const Snippet *snippet) {
    SourcePlace place = source_find(snippet->span.begin);
    if (!place.file) return;
    append_gutter(out, snippet, "", "--> ");
    text_format(out, "%s:%d:%d\n", place.file->name, place.line, place.column);
    append_gutter(out, snippet, "", " |");
    text_append_char(out, '\n');
    append_source_line(out, snippet, &place);
}

static void append_frame(Text *out, const TraceFrame *frame) {
    text_append_string(out, frame->function);
    SourcePlace place = source_find(frame->at);
    if (place.file) text_format(out, " (%s:%d)", place.file->name, place.line);
    if (frame->again) text_format(out, " %zu times", frame->again + 1);
}

static void append_trace(Text *out, const Diagnostic *diagnostic) {
    size_t count = diagnostic->trace_count;
    if (count == 0) return;
    bool cut = count > TRACE_FIRST + TRACE_LAST + 1;
    text_append_string(out, "  in ");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) text_append_string(out, ", called from ");
        if (cut && i == TRACE_FIRST) {
            i = count - TRACE_LAST;
            text_format(out, "... %zu more ..., called from ", i - TRACE_FIRST);
        }
        append_frame(out, &diagnostic->trace[i]);
    }
    text_append_char(out, '\n');
}

static int digits_of(Span span) {
    SourcePlace place = source_find(span.begin);
    int digits = 1;
    for (int line = place.line; line >= 10; line /= 10) digits++;
    return digits;
}

static void append_remark(Text *out, const Snippet *snippet, const char *word, const char *remark) {
    append_gutter(out, snippet, "", " = ");
    text_format(out, "%s: %s\n", word, remark);
}

static void append_note(Text *out, const Snippet *around, const DiagnosticNote *note, bool color) {
    if (!source_find(note->span.begin).file) {
        append_remark(out, around, "note", note->text);
        return;
    }
    Snippet snippet = *around;
    snippet.mark = style_of(STYLE_NOTE, color);
    snippet.span = note->span;
    snippet.label = NULL;
    append_styled(out, snippet.mark, "note");
    text_format(out, ": %s\n", note->text);
    append_snippet(out, &snippet);
}

void diagnostic_render(Text *out, const Diagnostic *diagnostic, bool color) {
    ASSERT(diagnostic->severity <= SEVERITY_NOTE);
    static const char *const words[] = {"error", "warning", "note"};
    Style severity = style_of((StyleName)diagnostic->severity, color);
    text_append_string(out, severity.start);
    text_append_string(out, words[diagnostic->severity]);
    if (diagnostic->severity == SEVERITY_ERROR && is_shown(diagnostic->kind))
        text_format(out, "[%s]", diagnostic->kind);
    text_append_string(out, severity.end);
    text_append_string(out, ": ");
    const char *message = diagnostic->message ? diagnostic->message : "";
    append_styled(out, style_of(STYLE_BOLD, color), message);
    text_append_char(out, '\n');

    int width = digits_of(diagnostic->span);
    for (size_t i = 0; i < DIAGNOSTIC_NOTES_MAX; i++) {
        int note_width = digits_of(diagnostic->notes[i].span);
        if (note_width > width) width = note_width;
    }
    Snippet snippet = {.span = diagnostic->span,
                       .label = diagnostic->label,
                       .mark = severity,
                       .gutter = style_of(STYLE_GUTTER, color),
                       .width = width};
    append_snippet(out, &snippet);
    if (is_shown(diagnostic->help)) append_remark(out, &snippet, "help", diagnostic->help);
    append_trace(out, diagnostic);
    for (size_t i = 0; i < DIAGNOSTIC_NOTES_MAX && is_shown(diagnostic->notes[i].text); i++)
        append_note(out, &snippet, &diagnostic->notes[i], color);
}

Diagnostic diagnostic_from_error(const ErrorRecord *error) {
    return (Diagnostic){.severity = SEVERITY_ERROR,
                        .kind = error->kind,
                        .message = error->message,
                        .label = error->label,
                        .help = error->help,
                        .span = error->span};
}

bool diagnostic_color(void) {
    const char *refused = getenv("NO_COLOR");
    return output_is_terminal(output_errors()) && !(refused && refused[0] != '\0');
}

static char *copy_or_null(const char *string) {
    return string ? memory_copy_string(string, strlen(string)) : NULL;
}

void diagnostic_list_add(DiagnosticList *list, const Diagnostic *diagnostic) {
    ASSERT(diagnostic->span.begin <= diagnostic->span.end);
    Diagnostic copy = *diagnostic;
    copy.kind = copy_or_null(diagnostic->kind);
    copy.message = copy_or_null(diagnostic->message);
    copy.label = copy_or_null(diagnostic->label);
    copy.help = copy_or_null(diagnostic->help);
    for (size_t i = 0; i < DIAGNOSTIC_NOTES_MAX; i++)
        copy.notes[i].text = copy_or_null(diagnostic->notes[i].text);
    TraceFrame *trace = memory_allocate_zeroed(diagnostic->trace_count, sizeof *trace);
    for (size_t i = 0; i < diagnostic->trace_count; i++) {
        trace[i] = diagnostic->trace[i];
        trace[i].function = copy_or_null(diagnostic->trace[i].function);
    }
    copy.trace = trace;
    VECTOR_PUSH(list, copy);
    if (diagnostic->severity == SEVERITY_ERROR) list->error_count++;
}

void diagnostic_list_sort(DiagnosticList *list, size_t from) {
    ASSERT(from <= list->count);
    for (size_t i = from + 1; i < list->count; i++) {
        Diagnostic item = list->items[i];
        size_t at = i;
        for (; at > from && list->items[at - 1].span.begin > item.span.begin; at--)
            list->items[at] = list->items[at - 1];
        list->items[at] = item;
    }
}

void diagnostic_list_free(DiagnosticList *list) {
    for (size_t i = 0; i < list->count; i++) {
        Diagnostic *item = &list->items[i];
        for (size_t j = 0; j < item->trace_count; j++) free((void *)item->trace[j].function);
        for (size_t j = 0; j < DIAGNOSTIC_NOTES_MAX; j++) free((void *)item->notes[j].text);
        const void *owned[] = {item->kind, item->message, item->label, item->help, item->trace};
        for (size_t j = 0; j < sizeof owned / sizeof owned[0]; j++) free((void *)owned[j]);
    }
    VECTOR_FREE(list);
    list->error_count = 0;
}

void diagnostics_show(const DiagnosticList *list, Severity least) {
    SCOPED_TEXT(text);
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].severity > least) continue;
        text_clear(&text);
        diagnostic_render(&text, &list->items[i], diagnostic_color());
        fputs(text_get(&text), output_errors());
    }
}
