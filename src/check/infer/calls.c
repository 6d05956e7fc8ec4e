// Calls: what is called, the program's functions gone through with the facts of their arguments,
// methods and struct literals.
#include <stdio.h>

#include "catalog/foreign.h"
#include "check/infer/infer.h"
#include "check/operator_words.h"

enum { DEPTH_MAX = 24, SAME_MAX = 2 };

static InferArguments arguments_new(Inference *in, size_t count) {
    InferArguments arguments = {.count = 0};
    arguments.items = arena_allocate(&in->arena, (count + 2) * sizeof *arguments.items);
    arguments.names = arena_allocate(&in->arena, (count + 2) * sizeof *arguments.names);
    return arguments;
}

static void arguments_add(Inference *in, InferArguments *out, const Argument *items, size_t count) {
    for (size_t i = 0; i < count; i++) {
        Node *value = items[i].value;
        out->items[out->count] = (Operand){infer_expression(in, value), value->span, value};
        out->names[out->count] = items[i].name.text;
        if (!items[i].name.text) out->positional = out->count + 1;
        out->count++;
    }
}

static const char *function_title(Inference *in, const FunctionNode *function) {
    if (!function->name.text) return function->what ? function->what : "a lambda";
    SCOPED_TEXT(text);
    text_format(&text, "fn %s", function->name.text);
    return arena_copy_string(&in->arena, text_get(&text), text.length);
}

// --- the program's functions

static const char *what_of(Inference *in, const char *format, const char *a, const char *b) {
    SCOPED_TEXT(text);
    text_format(&text, format, a, b);
    return arena_copy_string(&in->arena, text_get(&text), text.length);
}

static int parameter_find(const FunctionNode *function, const char *name) {
    for (size_t i = 0; i < function->parameter_count; i++)
        if (strcmp(function->parameters[i].name.text, name) == 0) return (int)i;
    return -1;
}

// Says why the arguments do not fit.
static void report_arguments(Inference *in, const FunctionNode *function, const char *title,
                             Span span, const InferArguments *arguments) {
    const char *unknown = NULL;
    for (size_t i = arguments->positional; i < arguments->count && !unknown; i++)
        if (parameter_find(function, arguments->names[i]) < 0) unknown = arguments->names[i];
    if (unknown)
        fail(STATUS_ARITY, "%s has no parameter `%s`", title, unknown);
    else if (arguments->count == arguments->positional)
        call_fail_count(function, title, arguments->count);
    else
        return; // one that is missing or given twice is left to the run
    infer_report(in, span, NULL, 0);
}

// The facts of the parameters in order, NULL where a default stands; NULL where the arguments do
// not fit.
static const Fact **place_arguments(Inference *in, const FunctionNode *function,
                                    const InferArguments *arguments) {
    size_t count = function->parameter_count;
    const Fact **facts = arena_allocate(&in->arena, (count + 1) * sizeof *facts);
    if (arguments->positional > count) return NULL;
    for (size_t i = 0; i < arguments->count; i++) {
        ASSERT(arguments->positional <= arguments->count);
        int at = arguments->names[i] ? parameter_find(function, arguments->names[i]) : (int)i;
        if (at < 0 || facts[at]) return NULL;
        facts[at] = arguments->items[i].fact;
    }
    for (size_t i = 0; i < count; i++)
        if (!facts[i] && !function->parameters[i].fallback) return NULL;
    return facts;
}

static void bind_parameters(Inference *in, const FunctionNode *function, const Fact **facts,
                            const char *title, Span span) {
    for (size_t i = 0; i < function->symbols.count; i++)
        infer_write(in, function->symbols.items[i], &fact_any);
    for (size_t i = 0; i < function->parameter_count; i++) {
        const Parameter *parameter = &function->parameters[i];
        const Fact *fact = facts && facts[i] ? facts[i] : NULL;
        if (!fact) fact = facts ? infer_expression(in, parameter->fallback) : &fact_any;
        const char *what = what_of(in, "parameter %s of %s", parameter->name.text, title);
        fact = annotation_refine(in, parameter->type, fact, what, span);
        infer_write(in, parameter->binding, fact);
    }
}

// The body in its own activation; the value that it gives.
static const Fact *run_body(Inference *in, FunctionNode *function, Activation *activation) {
    const Fact *last = infer_block(in, function->body);
    if (!in->dead)
        activation->result =
            activation->result ? fact_join(&in->arena, activation->result, last) : last;
    const Fact *result = activation->result ? activation->result : &fact_any;
    const TypeNode *type = function->result;
    bool is_void = type && type->kind == TYPE_NAMED && strcmp(type->name.text, "void") == 0;
    if (!type || is_void) return result;
    const char *what = what_of(in, "the result of %s%s", activation->title, "");
    in->dead = false;
    return annotation_refine(in, type, result, what, function->head);
}

static const Memo *memo_find(const Inference *in, const FunctionNode *function,
                             const Fact **arguments) {
    bool doubtful = !infer_certain(in);
    for (const Memo *memo = in->memos; memo; memo = memo->next) {
        bool same = memo->function == function && memo->epoch == in->epoch &&
                    memo->version == in->version && (doubtful || !memo->doubtful) &&
                    (in->silent || !memo->silent);
        for (size_t i = 0; same && i < function->parameter_count; i++)
            same =
                arguments[i] && memo->arguments[i] && fact_equal(arguments[i], memo->arguments[i]);
        if (same) return memo;
    }
    return NULL;
}

static const Fact *result_unknown(Inference *in, const FunctionNode *function) {
    infer_disturb(in);
    return annotation_refine(in, function->result, &fact_any, "", function->head);
}

static bool may_enter(const Inference *in, const FunctionNode *function) {
    int same = 0;
    ASSERT(in->activation != NULL);
    for (const Activation *a = in->activation; a; a = a->outer) same += a->function == function;
    return in->activation->depth < DEPTH_MAX && same < SAME_MAX && in->fuel > 0;
}

const Fact *infer_call_function(Inference *in, FunctionNode *function, const char *title, Span span,
                                const InferArguments *arguments) {
    const Fact **facts = place_arguments(in, function, arguments);
    if (!facts && !arguments->counted) report_arguments(in, function, title, span, arguments);
    if (!facts || !function->body || !may_enter(in, function)) return result_unknown(in, function);
    const Memo *known = memo_find(in, function, facts);
    if (known) return known->result;
    Memo memo = {function,           facts,          NULL,     in->epoch, in->version,
                 !infer_certain(in), in->silent > 0, in->memos};
    Activation activation = {.function = function,
                             .title = title,
                             .at = span,
                             .outer = in->activation,
                             .serial = ++in->serial,
                             .depth = in->activation->depth + 1};
    bool doubtful = !infer_certain(in);
    size_t mark = in->trail.count;
    uint8_t left = in->left;
    InferLoop *loop = in->loop;
    function->inferred = true; // what stands in a `try` is meant to fail there
    size_t found = in->found.count;
    bind_parameters(in, function, facts, title, span);
    if (in->found.count > found) { // the arguments do not fit: nothing more to say of the body
        infer_undo(in, mark);
        return result_unknown(in, function);
    }
    in->activation = &activation;
    in->doubt += doubtful;
    in->left = 0;
    in->loop = NULL;
    const Fact *result = run_body(in, function, &activation);
    ASSERT(in->doubt >= doubtful);
    in->doubt -= doubtful;
    in->loop = loop;
    // A conditional exit makes doubtful what follows; a body that cannot end stops its caller.
    bool stopped = !activation.result;
    in->left = (uint8_t)(left | (in->left & LEFT_PROGRAM));
    ASSERT(in->activation == &activation);
    in->activation = (Activation *)(uintptr_t)activation.outer;
    infer_undo(in, mark);
    in->dead = stopped;
    memo.result = result;
    if (in->epoch == memo.epoch && in->version == memo.version && !stopped && in->left == left) {
        Memo *kept = arena_allocate(&in->arena, sizeof *kept);
        *kept = memo;
        in->memos = kept;
    }
    return result;
}

void infer_function_apart(Inference *in, FunctionNode *function) {
    Activation activation = {.function = function,
                             .title = function_title(in, function),
                             .outer = in->activation,
                             .serial = ++in->serial,
                             .depth = 1};
    size_t mark = in->trail.count;
    in->dead = false;
    in->left = 0;
    in->loop = NULL;
    in->doubt++;
    in->activation = &activation;
    function->inferred = true;
    bind_parameters(in, function, NULL, activation.title, function->head);
    run_body(in, function, &activation);
    ASSERT(in->activation == &activation);
    in->activation = (Activation *)(uintptr_t)activation.outer;
    ASSERT(in->doubt > 0);
    in->doubt--;
    infer_undo(in, mark);
}

// --- what is called

// A closure sees the variables of the call that made it, which are followed only inside it.
static bool closure_is_here(const Inference *in, const Fact *fact) {
    const FunctionNode *function = fact->as.function.node;
    return function->captures.count == 0 || fact->as.function.activation == in->activation->serial;
}

static const Fact *call_unknown(Inference *in) {
    infer_disturb(in);
    return &fact_any;
}

// The function of a struct; NULL where there is none, or a value's fields decide.
static FunctionNode *only_function(const Binding *type, const char *name) {
    ASSERT(type->kind == BINDING_STRUCT);
    bool several;
    FunctionNode *function = impl_function(type, name, &several);
    return several ? NULL : function;
}

static const Fact *infer_call_value(Inference *in, const Fact *callee, Span span,
                                    const InferArguments *arguments) {
    switch (callee->kind) {
    case FACT_FUNCTION:
        if (!closure_is_here(in, callee)) return call_unknown(in);
        return infer_call_function(in, callee->as.function.node,
                                   function_title(in, callee->as.function.node), span, arguments);
    case FACT_BUILTIN: return infer_call_builtin(in, callee->as.builtin, span, arguments);
    case FACT_TYPE: {
        const Binding *type = callee->as.structure.binding;
        FunctionNode *made = only_function(type, "new");
        if (made) return infer_call_function(in, made, function_title(in, made), span, arguments);
        if (!impl_function(type, "new", NULL)) {
            fail(STATUS_TYPE, "struct %s has no `new` and cannot be called", type->word.text);
            fail_help("a value is made by %s { field: value, ... }", type->word.text);
            infer_report(in, span, NULL, 0);
        }
        return call_unknown(in);
    }
    default: return call_unknown(in);
    }
}

static bool is_callable(const Fact *fact) {
    return fact->kind == FACT_FUNCTION || fact->kind == FACT_BUILTIN || fact->kind == FACT_TYPE ||
           fact->kind == FACT_DTYPE;
}

// The first meaning that can be called; NULL when that cannot be told. *wrong: a value that none
// of the meanings makes callable.
static const Fact *find_callee(Inference *in, Binding *binding, const Candidate *others,
                               const Fact **wrong) {
    const Fact *fact = infer_binding_value(in, binding);
    *wrong = NULL;
    for (const Fact *first = fact;; others = others->next) {
        if (is_callable(fact)) return fact;
        if (fact->kind == FACT_ANY) return NULL;
        if (!others) {
            *wrong = first;
            return NULL;
        }
        fact = infer_binding_value(in, others->binding);
    }
}

static const Fact *call_path(Inference *in, const Node *node, InferArguments *arguments) {
    ASSERT(node->kind == NODE_CALL && node->as.call.callee->kind == NODE_PATH);
    const Node *path = node->as.call.callee;
    Binding *binding = path->as.path.binding;
    const Word *name = &path->as.path.name, *type = &path->as.path.type;
    if (binding && binding->kind == BINDING_STRUCT) {
        FunctionNode *function = only_function(binding, name->text);
        return function ? infer_call_function(in, function, function_title(in, function),
                                              node->span, arguments)
                        : call_unknown(in);
    }
    if (binding)
        return infer_call_value(in, infer_binding_value(in, binding), node->span, arguments);
    DType dtype;
    const Builtin *row = catalog_find(name->text, name->length);
    if (!row || !dtype_find(type->text, type->length, &dtype)) return call_unknown(in);
    Fact *word = fact_new(&in->arena, FACT_DTYPE);
    word->as.dtype = dtype;
    arguments->items[arguments->count] = (Operand){.fact = word};
    arguments->names[arguments->count++] = "dtype";
    return infer_call_builtin(in, row, node->span, arguments);
}

const Fact *infer_call(Inference *in, Node *node) {
    ASSERT(node->kind == NODE_CALL);
    Node *callee = node->as.call.callee;
    const Fact *called = NULL, *wrong = NULL;
    if (callee->kind != NODE_NAME && callee->kind != NODE_PATH)
        called = infer_expression(in, callee);
    InferArguments arguments = arguments_new(in, node->as.call.count);
    arguments_add(in, &arguments, node->as.call.arguments, node->as.call.count);
    if (in->dead) return &fact_any;
    if (callee->kind == NODE_PATH) return call_path(in, node, &arguments);
    if (callee->kind == NODE_NAME) {
        if (!callee->as.name.binding) return call_unknown(in);
        arguments.counted = callee->as.name.binding->kind == BINDING_FUNCTION;
        called = find_callee(in, callee->as.name.binding, callee->as.name.otherwise, &wrong);
    } else if (!is_callable(called) && called->kind != FACT_ANY) {
        wrong = called;
    }
    bool certain = wrong && (fact_is_number(wrong) || wrong->kind == FACT_STRING ||
                             wrong->kind == FACT_TENSOR || wrong->kind == FACT_NONE);
    if (certain) {
        SCOPED_TEXT(text);
        fact_describe(wrong, &text);
        fail(STATUS_TYPE, "%s is not a function and cannot be called", text_get(&text));
        infer_report(in, node->span, &(Operand){.fact = wrong, .span = callee->span}, 1);
    }
    return called ? infer_call_value(in, called, node->span, &arguments) : call_unknown(in);
}

// --- methods

static const Fact *method_of_struct(Inference *in, Node *node, const Fact *receiver,
                                    const InferArguments *arguments) {
    ASSERT(receiver->kind == FACT_STRUCT);
    const Binding *type = receiver->as.structure.binding;
    bool several;
    FunctionNode *function = impl_function(type, node->as.method.name.text, &several);
    if (!function) return NULL;
    if (several) return call_unknown(in);
    const char *title = what_of(in, "fn %s.%s", type->word.text, function->name.text);
    return infer_call_function(in, function, title, node->span, arguments);
}

static const char *nearest_method(Inference *in, const Fact *fact, const char *name) {
    bool structure = fact->kind == FACT_STRUCT;
    size_t most = structure ? 0 : catalog_count(), count = 0;
    const Node *impls = structure ? fact->as.structure.binding->impls : NULL;
    for (const Node *impl = impls; impl; impl = impl->as.impl.previous)
        most += impl->as.impl.function_count;
    const char **names = arena_allocate(&in->arena, (most + 1) * sizeof *names);
    for (const Node *impl = impls; impl; impl = impl->as.impl.previous)
        for (size_t i = 0; i < impl->as.impl.function_count; i++)
            names[count++] = impl->as.impl.functions[i]->as.function->name.text;
    for (size_t i = 0; !structure && i < most; i++) {
        names[count] = catalog_method_name(catalog_get(i)->signature.name, fact_kind_name(fact));
        if (names[count]) count++;
    }
    return catalog_nearest(name, names, count);
}

static void fail_method(Inference *in, const Node *node, const Operand *receiver) {
    const char *name = node->as.method.name.text, *near = nearest_method(in, receiver->fact, name);
    bool structure = receiver->fact->kind == FACT_STRUCT;
    const char *foreign = structure ? NULL : foreign_help(FOREIGN_MEMBER, name, strlen(name));
    fail(STATUS_NAME, "%s has no method `%s`", fact_kind_name(receiver->fact), name);
    if (foreign)
        fail_help("%s", foreign);
    else if (near)
        fail_help("did you mean `%s`?", near);
    infer_report(in, node->span, NULL, 0);
}

// Point.new(...): the last of what a struct's own functions can be called by.
static const Fact *call_associated(Inference *in, Node *node, const InferArguments *arguments) {
    ASSERT(arguments->count > 0 && arguments->positional > 0); // the type itself
    Binding *type = arguments->items[0].fact->as.structure.binding;
    const char *name = node->as.method.name.text;
    bool several;
    FunctionNode *function = impl_function(type, name, &several);
    InferArguments own = {.items = arguments->items + 1,
                          .names = arguments->names + 1,
                          .count = arguments->count - 1,
                          .positional = arguments->positional - 1};
    if (function && !several)
        return infer_call_function(in, function, function_title(in, function), node->span, &own);
    if (several) return call_unknown(in);
    Fact instance = {.kind = FACT_STRUCT, .as.structure.binding = type};
    const char *near = nearest_method(in, &instance, name);
    fail(STATUS_NAME, "struct %s has no function `%s`", type->word.text, name);
    if (near) fail_help("did you mean `%s.%s`?", type->word.text, near);
    infer_report(in, node->span, NULL, 0);
    return &fact_any;
}

// Values whose methods are all in the catalog.
static bool has_plain_methods(const Fact *fact) {
    return fact->kind == FACT_TENSOR || fact_is_number(fact);
}

static const Fact *method_call(Inference *in, Node *node, const InferArguments *arguments) {
    ASSERT(arguments->count > 0); // the receiver
    const Fact *receiver = arguments->items[0].fact;
    const Word *name = &node->as.method.name;
    if (receiver->kind == FACT_STRUCT) {
        const Fact *result = method_of_struct(in, node, receiver, arguments);
        if (result) return result;
        if (struct_field_index(receiver->as.structure.binding, name) >= 0) return call_unknown(in);
    }
    if (receiver->kind == FACT_ANY) return call_unknown(in);
    if (receiver->kind == FACT_TYPE) return call_associated(in, node, arguments);
    char full[96];
    int length = snprintf(full, sizeof full, "%s.%s", fact_kind_name(receiver), name->text);
    const Builtin *own = length < (int)sizeof full ? catalog_find(full, (size_t)length) : NULL;
    if (own) return infer_call_builtin(in, own, node->span, arguments);
    if (receiver->kind == FACT_DICT) return call_unknown(in);
    const Candidate *candidates = node->as.method.function;
    const Fact *wrong = NULL, *callee = NULL;
    if (candidates) {
        callee = find_callee(in, candidates->binding, candidates->next, &wrong);
        if (callee) return infer_call_value(in, callee, node->span, arguments);
        if (!wrong) return call_unknown(in);
    }
    const Builtin *row = catalog_find(name->text, name->length);
    if (row) return infer_call_builtin(in, row, node->span, arguments);
    if (has_plain_methods(receiver) || receiver->kind == FACT_STRUCT)
        fail_method(in, node, &arguments->items[0]);
    return call_unknown(in);
}

const Fact *infer_method_call(Inference *in, Node *node) {
    ASSERT(node->kind == NODE_METHOD_CALL);
    InferArguments arguments = arguments_new(in, node->as.method.count + 1);
    if (node->as.method.member) {
        arguments_add(in, &arguments, node->as.method.arguments, node->as.method.count);
        arguments.counted = node->as.method.member->kind == BINDING_FUNCTION;
        if (in->dead) return &fact_any;
        return infer_call_value(in, infer_binding_value(in, node->as.method.member), node->span,
                                &arguments);
    }
    Node *receiver = node->as.method.receiver;
    arguments.items[0] = (Operand){infer_expression(in, receiver), receiver->span, receiver};
    arguments.count = arguments.positional = 1;
    arguments_add(in, &arguments, node->as.method.arguments, node->as.method.count);
    return in->dead ? &fact_any : method_call(in, node, &arguments);
}

// --- structs

// Reports a field without a value.
static bool struct_is_whole(Inference *in, const Node *node) {
    ASSERT(node->kind == NODE_STRUCT_LITERAL && node->as.struct_literal.binding != NULL);
    const Node *structure = node->as.struct_literal.binding->declaration;
    for (size_t i = 0; i < structure->as.structure.field_count; i++) {
        const char *field = structure->as.structure.fields[i].text;
        bool given = structure->as.structure.fallbacks[i] != NULL;
        for (size_t j = 0; j < node->as.struct_literal.count && !given; j++)
            given = strcmp(node->as.struct_literal.names[j].text, field) == 0;
        if (given) continue;
        fail(STATUS_VALUE, "field `%s` of %s is missing", field,
             node->as.struct_literal.binding->word.text);
        infer_report(in, node->span, NULL, 0);
        return false;
    }
    return true;
}

const Fact *infer_struct_literal(Inference *in, Node *node) {
    ASSERT(node->kind == NODE_STRUCT_LITERAL);
    const Binding *type = node->as.struct_literal.binding;
    const Node *structure = type ? type->declaration : NULL;
    size_t count = structure ? structure->as.structure.field_count : 0;
    bool unknown = !type; // a name that no field has may stand for the one that is missing
    const Fact **fields = arena_allocate(&in->arena, (count + 1) * sizeof *fields);
    for (size_t i = 0; i < count; i++)
        fields[i] =
            annotation_refine(in, structure->as.structure.types[i], &fact_any, "", node->span);
    for (size_t i = 0; i < node->as.struct_literal.count; i++) {
        Node *value = node->as.struct_literal.values[i];
        const Fact *fact = infer_expression(in, value);
        int index = type ? struct_field_index(type, &node->as.struct_literal.names[i]) : -1;
        unknown |= index < 0;
        if (index < 0) continue;
        const char *what =
            what_of(in, "field %s of %s", node->as.struct_literal.names[i].text, type->word.text);
        fields[index] =
            annotation_declare(in, structure->as.structure.types[index], fact, what, value->span);
    }
    if (unknown || !struct_is_whole(in, node)) return &fact_any;
    Fact *fact = fact_new(&in->arena, FACT_STRUCT);
    fact->known = true;
    fact->epoch = in->epoch;
    fact->as.structure.binding = (Binding *)(uintptr_t)type;
    fact->as.structure.fields = fields;
    return fact;
}
