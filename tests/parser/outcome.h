// What parsing a text comes to: the diagnostics as shown, and what was read besides.
#ifndef TESTS_PARSER_OUTCOME_H
#define TESTS_PARSER_OUTCOME_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "parser/parser.h"

#include <cmocka.h> // its fail() hides ours

typedef struct Outcome {
    Text rendered;
    size_t statements, errors;
} Outcome;

static inline Outcome parse_text(const char *source, size_t length) {
    const SourceFile *file;
    assert_int_equal(source_add("t.tl", source, length, &file), STATUS_OK);
    DiagnosticList diagnostics = {0};
    Program *program = parse_program(file, &diagnostics);
    Outcome outcome = {.statements = program->top->as.block.statements.count,
                       .errors = diagnostics.error_count};
    for (size_t i = 0; i < diagnostics.count; i++)
        diagnostic_render(&outcome.rendered, &diagnostics.items[i], false);
    diagnostic_list_free(&diagnostics);
    program_free(program);
    source_reset();
    return outcome;
}

typedef struct Row {
    const char *source, *rendered;
} Row;

static inline void check_row(const Row *row) {
    Outcome outcome = parse_text(row->source, strlen(row->source));
    if (strcmp(text_get(&outcome.rendered), row->rendered) != 0)
        fail_msg("source:\n%s\nshown:\n%s\nwanted:\n%s", row->source, text_get(&outcome.rendered),
                 row->rendered);
    text_free(&outcome.rendered);
}

#define CHECK_ROWS(rows)                                                                           \
    for (size_t row_ = 0; row_ < sizeof(rows) / sizeof(rows)[0]; row_++) check_row(&(rows)[row_])

#endif
