// The order of a check: load every file, declare what each offers, then resolve them one by one,
// imported files before those that import them.
#include "check/check.h"

#include <stdlib.h>

#include "check/infer/infer.h"
#include "check/logic_checker.h"

// Only a main block runs by itself; who writes `fn main` for it hears so.
static void warn_uncalled_main(const Program *program) {
    const Module *module = program->module;
    const NodeList *statements = &program->top->as.block.statements;
    ASSERT(module != NULL);
    for (size_t i = 0; i < statements->count; i++) {
        const Node *node = statements->items[i];
        if (node->kind != NODE_FUNCTION || strcmp(node->as.function->name.text, "main") != 0)
            continue;
        if (node->as.function->binding->used) continue;
        ReportExtra extra = {.help =
                                 "main { ... } runs by itself; a function runs when it is called"};
        report_warning(module->checker, node->as.function->name.span, &extra,
                       "nothing calls fn main");
    }
}

static void check(Program *program, DiagnosticList *diagnostics, bool warnings) {
    ModuleTable table = {0};
    size_t errors = diagnostics->error_count, before = diagnostics->count;
    modules_load(&table, program, diagnostics);
    // A file that did not parse declares too little for the rest to be judged.
    bool parsed = diagnostics->error_count == errors;
    if (parsed) {
        for (size_t i = 0; i < table.modules.count; i++)
            declare_top(table.modules.items[i]->checker);
        for (size_t i = 0; i < table.modules.count; i++) {
            imports_declare(table.modules.items[i]->checker);
            logic_declare_heads(table.modules.items[i]->checker);
            declare_impls(table.modules.items[i]->checker);
        }
        for (size_t i = 0; i < table.modules.count; i++) {
            Checker *checker = table.modules.items[i]->checker;
            declare_assigned(checker);
            logic_declare_constants(checker);
            check_top(checker);
        }
        warn_uncalled_main(program);
        if (diagnostics->error_count == errors) check_logic_programs(&table);
        const Module *module = program->module;
        if (warnings && diagnostics->error_count == errors) {
            warn_unused(module->checker);
            warn_replaced_globals(module->checker);
        }
    }
    module_table_free(&table);
    if (parsed && !getenv("TL_TEST_UNCHECKED")) infer_program(program, diagnostics, warnings);
    diagnostic_list_sort(diagnostics, before);
}

void check_program(Program *program, DiagnosticList *diagnostics) {
    check(program, diagnostics, false);
}

void check_program_fully(Program *program, DiagnosticList *diagnostics) {
    check(program, diagnostics, true);
}
