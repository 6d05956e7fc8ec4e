// The order of a check: load every file, declare what each offers, then resolve them one by one,
// imported files before those that import them.
#include "check/check.h"

#include <stdlib.h>

#include "check/checker.h"
#include "check/infer.h"

static void check(Program *program, DiagnosticList *diagnostics, bool warnings) {
    ModuleTable table = {0};
    size_t errors = diagnostics->error_count;
    modules_load(&table, program, diagnostics);
    // A file that did not parse declares too little for the rest to be judged.
    if (diagnostics->error_count == errors) {
        for (size_t i = 0; i < table.modules.count; i++)
            declare_top(table.modules.items[i]->checker);
        for (size_t i = 0; i < table.modules.count; i++) {
            Checker *checker = table.modules.items[i]->checker;
            imports_declare(checker);
            declare_assigned(checker);
            check_top(checker);
        }
    }
    for (size_t i = 0; i < table.modules.count; i++) symbols_free(table.modules.items[i]->checker);
    VECTOR_FREE(&table.modules);
    if (diagnostics->error_count == errors) infer_program(program, diagnostics, warnings);
}

void check_program(Program *program, DiagnosticList *diagnostics) {
    check(program, diagnostics, false);
}

void check_program_fully(Program *program, DiagnosticList *diagnostics) {
    check(program, diagnostics, true);
}
