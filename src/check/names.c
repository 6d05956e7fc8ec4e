// What names in expressions mean. Knows nothing of arguments and arity.
#include <stdlib.h>

#include "check/checker.h"

void name_resolve_node(Checker *checker, Node *node, bool call_position) {
    Word *word = &node->as.name.word;
    Candidate *candidates = name_candidates(checker, word);
    if (!candidates) {
        report_unknown(checker, word, call_position ? WANTED_FUNCTION : WANTED_NAME);
        return;
    }
    node->as.name.binding = candidates->binding;
    binding_use(checker, candidates->binding);
    if (!call_position) return;
    node->as.name.otherwise = candidates->next;
    for (Candidate *next = candidates->next; next; next = next->next)
        binding_use(checker, next->binding);
}

void name_want_value(Checker *checker, const Node *node) {
    const Binding *binding = node->as.name.binding;
    if (!binding || binding->kind != BINDING_MODULE) return;
    const char *name = node->as.name.word.text;
    SCOPED_TEXT(help);
    text_format(&help, "%s.name is what it declares under that name", name);
    ReportExtra extra = {.help = text_get(&help)};
    report(checker, STATUS_TYPE, node->span, &extra, "`%s` is an imported file, not a value", name);
}

// What a file declares and what it imports without a name of its own; its names for others are its
// own business.
Binding *name_find_in(const Program *program, const Word *name) {
    const Module *module = program->module;
    const Entry *entry = symbol_top(module->checker, name);
    while (entry &&
           (entry->binding->kind == BINDING_MODULE ||
            (entry->scope != module->checker->top && entry->scope != module->checker->imported)))
        entry = entry->outer;
    return entry ? entry->binding : NULL;
}

// The names of the file itself, not those of what it imports.
void report_member(Checker *checker, const Program *program, const Word *import, const Word *name) {
    const Module *module = program->module;
    VECTOR(const char *) names = {0};
    const Entry *entry = module->checker->top->entries;
    for (; entry; entry = entry->next_in_scope)
        if (entry->binding->word.text && entry->binding->kind != BINDING_MODULE)
            VECTOR_PUSH(&names, entry->binding->word.text);
    const char *near = catalog_nearest(name->text, names.items, names.count);
    VECTOR_FREE(&names);
    SCOPED_TEXT(help);
    if (near) text_format(&help, "did you mean `%s`?", near);
    ReportExtra extra = {.help = near ? text_get(&help) : NULL};
    report(checker, STATUS_NAME, name->span, &extra, "`%s` has no `%s`", import->text, name->text);
}

Binding *name_find_member(Checker *checker, const Node *object, const Word *name) {
    if (object->kind != NODE_NAME) return NULL;
    Binding *module = name_resolve(checker, &object->as.name.word);
    if (!module || module->kind != BINDING_MODULE) return NULL;
    Binding *member = module->program ? name_find_in(module->program, name) : NULL;
    if (member)
        member->used = true;
    else if (module->program)
        report_member(checker, module->program, &object->as.name.word, name);
    return member;
}

Binding *struct_resolve(Checker *checker, Node *module, const Word *name) {
    Binding *binding = NULL;
    if (module) {
        name_resolve_node(checker, module, false);
        binding = name_find_member(checker, module, name);
        const Binding *import = module->as.name.binding;
        if (!binding && (!import || import->kind == BINDING_MODULE)) return NULL; // reported
    } else if (!(binding = name_resolve(checker, name))) {
        report_unknown(checker, name, WANTED_STRUCT);
        return NULL;
    }
    if (binding && binding->kind == BINDING_STRUCT) {
        binding->used = true;
        return binding;
    }
    report(checker, STATUS_TYPE, name->span, NULL, "`%s%s%s` is not a struct",
           module ? module->as.name.word.text : "", module ? "." : "", name->text);
    return NULL;
}
