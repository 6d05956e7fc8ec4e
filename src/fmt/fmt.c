// Formats a text and makes sure that it is still the same program.
#include "fmt/fmt.h"

#include <stdlib.h>

#include "fmt/layout.h"
#include "fmt/pieces.h"
#include "parser/dump.h"
#include "parser/parser.h"

// A text read for formatting: its tokens and its tree.
typedef struct Reading {
    const SourceFile *file;
    Program *program;
    TokenList tokens;
} Reading;

static bool reading_open(Reading *reading, const SourceFile *file, DiagnosticList *diagnostics) {
    size_t errors = diagnostics->error_count;
    DiagnosticList known = {0};
    *reading = (Reading){.file = file, .program = parse_program(file, diagnostics)};
    reading->tokens = lexer_read(file, &reading->program->arena, &known, 0);
    diagnostic_list_free(&known);
    return diagnostics->error_count == errors;
}

static void reading_close(Reading *reading) {
    VECTOR_FREE(&reading->tokens);
    program_free(reading->program);
}

// Spelt alike; a newline may be written in two ways.
static bool token_texts_equal(Span left, Span right) {
    size_t left_length, right_length, i = 0, j = 0;
    const char *a = source_text(left, &left_length), *b = source_text(right, &right_length);
    for (; i < left_length && j < right_length; i++, j++) {
        i += i + 1 < left_length && a[i] == '\r' && a[i + 1] == '\n';
        j += j + 1 < right_length && b[j] == '\r' && b[j + 1] == '\n';
        if (a[i] != b[j]) return false;
    }
    return i == left_length && j == right_length;
}

static bool tokens_equal(const TokenList *left, const TokenList *right) {
    if (left->count != right->count) return false;
    for (size_t i = 0; i + 1 < left->count; i++) {
        const Token *a = &left->items[i], *b = &right->items[i];
        if (a->kind != b->kind || a->newline_before != b->newline_before) return false;
        if (!token_texts_equal(a->span, b->span)) return false;
    }
    return true;
}

static bool trees_equal(const Program *left, const Program *right) {
    SCOPED_TEXT(a);
    SCOPED_TEXT(b);
    dump_node(&a, left->top);
    dump_node(&b, right->top);
    return a.length == b.length && memcmp(text_get(&a), text_get(&b), a.length) == 0;
}

bool format_same_program(const SourceFile *left, const SourceFile *right) {
    DiagnosticList diagnostics = {0};
    Reading a, b;
    bool same = reading_open(&a, left, &diagnostics);
    same &= reading_open(&b, right, &diagnostics);
    same = same && tokens_equal(&a.tokens, &b.tokens) && trees_equal(a.program, b.program);
    reading_close(&a);
    reading_close(&b);
    diagnostic_list_free(&diagnostics);
    return same;
}

static bool is_same(const SourceFile *file, const Text *formatted) {
    const SourceFile *after;
    return source_add(file->name, text_get(formatted), formatted->length, &after) == STATUS_OK &&
           format_same_program(file, after);
}

static void report_changed(const SourceFile *file, DiagnosticList *diagnostics) {
    SCOPED_TEXT(message);
    text_format(&message, "formatting %s would change its meaning; it is left as it is",
                file->name);
    diagnostic_list_add(diagnostics, &(Diagnostic){.kind = status_word(STATUS_FORMAT),
                                                   .message = text_get(&message),
                                                   .help = "this is a mistake of tl fmt"});
}

bool format_source(const SourceFile *file, Text *out, DiagnosticList *diagnostics) {
    Reading reading;
    bool whole = reading_open(&reading, file, diagnostics);
    if (whole) {
        PieceList pieces = pieces_read(file, &reading.tokens, reading.program->top);
        SCOPED_TEXT(formatted);
        pieces_lay_out(&pieces, &formatted);
        VECTOR_FREE(&pieces);
        whole = is_same(file, &formatted);
        if (whole)
            text_append(out, text_get(&formatted), formatted.length);
        else
            report_changed(file, diagnostics);
    }
    reading_close(&reading);
    return whole;
}
