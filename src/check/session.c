// The names of a session: what the lines so far have declared, put below the names of the next
// line. Knows nothing of values.
#include <stdlib.h>

#include "check/logic_checker.h"

struct CheckSession {
    ModuleTable table;         // the files imported so far
    VECTOR(Binding *) names;   // oldest first
    Arena arena;               // of the variables
    size_t files_before;       // the files when the present line began
    const Entry *session_head; // the first of the session's own names in the line's imports
};

CheckSession *check_session_new(void) {
    return memory_allocate_zeroed(1, sizeof(CheckSession));
}

void check_session_free(CheckSession *session) {
    module_table_free(&session->table);
    VECTOR_FREE(&session->names);
    arena_free(&session->arena);
    free(session);
}

static bool same_name(const Binding *a, const Word *word) {
    return a->word.length == word->length && memcmp(a->word.text, word->text, word->length) == 0;
}

// The name as a variable, or as anything else; -1 when the session has none.
static ptrdiff_t name_index(const CheckSession *session, const Word *word, bool variable) {
    for (size_t i = session->names.count; i-- > 0;)
        if (same_name(session->names.items[i], word) &&
            binding_is_variable(session->names.items[i]) == variable)
            return (ptrdiff_t)i;
    return -1;
}

static void names_remove(CheckSession *session, size_t index) {
    ASSERT(index < session->names.count);
    Binding **items = session->names.items;
    ASSERT(session->names.count > 0);
    session->names.count--;
    memmove(items + index, items + index + 1, (session->names.count - index) * sizeof *items);
}

// What was imported before stays below what the line itself imports; the newest name is nearest.
static void names_declare(CheckSession *session, Checker *checker) {
    for (size_t i = session->names.count; i-- > 0;) {
        Binding *binding = session->names.items[i];
        scope_add_outermost(checker, checker->imported, &binding->word, binding);
        if (i + 1 == session->names.count) session->session_head = checker->imported->entries;
    }
}

void check_line(CheckSession *session, Program *program, DiagnosticList *diagnostics) {
    size_t errors = diagnostics->error_count, before = diagnostics->count;
    session->files_before = session->table.modules.count;
    session->session_head = NULL;
    modules_load(&session->table, program, diagnostics);
    ModuleVector *modules = &session->table.modules;
    if (diagnostics->error_count > errors) return;
    for (size_t i = session->files_before; i < modules->count; i++)
        declare_top(modules->items[i]->checker);
    for (size_t i = session->files_before; i < modules->count; i++) {
        Checker *checker = modules->items[i]->checker;
        imports_declare(checker);
        if (modules->items[i]->program == program) names_declare(session, checker);
        logic_declare_heads(checker);
        declare_impls(checker);
    }
    for (size_t i = session->files_before; i < modules->count; i++) {
        Checker *checker = modules->items[i]->checker;
        declare_assigned(checker);
        logic_declare_constants(checker);
        check_top(checker);
    }
    diagnostic_list_sort(diagnostics, before);
}

// The line itself is the last of the table; what it imported stands before it.
static Checker *line_take(CheckSession *session, const Program *program) {
    ModuleVector *modules = &session->table.modules;
    ASSERT(modules->count > session->files_before);
    Module *line = modules->items[--modules->count];
    ASSERT(line->program == program);
    return line->checker;
}

static Binding *variable_copy(CheckSession *session, const Binding *binding) {
    Binding *copy = arena_allocate(&session->arena, sizeof *copy);
    *copy = (Binding){.kind = BINDING_GLOBAL,
                      .word = binding->word,
                      .assigned = true,
                      .used = true,
                      .lowered = binding->lowered};
    copy->word.text = arena_copy_string(&session->arena, binding->word.text, binding->word.length);
    return copy;
}

static void name_keep(CheckSession *session, Binding *binding, bool own) {
    bool variable = binding_is_variable(binding);
    ptrdiff_t index = name_index(session, &binding->word, variable);
    // A variable keeps its place: functions of earlier lines read it there.
    bool again =
        own && variable && index >= 0 && session->names.items[index]->lowered == binding->lowered;
    Binding *kept = again             ? session->names.items[index]
                    : own && variable ? variable_copy(session, binding)
                                      : binding;
    kept->awaits = binding->awaits;
    kept->parameter = binding->parameter;
    if (index >= 0) names_remove(session, (size_t)index);
    VECTOR_PUSH(&session->names, kept);
}

// Entries are linked newest first; names are kept in the order of their declaration.
static void names_keep(CheckSession *session, const Entry *first, const Entry *end, bool own) {
    SCOPED_MEMORY VECTOR(Binding *) found = {0};
    for (const Entry *entry = first; entry && entry != end; entry = entry->next_in_scope)
        VECTOR_PUSH(&found, entry->binding);
    for (size_t i = found.count; i-- > 0;) name_keep(session, found.items[i], own);
}

void check_session_keep(CheckSession *session, Program *program) {
    Checker *checker = line_take(session, program);
    // The session's own names were added last, in front.
    const Entry *imported =
        session->session_head ? session->session_head->next_in_scope : checker->imported->entries;
    names_keep(session, imported, NULL, false);
    names_keep(session, checker->top->entries, NULL, true);
    symbols_free(checker);
}

void check_session_drop(CheckSession *session, Program *program) {
    forget_impls(program);
    for (size_t i = 0; i < program->imported.count; i++) forget_impls(program->imported.items[i]);
    symbols_free(line_take(session, program));
    ModuleVector *modules = &session->table.modules;
    ASSERT(modules->count >= session->files_before);
    while (modules->count > session->files_before)
        symbols_free(modules->items[--modules->count]->checker);
}

Binding *check_session_define(CheckSession *session, const char *name) {
    Binding binding = {.word = {.text = name, .length = (uint32_t)strlen(name)}};
    VECTOR_PUSH(&session->names, variable_copy(session, &binding));
    return session->names.items[session->names.count - 1];
}

size_t check_session_count(const CheckSession *session) {
    return session->names.count;
}

Binding *check_session_name(const CheckSession *session, size_t index) {
    ASSERT(index < session->names.count);
    return session->names.items[index];
}

Binding *check_session_variable(const CheckSession *session, const char *name, size_t length) {
    Word word = {.text = name, .length = (uint32_t)length};
    ptrdiff_t index = name_index(session, &word, true);
    return index < 0 ? NULL : session->names.items[index];
}
