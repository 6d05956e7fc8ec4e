// Imports: finds, reads and parses the files that a program names, each once, and makes their names
// visible. Knows nothing of running them.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/standard.h"
#include "check/checker.h"

void module_table_free(ModuleTable *table) {
    for (size_t i = 0; i < table->modules.count; i++)
        symbols_free(table->modules.items[i]->checker);
    VECTOR_FREE(&table->modules);
    constants_free(&table->constants);
    constants_free(&table->members);
}

static Module *module_new(ModuleTable *table, Program *program, const char *path,
                          DiagnosticList *diagnostics) {
    ASSERT(program != NULL);
    Arena *arena = &program->arena;
    Module *module = arena_allocate(arena, sizeof *module);
    Checker *checker = arena_allocate(arena, sizeof *checker);
    *module = (Module){.program = program, .checker = checker};
    if (path) module->path = arena_copy_string(arena, path, strlen(path));
    *checker = (Checker){.module = module,
                         .program = program,
                         .arena = arena,
                         .diagnostics = diagnostics,
                         .table = table};
    checker->imported = arena_allocate(arena, sizeof(Scope));
    checker->top = arena_allocate(arena, sizeof(Scope));
    checker->top->global = true;
    scope_push(checker, checker->imported);
    scope_push(checker, checker->top);
    program->module = module;
    return module;
}

static Module *module_find(const ModuleVector *modules, const char *path) {
    for (size_t i = 0; i < modules->count; i++)
        if (modules->items[i]->path && strcmp(modules->items[i]->path, path) == 0)
            return modules->items[i];
    return NULL;
}

// Tries one place; appends it to what was tried when there is no file.
static bool path_try(const char *directory, size_t length, const char *path, Text *found,
                     Text *tried) {
    ASSERT(length == 0 || directory != NULL);
    text_clear(found);
    if (path[0] != '/' && length > 0) {
        text_append(found, directory, length);
        if (directory[length - 1] != '/') text_append_char(found, '/');
    }
    text_append_string(found, path);
    char resolved[PATH_MAX];
    if (realpath(text_get(found), resolved)) return true;
    text_format(tried, "%s%s", tried->length ? ", " : "", text_get(found));
    return false;
}

// A folder "std" next to the installed program, or in the sources that it was built from.
static bool imports_find_library(const char *path, Text *found, Text *tried) {
    static const char *const adjacent[] = {"../share/tl", "../.."};
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) return false;
    program[length] = '\0';
    SCOPED_TEXT(directory);
    bool there = false;
    for (size_t i = 0; i < sizeof adjacent / sizeof *adjacent && !there; i++) {
        text_clear(&directory);
        text_format(&directory, "%.*s/%s", (int)(strrchr(program, '/') - program), program,
                    adjacent[i]);
        there = path_try(text_get(&directory), directory.length, path, found, tried);
    }
    char resolved[PATH_MAX];
    if (there && realpath(text_get(found), resolved)) { // messages name it without `..`
        text_clear(found);
        text_append_string(found, resolved);
    }
    return there;
}

static const char inside[] = "<tl>/"; // stands before the names of files in the program itself

static bool is_inside(const char *path) {
    return strncmp(path, inside, strlen(inside)) == 0;
}

// Next to a file in the program itself.
static bool find_inside(const char *importer, const char *path, Text *found) {
    ASSERT(is_inside(importer));
    text_clear(found);
    text_format(found, "%.*s%s", (int)(strrchr(importer, '/') + 1 - importer), importer, path);
    return standard_find(text_get(found) + strlen(inside)) != NULL;
}

bool imports_find(const char *importer, const char *path, Text *found, Text *tried) {
    if (is_inside(importer))
        return find_inside(importer, path, found) || imports_find_standard(path, found, tried);
    const char *slash = strrchr(importer, '/');
    if (path_try(importer, slash ? (size_t)(slash - importer) + 1 : 0, path, found, tried))
        return true;
    if (path[0] == '/') return false;
    const char *entry = getenv("TL_PATH");
    while (entry && *entry) {
        size_t length = strcspn(entry, ":");
        if (length > 0 && path_try(entry, length, path, found, tried)) return true;
        entry += length + (entry[length] == ':');
    }
    return imports_find_standard(path, found, tried);
}

bool imports_find_standard(const char *path, Text *found, Text *tried) {
    if (strncmp(path, "std/", 4) != 0) return false;
    if (imports_find_library(path, found, tried)) return true;
    text_clear(found);
    text_format(found, "%s%s", inside, path);
    return standard_find(path) != NULL;
}

Status imports_load(const char *path, const SourceFile **out) {
    if (!is_inside(path)) return source_load(path, out);
    ASSERT(is_inside(path));
    const StandardFile *file = standard_find(path + strlen(inside));
    ASSERT(file != NULL); // imports_find has found it
    return source_add(path, (const char *)file->text, file->length, out);
}

typedef struct Loader {
    ModuleTable *table;
    ModuleVector known; // also those whose own imports are still being read
    Program *root;
    DiagnosticList *diagnostics;
} Loader;

static void module_load_imports(Loader *loader, Module *module);

static Module *file_load(Loader *loader, Module *importer, const Node *node, const char *path) {
    char resolved[PATH_MAX];
    const char *canonical = realpath(path, resolved) ? resolved : path; // a file of the program's
    Module *known = module_find(&loader->known, canonical);
    if (known) return known;
    const SourceFile *source;
    if (imports_load(path, &source) != STATUS_OK) {
        report(importer->checker, STATUS_IO, node->as.import.path.span, NULL, "%s",
               error_current()->message);
        error_clear();
        return NULL;
    }
    Program *program = parse_program(source, loader->diagnostics);
    ARENA_PUSH(&loader->root->arena, &loader->root->imported, program);
    Module *module = module_new(loader->table, program, canonical, loader->diagnostics);
    VECTOR_PUSH(&loader->known, module);
    module_load_imports(loader, module);
    return module;
}

static void import_load(Loader *loader, Module *module, Node *node) {
    SCOPED_TEXT(found);
    SCOPED_TEXT(tried);
    Module *imported = NULL;
    ASSERT(node->kind == NODE_IMPORT);
    const Word *path = &node->as.import.path;
    if (strlen(path->text) < path->length)
        report(module->checker, STATUS_IO, path->span, NULL, "the name of a file has no \\0 in it");
    else if (imports_find(module->program->file->name, node->as.import.path.text, &found, &tried))
        imported = file_load(loader, module, node, text_get(&found));
    else
        report(module->checker, STATUS_IO, node->as.import.path.span, NULL,
               "cannot find \"%s\"; tried %s", node->as.import.path.text, text_get(&tried));
    if (imported) {
        node->as.import.program = imported->program;
        if (!node->as.import.alias.text)
            ARENA_PUSH(module->checker->arena, &module->imports, imported);
    }
}

static void module_load_imports(Loader *loader, Module *module) {
    NodeList *statements = &module->program->top->as.block.statements;
    for (size_t i = 0; i < statements->count; i++)
        if (statements->items[i]->kind == NODE_IMPORT)
            import_load(loader, module, statements->items[i]);
    VECTOR_PUSH(&loader->table->modules, module);
}

void modules_load(ModuleTable *table, Program *program, DiagnosticList *diagnostics) {
    char canonical[PATH_MAX];
    const char *path = realpath(program->file->name, canonical);
    ASSERT(program->file != NULL);
    Loader loader = {.table = table, .root = program, .diagnostics = diagnostics};
    for (size_t i = 0; i < table->modules.count; i++)
        VECTOR_PUSH(&loader.known, table->modules.items[i]);
    Module *root = module_new(table, program, path, diagnostics);
    VECTOR_PUSH(&loader.known, root);
    module_load_imports(&loader, root);
    VECTOR_FREE(&loader.known);
}

static void names_add(Checker *checker, Module *from) {
    if (from->visited) return;
    from->visited = true;
    ASSERT(from->checker->top != NULL);
    for (Entry *entry = from->checker->top->entries; entry; entry = entry->next_in_scope)
        scope_add_outermost(checker, checker->imported, &entry->binding->word, entry->binding);
    for (size_t i = from->imports.count; i-- > 0;) names_add(checker, from->imports.items[i]);
}

void imports_declare(Checker *checker) {
    ModuleTable *table = checker->table;
    for (size_t i = 0; i < table->modules.count; i++) table->modules.items[i]->visited = false;
    checker->module->visited = true;
    ModuleVector *imports = &checker->module->imports;
    for (size_t i = imports->count; i-- > 0;) names_add(checker, imports->items[i]);
}
