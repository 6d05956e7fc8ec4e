// What names in expressions mean. Knows nothing of arguments and arity.
#include "check/checker.h"

void name_resolve_node(Checker *checker, Node *node, bool call_position) {
    Word *word = &node->as.name.word;
    Candidate *candidates = name_candidates(checker, word);
    if (!candidates) {
        report_unknown(checker, word, call_position ? "function" : "name");
        return;
    }
    node->as.name.binding = candidates->binding;
    binding_use(checker, candidates->binding);
    if (!call_position) return;
    node->as.name.otherwise = candidates->next;
    for (Candidate *next = candidates->next; next; next = next->next)
        binding_use(checker, next->binding);
}

static Binding *member_named(const Program *program, const Word *name) {
    const Module *module = program->module;
    const Entry *entry = symbol_top(module->checker, name);
    while (entry && entry->scope != module->checker->top &&
           entry->scope != module->checker->imported)
        entry = entry->outer;
    return entry ? entry->binding : NULL;
}

Binding *name_find_member(Checker *checker, const Node *object, const Word *name) {
    if (object->kind != NODE_NAME) return NULL;
    Binding *module = name_resolve(checker, &object->as.name.word);
    if (!module || module->kind != BINDING_MODULE) return NULL;
    Binding *member = module->program ? member_named(module->program, name) : NULL;
    if (member) {
        member->used = true;
    } else if (module->program) {
        report(checker, STATUS_NAME, name->span, NULL, "`%s` has no `%s`",
               object->as.name.word.text, name->text);
    }
    return member;
}
