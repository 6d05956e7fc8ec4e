// The functions of impls, and which one a value takes: the one whose impl says most of its fields
// and still fits them.
#include "eval/methods.h"
#include "base/source.h"
#include "eval/annotations.h"
#include "eval/structs.h"

static void add_method(Lowering *lowering, StructCode *code, MethodCode method) {
    if (code->method_count == code->method_capacity) {
        ASSERT(code->method_count <= code->method_capacity);
        size_t grown = code->method_capacity ? code->method_capacity * 2 : 8;
        MethodCode *methods = lower_array(lowering, grown, sizeof *methods);
        if (code->method_count)
            memcpy(methods, code->methods, code->method_count * sizeof *methods);
        code->methods = methods;
        code->method_capacity = grown;
    }
    code->methods[code->method_count++] = method;
}

// Words that are not types are the impl's own parameters and say nothing.
static const Annotation *lower_argument(Lowering *lowering, const TypeNode *type) {
    const Annotation *annotation = lower_annotation(lowering, type);
    bool parameter = type->kind == TYPE_NAMED && annotation_is_void(annotation);
    return parameter ? NULL : annotation;
}

void struct_add_impl(Lowering *lowering, const Node *impl) {
    ASSERT(impl->kind == NODE_IMPL);
    StructCode *code = struct_of_binding(lowering, impl->as.impl.binding);
    struct_renew(code);
    size_t count = impl->as.impl.type_count;
    const Annotation **arguments = lower_array(lowering, count, sizeof *arguments);
    for (size_t i = 0; i < count; i++) {
        arguments[i] = lower_argument(lowering, impl->as.impl.type_arguments[i]);
        code->specialised |= arguments[i] != NULL;
    }
    for (size_t i = 0; i < impl->as.impl.function_count; i++) {
        const FunctionNode *node = impl->as.impl.functions[i]->as.function;
        FunctionCode *function = lower_function(lowering, node);
        if (impl->as.impl.trait.text) {
            code->drop = function;
            code->type.has_drop = true;
        }
        add_method(lowering, code,
                   (MethodCode){function->name, function, node, arguments, count, impl});
    }
}

// The last of that name below `before`; -1: none. A later line of a session replaces an earlier
// one's.
static int previous(const StructCode *code, const char *name, size_t before) {
    ASSERT(before <= code->method_count);
    for (size_t i = before; i-- > 0;)
        if (strcmp(code->methods[i].name, name) == 0) return (int)i;
    return -1;
}

// -1: a field is not what the impl says; else the more, the more the impl says.
static int method_fit(const StructCode *code, const MethodCode *method, const Instance *instance) {
    ASSERT(method->function != NULL);
    int fit = 0;
    for (size_t i = 0; i < code->type.field_count; i++) {
        int parameter = code->fields[i].parameter;
        if (parameter < 0 || (size_t)parameter >= method->argument_count) continue;
        int one = annotation_fit(method->arguments[parameter], instance->fields[i]);
        if (one < 0) return -1;
        fit += one;
    }
    return fit;
}

// "impl Box<int> (boxes.tl:3)"
static void append_impl(Text *out, const MethodCode *method) {
    size_t length;
    const char *text = source_text(method->impl->span, &length), *brace = memchr(text, '{', length);
    if (brace) length = (size_t)(brace - text);
    while (length > 0 && text[length - 1] == ' ') length--;
    SourcePlace place = source_find(method->impl->span.begin);
    text_append(out, text, length);
    if (place.file) text_format(out, " (%s:%d)", place.file->name, place.line);
}

static const FunctionCode *fail_equal(const StructCode *code, const MethodCode *one,
                                      const MethodCode *other) {
    SCOPED_TEXT(text);
    append_impl(&text, one);
    text_append_string(&text, " and ");
    append_impl(&text, other);
    fail(STATUS_TYPE, "two impls of %s with a function `%s` fit equally well", code->type.name,
         one->name);
    fail_help("%s", text_get(&text));
    return NULL;
}

static const FunctionCode *fail_none(const StructCode *code, const MethodCode *method) {
    SCOPED_TEXT(text);
    append_impl(&text, method);
    fail(STATUS_TYPE, "no impl of %s with a function `%s` fits", code->type.name, method->name);
    fail_help("there is %s", text_get(&text));
    return NULL;
}

static bool same_text(const TypeNode *one, const TypeNode *other) {
    size_t a, b;
    const char *x = source_text(one->span, &a), *y = source_text(other->span, &b);
    return a == b && memcmp(x, y, a) == 0;
}

// The types written somewhere are what the impl says; an impl that says nothing is not meant.
typedef struct Types {
    TypeNode *const *items;
    size_t count;
} Types;

static bool says(const MethodCode *method, const Types *types) {
    bool same = types->count == method->argument_count;
    for (size_t i = 0; same && i < types->count; i++)
        same = method->arguments[i] &&
               same_text(method->impl->as.impl.type_arguments[i], types->items[i]);
    return same;
}

static bool holds_for_all(const MethodCode *method) {
    bool all = true;
    for (size_t i = 0; i < method->argument_count; i++) all &= method->arguments[i] == NULL;
    return all;
}

static bool same_impl(const MethodCode *one, const MethodCode *other) {
    Types types = {other->impl->as.impl.type_arguments, other->argument_count};
    return holds_for_all(one) ? holds_for_all(other) : says(one, &types);
}

// The best of a name by `fit`, which is given the context.
static const FunctionCode *choose(const StructCode *code, const char *name, const void *context,
                                  int (*fit)(const StructCode *code, const MethodCode *method,
                                             const void *context),
                                  bool *unclear) {
    const MethodCode *best = NULL, *equal = NULL, *any = NULL;
    int best_fit = -1;
    int i = code ? previous(code, name, code->method_count) : -1;
    for (; i >= 0; i = previous(code, name, (size_t)i)) {
        const MethodCode *method = &code->methods[i];
        int one = fit(code, method, context);
        any = method;
        if (one < 0 || one < best_fit) continue;
        if (one == best_fit && same_impl(best, method)) continue;
        equal = one == best_fit ? method : NULL;
        if (!equal) best = method;
        best_fit = one;
    }
    *unclear = equal || (any && !best);
    if (equal) return fail_equal(code, equal, best);
    if (*unclear) return fail_none(code, any);
    return best ? best->function : NULL;
}

static int fit_instance(const StructCode *code, const MethodCode *method, const void *instance) {
    return method_fit(code, method, instance);
}

const FunctionCode *struct_find_method(const Instance *instance, const char *name, bool *unclear) {
    const StructCode *code = instance->type->definition;
    *unclear = false;
    if (code && code->specialised) return choose(code, name, instance, fit_instance, unclear);
    int index = code ? previous(code, name, code->method_count) : -1;
    return index < 0 ? NULL : code->methods[index].function;
}

// Without types behind the name an impl for all is meant, or the only one there is.
static int fit_types(const StructCode *code, const MethodCode *method, const void *types) {
    (void)code;
    return holds_for_all(method) ? 1 : says(method, types) ? 2 : 0;
}

const FunctionCode *struct_find_function(const StructType *type, const char *name, const Node *path,
                                         bool *unclear) {
    Types types = {0};
    if (path) types = (Types){path->as.path.type_arguments, path->as.path.type_count};
    return choose(type->definition, name, &types, fit_types, unclear);
}
