// Diagnostics of the check. Knows how unknown names are explained, not how they are found.
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>

#include "catalog/foreign.h"
#include "check/help.h"
#include "check/logic_checker.h"

static void add_diagnostic(Checker *checker, Diagnostic diagnostic, const ReportExtra *extra) {
    if (extra) {
        diagnostic.label = extra->label;
        diagnostic.help = extra->help;
        diagnostic.notes[0] = (DiagnosticNote){extra->note, extra->note_span};
    }
    diagnostic_list_add(checker->diagnostics, &diagnostic);
}

#define REPORT(level, word)                                                                        \
    do {                                                                                           \
        Text message = {0};                                                                        \
        va_list arguments;                                                                         \
        va_start(arguments, format);                                                               \
        text_format_v(&message, format, arguments);                                                \
        va_end(arguments);                                                                         \
        add_diagnostic(                                                                            \
            checker,                                                                               \
            (Diagnostic){                                                                          \
                .severity = level, .kind = word, .message = text_get(&message), .span = span},     \
            extra);                                                                                \
        text_free(&message);                                                                       \
    } while (0)

void report(Checker *checker, Status kind, Span span, const ReportExtra *extra, const char *format,
            ...) {
    REPORT(SEVERITY_ERROR, status_word(kind));
}

void report_warning(Checker *checker, Span span, const ReportExtra *extra, const char *format,
                    ...) {
    REPORT(SEVERITY_WARNING, NULL);
}

void report_note(Checker *checker, Span span, const ReportExtra *extra, const char *format, ...) {
    REPORT(SEVERITY_NOTE, NULL);
}

static bool is_struct(const Binding *binding) {
    return binding->kind == BINDING_STRUCT;
}

static const char *nearest_builtin(const char *name) {
    size_t rows = catalog_count(), known = rows + DTYPE_COUNT;
    SCOPED_MEMORY const char **builtins = memory_allocate(known * sizeof *builtins);
    for (size_t i = 0; i < rows; i++) builtins[i] = catalog_get(i)->signature.name;
    for (size_t i = rows; i < known; i++) builtins[i] = dtype_info[i - rows].name;
    return catalog_nearest(name, builtins, known);
}

static bool is_relation(const Binding *binding) {
    return binding->kind == BINDING_RELATION;
}

static size_t known_texts(const ConstantTable *table, const char **names) {
    size_t count = 0;
    for (size_t i = 1; i < table->entries.count; i++) {
        const ConstantEntry *entry = &table->entries.items[i];
        if (entry->kind == CONSTANT_TEXT && entry->known) names[count++] = entry->as.text;
    }
    return count;
}

// Of those that entity types declare and facts mention.
static const char *nearest_entity(const Checker *checker, const char *name) {
    const ModuleTable *table = checker->table;
    size_t room = table->members.entries.count + table->constants.entries.count;
    SCOPED_MEMORY const char **names = memory_allocate((room + 1) * sizeof *names);
    size_t count = known_texts(&table->members, names);
    count += known_texts(&table->constants, names + count);
    return catalog_nearest(name, names, count);
}

// The nearest name of a kind that could stand there.
static const char *nearest_name(Checker *checker, const char *name, Wanted wanted) {
    if (wanted == WANTED_PLACE) return nearest_entity(checker, name);
    static bool (*const kinds[])(const Binding *) = {[WANTED_VARIABLE] = binding_is_variable,
                                                     [WANTED_STRUCT] = is_struct,
                                                     [WANTED_TYPE] = is_struct,
                                                     [WANTED_RELATION] = is_relation,
                                                     [WANTED_ENTITY_TYPE] = is_relation,
                                                     [WANTED_INDEX] = NULL};
    bool (*fits)(const Binding *) = kinds[wanted];
    const char **names;
    size_t count = symbol_visible(checker, fits, &names);
    const char *near = catalog_nearest(name, names, count);
    return near || fits ? near : nearest_builtin(name);
}

// Where an import under a name of its own declares what is looked for; else false. Facts, rules,
// queries and columns name a relation or an entity type alone.
static bool find_in_imports(Checker *checker, const Word *word, Wanted wanted, Text *help) {
    bool alone = wanted == WANTED_RELATION || wanted == WANTED_ENTITY_TYPE;
    const Entry *entry = checker->top ? checker->top->entries : NULL;
    for (; entry; entry = entry->next_in_scope) {
        const Binding *binding = entry->binding;
        if (binding->kind != BINDING_MODULE || !binding->program) continue;
        if (!name_find_in(binding->program, word)) continue;
        const char *name = binding->word.text;
        text_format(help,
                    alone ? "the import declares it: without `as %s` it is known here"
                          : "the import declares it: `%s.%s`",
                    name, word->text);
        return true;
    }
    return false;
}

static void append_unknown_help(Checker *checker, const Word *word, Wanted wanted, Text *help) {
    bool plain = wanted < WANTED_RELATION || wanted == WANTED_INDEX;
    const char *said = plain ? foreign_help(FOREIGN_NAME, word->text, word->length) : NULL;
    if (said)
        text_append_string(help, said);
    else if (find_in_imports(checker, word, wanted, help))
        return;
    else if (plain && wanted != WANTED_VARIABLE && (said = help_library_file(word->text)))
        text_format(help, "the standard library has it: import \"%s\"", said);
    else if ((said = nearest_name(checker, word->text, wanted)))
        text_format(help, "did you mean `%s`?", said);
    else if (wanted == WANTED_RELATION)
        text_format(help, "a relation is declared, as in relation %s(x: entity)", word->text);
    else if (wanted == WANTED_ENTITY_TYPE)
        text_format(help,
                    "columns hold entity, int, float, bool, string, tuple or a type that is "
                    "declared, as in entity %s",
                    word->text);
    else if (wanted == WANTED_INDEX && !word_is_long(word))
        text_append_string(help,
                           "an index on the left of an equation stands in brackets on the right, "
                           "too; without one it is written with `<-`, as in s <- A[i, j]");
    else if (wanted == WANTED_PLACE)
        text_format(help, "a name that no fact of the text has is written in quotes: \"%s\"",
                    word->text);
}

void report_unknown(Checker *checker, const Word *word, Wanted wanted) {
    static const char *const words[] = {"name",     "function",    "variable", "struct", "type",
                                        "relation", "entity type", "name",     "name"};
    if (!symbol_mark_reported(checker, word)) return;
    const Entry *entry = symbol_top(checker, word);
    if (entry && wanted == WANTED_STRUCT) { // one that comes later, of another kind
        report(checker, STATUS_TYPE, word->span, NULL, "`%s` is not a struct", word->text);
        return;
    }
    if (entry && entry->binding->word.span.begin == word->span.begin) {
        ReportExtra store = {.help = "to store elements of a tensor, define it before; the indexes "
                                     "of an equation are names that no variable has"};
        report(checker, STATUS_NAME, word->span, &store, "unknown variable `%s`", word->text);
        return;
    }
    if (entry && !entry_is_visible(checker, entry)) {
        ReportExtra later = {.label = "it has no value yet at this point",
                             .note = "it is defined here",
                             .note_span = entry->binding->word.span};
        report(checker, STATUS_NAME, word->span, &later, "`%s` is used before it is defined",
               word->text);
        return;
    }
    const Binding *ended = wanted <= WANTED_VARIABLE ? symbol_ended(checker, word) : NULL;
    SCOPED_TEXT(help);
    if (ended)
        text_append_string(&help, "a name ends with its block: define it before, and assign to it "
                                  "in the block");
    else
        append_unknown_help(checker, word, wanted, &help);
    ReportExtra extra = {.help = help.length ? text_get(&help) : NULL,
                         .note = ended ? "the block of this one has ended" : NULL,
                         .note_span = ended ? ended->word.span : (Span){0}};
    report(checker, STATUS_NAME, word->span, &extra, "unknown %s `%s`", words[wanted], word->text);
}
