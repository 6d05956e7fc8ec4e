// Impls and the structs they belong to, and paths, which name their functions: Point::new.
#include <stdlib.h>

#include "check/checker.h"
#include "check/types.h"

// --- impls

// Words that are not types say nothing of a value: they are parameters.
static bool says_nothing(const TypeNode *type) {
    TypeWord word;
    return type->kind == TYPE_NAMED && !type->binding && !type_word_find(type->name.text, &word);
}

static const TypeNode *argument_at(const Node *impl, size_t index) {
    ASSERT(impl->kind == NODE_IMPL);
    if (index >= impl->as.impl.type_count) return NULL;
    const TypeNode *type = impl->as.impl.type_arguments[index];
    return says_nothing(type) ? NULL : type;
}

// Whether both hold for the same values.
static bool same_values(const Node *one, const Node *other) {
    ASSERT(one->kind == NODE_IMPL && other->kind == NODE_IMPL);
    size_t count = one->as.impl.type_count;
    if (other->as.impl.type_count > count) count = other->as.impl.type_count;
    for (size_t i = 0; i < count; i++) {
        const TypeNode *x = argument_at(one, i), *y = argument_at(other, i);
        if (!x != !y || (x && !source_same_text(x->span, y->span))) return false;
    }
    return true;
}

static const FunctionNode *find_in(const Node *impl, const char *name) {
    for (size_t i = 0; i < impl->as.impl.function_count; i++) {
        const FunctionNode *function = impl->as.impl.functions[i]->as.function;
        if (strcmp(function->name.text, name) == 0) return function;
    }
    return NULL;
}

FunctionNode *impl_function(const Binding *type, const char *name, bool *several) {
    ASSERT(type->kind == BINDING_STRUCT);
    FunctionNode *found = NULL;
    if (several) *several = false;
    for (const Node *impl = type->impls; impl; impl = impl->as.impl.previous) {
        FunctionNode *function = (FunctionNode *)(uintptr_t)find_in(impl, name);
        if (found && function && several) *several = true;
        if (!found) found = function;
    }
    return found;
}

static bool runs_with(const Program *program, SourcePos position) {
    const SourceFile *file = program->file;
    bool found = position >= file->base && position < file->base + file->length;
    for (size_t i = 0; !found && i < program->imported.count; i++)
        found = runs_with(program->imported.items[i], position);
    return found;
}

// A later line of a session may replace what an earlier one said; within one program the same
// function twice is a mistake.
static void check_twice(Checker *checker, const Node *impl) {
    ASSERT(checker->table->modules.count > 0);
    const Program *run = checker->table->modules.items[checker->table->modules.count - 1]->program;
    for (const Node *other = impl->as.impl.previous; other; other = other->as.impl.previous) {
        if (!runs_with(run, other->span.begin) || !same_values(impl, other)) continue;
        for (size_t i = 0; i < impl->as.impl.function_count; i++) {
            const Word *name = &impl->as.impl.functions[i]->as.function->name;
            const FunctionNode *first = find_in(other, name->text);
            if (first) report_twice(checker, "method", name, &first->name);
        }
    }
}

void declare_impls(Checker *checker) {
    NodeList *statements = &checker->program->top->as.block.statements;
    for (size_t i = 0; i < statements->count; i++) {
        Node *node = statements->items[i];
        if (node->kind != NODE_IMPL) continue;
        Binding *type = struct_resolve(checker, node->as.impl.module, &node->as.impl.name);
        node->as.impl.binding = type;
        impl_parameters(checker, node);
        for (size_t j = 0; j < node->as.impl.type_count; j++)
            check_type(checker, node->as.impl.type_arguments[j], NULL);
        checker->type_parameter_count = 0;
        if (!type) continue;
        node->as.impl.previous = type->impls;
        type->impls = node;
        check_twice(checker, node);
    }
}

void forget_impls(const Program *program) {
    ASSERT(program->top->kind == NODE_BLOCK);
    NodeList *statements = &program->top->as.block.statements;
    for (size_t i = statements->count; i-- > 0;) {
        const Node *node = statements->items[i];
        Binding *type = node->kind == NODE_IMPL ? node->as.impl.binding : NULL;
        if (type && type->impls == node) type->impls = node->as.impl.previous;
    }
}

// --- paths

static void report_function(Checker *checker, const Node *path) {
    ASSERT(path->kind == NODE_PATH);
    const Binding *type = path->as.path.binding;
    ASSERT(type->kind == BINDING_STRUCT);
    VECTOR(const char *) names = {0};
    for (const Node *impl = type->impls; impl; impl = impl->as.impl.previous)
        for (size_t i = 0; i < impl->as.impl.function_count; i++)
            VECTOR_PUSH(&names, impl->as.impl.functions[i]->as.function->name.text);
    const Word *name = &path->as.path.name;
    const char *near = catalog_nearest(name->text, names.items, names.count);
    SCOPED_TEXT(help);
    if (near)
        text_format(&help, "did you mean `%s::%s`?", type->word.text, near);
    else if (names.count == 0)
        text_format(&help, "impl %s { fn %s(...) { ... } } declares it", type->word.text,
                    name->text);
    VECTOR_FREE(&names);
    ReportExtra extra = {.help = help.length ? text_get(&help) : NULL,
                         .note = "the struct is here",
                         .note_span = type->word.span};
    report(checker, STATUS_NAME, name->span, &extra, "struct %s has no function `%s`",
           type->word.text, name->text);
}

static bool takes_dtype(const Builtin *row) {
    for (; row; row = row->next_overload)
        for (int i = 0; i < row->signature.count; i++)
            if (strcmp(row->signature.params[i].name, "dtype") == 0) return true;
    return false;
}

// A builtin with a namespace: KVCache::new, f32::zeros, Tensor::ones.
static bool is_builtin_path(const Word *type, const Word *name) {
    SCOPED_TEXT(full);
    DType dtype;
    text_format(&full, "%s::%s", type->text, name->text);
    bool found = catalog_find(text_get(&full), full.length) != NULL;
    if (found) return true;
    const Builtin *row = catalog_find(name->text, name->length);
    if (dtype_find(type->text, type->length, &dtype)) return takes_dtype(row);
    return row && (strcmp(type->text, "Tensor") == 0 || strcmp(type->text, "tensor") == 0);
}

static bool is_namespace(const Word *type) {
    DType dtype;
    bool found = dtype_find(type->text, type->length, &dtype) || strcmp(type->text, "Tensor") == 0;
    for (size_t i = 0; !found && i < catalog_count(); i++) {
        const char *row = catalog_get(i)->signature.name;
        found = strncmp(row, type->text, type->length) == 0 &&
                strncmp(row + type->length, "::", 2) == 0;
    }
    return found;
}

// "zeros" or, behind a namespace of its own, "KVCache::new".
static void report_builtin_path(Checker *checker, const Word *type, const Word *name) {
    size_t count = catalog_count();
    DType of;
    bool dtype = dtype_find(type->text, type->length, &of);
    const char **names = arena_allocate(checker->arena, count * sizeof *names);
    for (size_t i = 0; i < count; i++) {
        const char *row = catalog_get(i)->signature.name;
        bool own = strncmp(row, type->text, type->length) == 0 &&
                   strncmp(row + type->length, "::", 2) == 0;
        bool suits = !strchr(row, ':') && (!dtype || takes_dtype(catalog_get(i)));
        names[i] = own ? row + type->length + 2 : suits ? row : "";
    }
    const char *near = catalog_nearest(name->text, names, count);
    SCOPED_TEXT(help);
    if (near)
        text_format(&help, "did you mean `%s::%s`?", type->text, near);
    else if (dtype && catalog_find(name->text, name->length))
        text_format(&help, "%s takes no dtype: it is %s(...)", name->text, name->text);
    ReportExtra extra = {.help = help.length ? text_get(&help) : NULL};
    report(checker, STATUS_NAME, name->span, &extra, "there is no function `%s::%s`", type->text,
           name->text);
}

static void check_plain_path(Checker *checker, Node *node) {
    const Word *type = &node->as.path.type, *name = &node->as.path.name;
    if (is_builtin_path(type, name)) return;
    if (is_namespace(type))
        report_builtin_path(checker, type, name);
    else if (!name_resolve(checker, type))
        report_unknown(checker, type, WANTED_STRUCT);
    else
        report(checker, STATUS_TYPE, type->span, NULL, "`%s` is not a struct", type->text);
}

void check_path(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_PATH);
    const Word *type = &node->as.path.type;
    Binding *binding = node->as.path.module ? struct_resolve(checker, node->as.path.module, type)
                                            : name_resolve(checker, type);
    bool structure = binding && binding->kind == BINDING_STRUCT;
    if (structure) {
        binding->used = true;
        node->as.path.binding = binding;
        if (!impl_function(binding, node->as.path.name.text, NULL)) report_function(checker, node);
    } else if (binding && binding->kind == BINDING_MODULE && binding->program) {
        node->as.path.binding = name_find_in(binding->program, &node->as.path.name);
        if (node->as.path.binding)
            node->as.path.binding->used = true;
        else
            report_member(checker, binding->program, type, &node->as.path.name);
    } else if (!node->as.path.module) {
        check_plain_path(checker, node);
    }
    for (size_t i = 0; i < node->as.path.type_count; i++)
        check_type(checker, node->as.path.type_arguments[i], NULL);
}
