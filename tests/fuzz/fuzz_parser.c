// Fuzzes the lexer and the parser: any bytes give a tree or errors that can be shown, and the tree
// keeps within its height.
#include <stdlib.h>

#include "parser/dump.h"
#include "parser/parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    const SourceFile *file;
    if (source_add("input.tl", (const char *)bytes, length, &file) != STATUS_OK) return 0;
    DiagnosticList diagnostics = {0};
    Text out = {0};
    Program *program = parse_program(file, &diagnostics);
    for (size_t i = 0; i < diagnostics.count; i++) {
        text_clear(&out);
        diagnostic_render(&out, &diagnostics.items[i], i % 2 == 1);
        if (!source_find(diagnostics.items[i].span.begin).file) abort(); // every error has a place
    }
    if (diagnostics.error_count > SYNTAX_ERRORS_MAX) abort();
    if (diagnostics.error_count == 0) {
        if (program->top->height > TREE_HEIGHT_MAX) abort();
        dump_node(&out, program->top);
    }
    parse_is_incomplete((const char *)bytes, length);
    text_free(&out);
    program_free(program);
    diagnostic_list_free(&diagnostics);
    source_reset();
    return 0;
}
