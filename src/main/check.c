// tl check: every mistake that can be known without running, as text or JSON.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/equation.h"
#include "main/command.h"
#include "parser/parser.h"
#include "parser/walk.h"

static json_t *place_json(SourcePos position) {
    SourcePlace place = source_find(position);
    return json_pack("{s:i, s:i}", "line", place.line, "column", place.column);
}

// The further places: `labels` of an editor.
static json_t *notes_json(const Diagnostic *diagnostic) {
    json_t *array = json_array();
    for (size_t i = 0; i < DIAGNOSTIC_NOTES_MAX && diagnostic->notes[i].text; i++) {
        const DiagnosticNote *note = &diagnostic->notes[i];
        SourcePlace place = source_find(note->span.begin);
        if (place.file)
            json_array_append_new(array,
                                  json_pack("{s:s, s:s, s:o, s:o}", "message", note->text, "file",
                                            place.file->name, "start", place_json(note->span.begin),
                                            "end", place_json(note->span.end)));
    }
    return array;
}

static json_t *diagnostic_json(const Diagnostic *diagnostic) {
    static const char *const severities[] = {"error", "warning", "note"};
    SourcePlace place = source_find(diagnostic->span.begin);
    return json_pack("{s:s, s:s*, s:s, s:s*, s:s*, s:s*, s:o, s:o, s:o}", "severity",
                     severities[diagnostic->severity], "kind", diagnostic->kind, "message",
                     diagnostic->message, "label", diagnostic->label, "help", diagnostic->help,
                     "file", place.file ? place.file->name : NULL, "start",
                     place_json(diagnostic->span.begin), "end", place_json(diagnostic->span.end),
                     "notes", notes_json(diagnostic));
}

// program.tl:3:1: C[i, k] = A[i, j] B[j, k], and below it where its sums stand.
static void show_equation(void *context, Node *node) {
    (void)context;
    const Equation *equation = node->kind == NODE_EQUATION ? node->as.equation.plan : NULL;
    if (!equation) return;
    size_t length;
    const char *source = source_text(equation->span, &length);
    SourcePlace place = source_find(equation->span.begin);
    SCOPED_TEXT(text);
    equation_append_sums(&text, equation);
    printf("%s:%d:%d: %.*s%s\n", place.file->name, place.line, place.column, (int)length, source,
           text_get(&text));
}

static void check_file(const char *path, bool sums, DiagnosticList *diagnostics) {
    const SourceFile *source;
    if (source_load(path, &source) != STATUS_OK) {
        Diagnostic diagnostic = diagnostic_from_error(error_current());
        diagnostic_list_add(diagnostics, &diagnostic);
        return;
    }
    size_t before = diagnostics->error_count;
    Program *program = parse_program(source, diagnostics);
    if (diagnostics->error_count == before) check_program_fully(program, diagnostics);
    if (sums && diagnostics->error_count == before)
        walk_node(&(Walker){.node = show_equation}, program->top);
    program_free(program);
}

static void show_json(const DiagnosticList *diagnostics) {
    json_t *array = json_array();
    for (size_t i = 0; i < diagnostics->count; i++)
        json_array_append_new(array, diagnostic_json(&diagnostics->items[i]));
    char *text = json_dumps(array, JSON_INDENT(2));
    puts(text);
    free(text);
    json_decref(array);
}

int command_check(const Command *command, int count, char **arguments) {
    for (int i = 0; i < count && arguments[i][0] == '-'; i++)
        if (strcmp(arguments[i], "--memory") == 0 || strcmp(arguments[i], "--memory=sure") == 0)
            return check_memory(command, count, arguments);
    CommandLine line = {0};
    DiagnosticList diagnostics = {0};
    int files = 0;
    for (int index = 0; index < count;) {
        if (option_read(&line, arguments, count, &index)) continue;
        if (line.sums && line.json)
            return usage_error(command, "--sums and --json exclude each other");
        if (strncmp(arguments[index], "--", 2) == 0) return word_refuse(command, arguments[index]);
        check_file(arguments[index++], line.sums, &diagnostics);
        files++;
    }
    if (files == 0) return usage_error(command, "a file is missing");
    if (line.json)
        show_json(&diagnostics);
    else
        diagnostics_show(&diagnostics, SEVERITY_NOTE);
    int status = diagnostics.error_count ? EXIT_FAILED : EXIT_SUCCESS_STATUS;
    diagnostic_list_free(&diagnostics);
    source_reset();
    return status;
}
