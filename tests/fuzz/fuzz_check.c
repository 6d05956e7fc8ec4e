// Fuzzes the check before running: any text that can be parsed is checked to the end in bounded
// time, and everything that it says has a place.
#define _GNU_SOURCE // memmem
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "parser/parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    const SourceFile *file;
    static const char import[] = "import";
    if (length && memmem(bytes, length, import, sizeof import - 1))
        return 0; // it would read other files
    if (source_add("input.tl", (const char *)bytes, length, &file) != STATUS_OK) return 0;
    DiagnosticList diagnostics = {0};
    Text out = {0};
    Program *program = parse_program(file, &diagnostics);
    if (diagnostics.error_count == 0) check_program_fully(program, &diagnostics);
    for (size_t i = 0; i < diagnostics.count; i++) {
        text_clear(&out);
        diagnostic_render(&out, &diagnostics.items[i], i % 2 == 1);
        if (!source_find(diagnostics.items[i].span.begin).file) abort();
    }
    text_free(&out);
    program_free(program);
    diagnostic_list_free(&diagnostics);
    source_reset();
    return 0;
}
