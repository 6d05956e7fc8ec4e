#include "eval/page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/standard.h"
#include "eval/invoke.h"
#include "eval/methods.h"
#include "eval/modules.h"
#include "model/model.h"
#include "parser/parser.h"
#include "value/builtin.h"
#include "value/print.h"

static const char folder[] = "std/models/";

struct Page {
    char *name; // the architecture, or the path of a file of std/
    Program *program;
    CodeStore *store;
    VECTOR(ModuleState *) modules; // the page's own last
};

// --- finding and reading

// "gemma2, llama and phi3"
static void append_known(Text *out) {
    const char *names[standard_file_count];
    size_t count = 0;
    for (size_t i = 0; i < standard_file_count; i++)
        if (strncmp(standard_files[i].path, folder, strlen(folder)) == 0)
            names[count++] = standard_files[i].path + strlen(folder);
    for (size_t i = 0; i < count; i++)
        text_format(out, "%s%.*s",
                    i == 0          ? ""
                    : i + 1 < count ? ", "
                                    : " and ",
                    (int)strcspn(names[i], "."), names[i]);
}

static Status fail_unknown(Value model, const char *architecture) {
    SCOPED_TEXT(known);
    append_known(&known);
    Status status = fail(STATUS_VALUE, "%s has the architecture \"%s\"; known are %s",
                         model_path(model.as.handle->payload), architecture, text_get(&known));
    fail_help("a file models/NAME.tl next to the script or in a folder of TL_PATH computes the "
              "architecture NAME");
    return status;
}

// The name comes from a file and becomes part of a path.
static bool is_name(const char *architecture) {
    const char *at = architecture;
    while (isalnum((unsigned char)*at) || *at == '-' || *at == '_') at++;
    return at > architecture && *at == '\0';
}

static bool find(const Interp *interp, const char *architecture, Text *found) {
    if (!is_name(architecture)) return false;
    SCOPED_TEXT(path);
    SCOPED_TEXT(tried);
    text_format(&path, "%s%s.tl", folder, architecture);
    const char *own = text_get(&path) + strlen("std/");
    return imports_find(interp_script_path(interp), own, found, &tried) ||
           imports_find_standard(text_get(&path), found, &tried);
}

// The first of a page's mistakes is the error of the call that wanted it.
static Status fail_first(const DiagnosticList *diagnostics) {
    const Diagnostic *first = diagnostics->items;
    while (first->severity != SEVERITY_ERROR) first++;
    Status code = STATUS_SYNTAX;
    for (int i = 1; i < STATUS_COUNT; i++)
        if (first->kind && strcmp(status_word((Status)i), first->kind) == 0) code = (Status)i;
    (void)fail(code, "%s", first->message);
    if (first->label) fail_label("%s", first->label);
    if (first->help) fail_help("%s", first->help);
    error_place(first->span);
    return code;
}

static Status read_program(const char *path, Program **out) {
    const SourceFile *source;
    DiagnosticList diagnostics = {0};
    TRY(imports_load(path, &source));
    *out = parse_program(source, &diagnostics);
    if (diagnostics.error_count == 0) check_program(*out, &diagnostics);
    Status status = diagnostics.error_count > 0 ? fail_first(&diagnostics) : STATUS_OK;
    diagnostic_list_free(&diagnostics);
    if (status == STATUS_OK) status = memory_exhausted();
    if (status != STATUS_OK) program_free(*out);
    return status;
}

// --- the page's code

// Its files are not among those of the program or session, which come and go with their lines.
static void lower_page(Interp *interp, struct Page *page) {
    size_t first = interp->modules.count, functions = interp->functions_lowered;
    CodeStore *outside = interp->store;
    interp->store = page->store = code_store_new();
    modules_lower(interp, page->program);
    interp->store = outside;
    interp->functions_lowered = functions;
    for (size_t i = first; i < interp->modules.count; i++)
        VECTOR_PUSH(&page->modules, interp->modules.items[i]);
    interp->modules.count = first;
}

static struct Page *page_find(const Interp *interp, const char *name) {
    for (size_t i = 0; i < interp->pages.count; i++)
        if (strcmp(interp->pages.items[i]->name, name) == 0) return interp->pages.items[i];
    return NULL;
}

static Status page_read(Interp *interp, const char *name, const char *path, struct Page **out) {
    Program *program;
    TRY(read_program(path, &program));
    *out = memory_allocate_zeroed(1, sizeof **out);
    (*out)->name = memory_copy_string(name, strlen(name));
    (*out)->program = program;
    lower_page(interp, *out);
    VECTOR_PUSH(&interp->pages, *out);
    return STATUS_OK;
}

// --- running it

// An exit(n) ends the program without an error, but it ends this too.
static Status status_of(Value value) {
    if (!failed(value)) return STATUS_OK;
    Status code = error_current()->code;
    return code == STATUS_OK ? STATUS_INTERRUPT : code;
}

static const FunctionCode *find_open(const struct Page *page) {
    const NodeList *statements = &page->program->top->as.block.statements;
    for (size_t i = 0; i < statements->count; i++)
        if (statements->items[i]->kind == NODE_FUNCTION &&
            strcmp(statements->items[i]->as.function->name.text, "open") == 0)
            return statements->items[i]->as.function->binding->lowered;
    return NULL;
}

static Status page_run(Interp *interp, struct Page *page, Value argument, Value *out) {
    ModuleState *module = page->modules.items[page->modules.count - 1];
    Value top = module_run(interp, module);
    module->started = !failed(top);
    TRY(status_of(top));
    value_release(top);
    const FunctionCode *open = find_open(page);
    if (!open)
        return fail(STATUS_NAME, "%s declares no function open(m: model)",
                    page->program->file->name);
    Value opened = function_invoke(interp, open, NULL, &argument, 1);
    TRY(status_of(opened));
    *out = opened;
    return STATUS_OK;
}

Status page_open(Interp *interp, const char *architecture, Value model, Value *out) {
    struct Page *page = page_find(interp, architecture);
    SCOPED_TEXT(path);
    Status status = STATUS_OK;
    *out = value_none();
    text_clear(&interp->declared);
    if (!page)
        status = find(interp, architecture, &path)
                     ? page_read(interp, architecture, text_get(&path), &page)
                     : fail_unknown(model, architecture);
    return status == STATUS_OK ? page_run(interp, page, model, out) : status;
}

Status page_open_standard(Interp *interp, const char *path, Value argument, Value *out) {
    struct Page *page = page_find(interp, path);
    SCOPED_TEXT(found);
    SCOPED_TEXT(tried);
    Status status = STATUS_OK;
    *out = value_none();
    if (!page) {
        bool there = imports_find_standard(path, &found, &tried);
        ASSERT(there);
        status = page_read(interp, path, text_get(&found), &page);
    }
    return status == STATUS_OK ? page_run(interp, page, argument, out) : status;
}

bool page_has(Value opened, const char *method) {
    bool unclear = false;
    return opened.kind == VALUE_STRUCT &&
           (struct_find_method(opened.as.instance, method, &unclear) != NULL || unclear);
}

Status page_call(Interp *interp, Value opened, const char *method, Value argument, Tensor **out) {
    bool unclear = false;
    const FunctionCode *code = opened.kind == VALUE_STRUCT
                                   ? struct_find_method(opened.as.instance, method, &unclear)
                                   : NULL;
    if (unclear) return error_current()->code;
    if (!code)
        return fail(STATUS_NAME, "the page's open gives %s, which has no method `%s`",
                    value_text(opened).text, method);
    SCOPED_VALUE(result) = function_invoke(interp, code, NULL, (Value[]){opened, argument}, 2);
    TRY(status_of(result));
    return value_to_tensor(result, method, out);
}

// --- the end

void pages_clear(Interp *interp) {
    for (size_t i = interp->pages.count; i-- > 0;) {
        struct Page *page = interp->pages.items[i];
        for (size_t j = page->modules.count; j-- > 0;) module_clear(interp, page->modules.items[j]);
    }
}

void pages_release(Interp *interp) {
    for (size_t i = 0; i < interp->pages.count; i++)
        code_store_release(interp->pages.items[i]->store);
}

void pages_free(Interp *interp) {
    for (size_t i = 0; i < interp->pages.count; i++) {
        struct Page *page = interp->pages.items[i];
        for (size_t j = 0; j < page->modules.count; j++) heap_free(page->modules.items[j]->globals);
        VECTOR_FREE(&page->modules);
        code_store_free(page->store);
        program_free(page->program);
        free(page->name);
        free(page);
    }
    VECTOR_FREE(&interp->pages);
    text_free(&interp->declared);
}
