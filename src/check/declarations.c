// Declarations: functions, structs, impls, and the order in which a file's names come to exist.
#include "check/equation_checker.h"
#include "check/logic_checker.h"
#include "check/types.h"

void report_twice(Checker *checker, const char *what, const Word *word, const Word *first) {
    ReportExtra extra = {.note = "the first is here", .note_span = first->span};
    report(checker, STATUS_NAME, word->span, &extra, "%s `%s` is declared twice", what, word->text);
}

static void check_parameters(Checker *checker, FunctionNode *function) {
    for (size_t i = 0; i < function->parameter_count; i++) {
        Parameter *parameter = &function->parameters[i];
        const Entry *entry = symbol_top(checker, &parameter->name);
        if (entry && entry->scope == checker->scope)
            report_twice(checker, "parameter", &parameter->name, &entry->binding->word);
        parameter->binding = scope_declare_new(checker, BINDING_LOCAL, &parameter->name);
        parameter->binding->type = parameter->type;
    }
    for (size_t i = 0; i < function->parameter_count; i++) {
        check_type(checker, function->parameters[i].type, function);
        check_expression(checker, function->parameters[i].fallback);
    }
    check_type(checker, function->result, function);
}

// The state of the frame around, set aside while a function's own is checked.
typedef struct FrameState {
    FunctionNode *function;
    Place place;
    int loop_depth, slot_next, slot_max;
} FrameState;

static FrameState frame_enter(Checker *checker, FunctionNode *function, Place place) {
    ASSERT(checker->slot_next <= checker->slot_max);
    FrameState state = {checker->function, checker->place, checker->loop_depth, checker->slot_next,
                        checker->slot_max};
    function->outer = checker->function;
    checker->function = function;
    checker->place = place;
    checker->loop_depth = checker->slot_next = checker->slot_max = 0;
    return state;
}

static void frame_leave(Checker *checker, const FrameState *state) {
    ASSERT(checker->function != NULL && checker->slot_next <= checker->slot_max);
    checker->function->slot_count = checker->slot_max;
    checker->function = state->function;
    checker->place = state->place;
    checker->loop_depth = state->loop_depth;
    checker->slot_next = state->slot_next;
    checker->slot_max = state->slot_max;
}

// In the last place of a function with a result `x = e` and `x := e` give the value, so that either
// may define x.
static void define_results(Node *node) {
    if (!node) return;
    switch (node->kind) {
    case NODE_ASSIGN:
        node->as.assign.result =
            node->op == OPERATOR_NONE && node->as.assign.target->kind == NODE_NAME;
        break;
    case NODE_EXPRESSION_STATEMENT: define_results(node->as.expression.value); break;
    case NODE_BLOCK:
        if (node->as.block.statements.count > 0)
            define_results(node->as.block.statements.items[node->as.block.statements.count - 1]);
        break;
    case NODE_IF:
        define_results(node->as.branch.then_branch);
        define_results(node->as.branch.else_branch);
        break;
    case NODE_MATCH:
        for (size_t i = 0; i < node->as.match.count; i++)
            define_results(node->as.match.arms[i].body);
        break;
    default: break;
    }
}

static bool has_result(const FunctionNode *function) {
    TypeWord word;
    const TypeNode *result = function->result;
    return result && !(result->kind == TYPE_NAMED && type_word_find(result->name.text, &word) &&
                       word == TYPE_WORD_NONE);
}

static void check_body(Checker *checker, FunctionNode *function, Place place) {
    FrameState state = frame_enter(checker, function, place);
    Scope scope = {0};
    scope_push(checker, &scope);
    check_parameters(checker, function);
    if (has_result(function)) define_results(function->body);
    (place == PLACE_FUNCTION ? check_expression : check_node)(checker, function->body);
    if (place != PLACE_FUNCTION) warn_lost(checker, function->body);
    scope_pop(checker);
    frame_leave(checker, &state);
}

// A function's type parameters stand next to those of the impl and the functions around it.
void check_function(Checker *checker, FunctionNode *function) {
    ASSERT(function->type_count == 0 || function->type_parameters != NULL);
    const Word *outer = checker->type_parameters;
    size_t outer_count = checker->type_parameter_count, count = outer_count + function->type_count;
    Word *all = arena_allocate(checker->arena, count * sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = i < outer_count ? outer[i] : function->type_parameters[i - outer_count];
    checker->type_parameters = all;
    checker->type_parameter_count = count;
    check_body(checker, function, PLACE_FUNCTION);
    checker->type_parameters = outer;
    checker->type_parameter_count = outer_count;
}

// The first declaration of that kind and name in the current scope, or NULL.
static const Binding *declared_first(Checker *checker, const Word *name, BindingKind kind) {
    const Entry *entry = symbol_top(checker, name);
    for (; entry && entry->scope == checker->scope; entry = entry->outer)
        if (entry->binding->kind == kind) return entry->binding;
    return NULL;
}

static void declare_struct(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_STRUCT);
    const Word *name = &node->as.structure.name;
    const Binding *first = declared_first(checker, name, BINDING_STRUCT);
    if (first) report_twice(checker, "struct", name, &first->word);
    Binding *binding = binding_new(checker, BINDING_STRUCT, name);
    binding->declaration = node;
    node->as.structure.binding = binding;
    scope_add(checker, name, binding);
}

void check_struct(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_STRUCT);
    FunctionNode *frame = arena_allocate(checker->arena, sizeof *frame);
    node->as.structure.frame = frame;
    checker->type_parameters = node->as.structure.type_parameters;
    checker->type_parameter_count = node->as.structure.type_count;
    FrameState state = frame_enter(checker, frame, PLACE_FUNCTION);
    for (size_t i = 0; i < node->as.structure.field_count; i++) {
        const Word *field = &node->as.structure.fields[i];
        for (size_t j = 0; j < i; j++)
            if (strcmp(field->text, node->as.structure.fields[j].text) == 0)
                report_twice(checker, "field", field, &node->as.structure.fields[j]);
        check_type(checker, node->as.structure.types[i], NULL);
        check_expression(checker, node->as.structure.fallbacks[i]);
    }
    frame_leave(checker, &state);
    checker->type_parameter_count = 0;
}

// `impl<T> Box<T>`: words among the type arguments that are not types are its parameters.
void impl_parameters(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_IMPL);
    size_t count = node->as.impl.type_count;
    Word *names = arena_allocate(checker->arena, count * sizeof *names);
    checker->type_parameters = names;
    checker->type_parameter_count = 0;
    for (size_t i = 0; i < count; i++)
        if (node->as.impl.type_arguments[i]->kind == TYPE_NAMED)
            names[checker->type_parameter_count++] = node->as.impl.type_arguments[i]->name;
}

static void check_drop(Checker *checker, const Node *node) {
    ASSERT(node->kind == NODE_IMPL);
    for (size_t i = 0; i < node->as.impl.function_count; i++) {
        const FunctionNode *function = node->as.impl.functions[i]->as.function;
        if (strcmp(function->name.text, "drop") == 0 && function->parameter_count == 1) return;
    }
    ReportExtra extra = {.help = "impl Drop for Name { fn drop(self) { ... } }"};
    report(checker, STATUS_TYPE, node->span, &extra, "an impl of Drop needs `fn drop(self)`");
}

static void check_impl(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_IMPL);
    const Word *trait = &node->as.impl.trait;
    if (trait->text && strcmp(trait->text, "Drop") != 0)
        report(checker, STATUS_NAME, trait->span, NULL, "unknown trait `%s`: the only one is Drop",
               trait->text);
    else if (trait->text)
        check_drop(checker, node);
    impl_parameters(checker, node);
    for (size_t i = 0; i < node->as.impl.function_count; i++) {
        FunctionNode *function = node->as.impl.functions[i]->as.function;
        for (size_t j = 0; j < i; j++) {
            const FunctionNode *other = node->as.impl.functions[j]->as.function;
            if (strcmp(function->name.text, other->name.text) == 0)
                report_twice(checker, "method", &function->name, &other->name);
        }
        check_function(checker, function);
    }
    checker->type_parameter_count = 0;
}

// A name like `forward` is everybody's: what is about a model is told by its argument.
static bool hides_builtin(const Word *name) {
    const Builtin *row = catalog_find(name->text, name->length);
    return row && !(row->signature.count > 0 && row->signature.params[0].kind == PARAM_MODEL);
}

static void declare_function(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_FUNCTION);
    FunctionNode *function = node->as.function;
    const Binding *first = declared_first(checker, &function->name, BINDING_FUNCTION);
    if (first) report_twice(checker, "function", &function->name, &first->word);
    if (hides_builtin(&function->name))
        report_note(checker, function->name.span, NULL,
                    "this function is called instead of the builtin `%s`", function->name.text);
    function->binding = binding_new(checker, BINDING_FUNCTION, &function->name);
    function->binding->declaration = node;
    scope_add(checker, &function->name, function->binding);
}

static void declare_pending(Checker *checker, const Word *word, Node *declaration) {
    const Entry *entry = symbol_top(checker, word);
    for (; entry && entry->scope == checker->scope; entry = entry->outer) {
        if (binding_is_variable(entry->binding)) return;
        if (entry->binding->kind == BINDING_RELATION)
            report_twice(checker, "name", word, &entry->binding->word);
    }
    Binding *binding = scope_declare_new(checker, BINDING_GLOBAL, word);
    binding->declaration = declaration;
    scope_set_pending(checker, binding);
}

static void declare_pattern(Checker *checker, const Pattern *pattern, Node *declaration) {
    ASSERT(pattern->part_count == 0 || pattern->parts != NULL);
    if (pattern->kind == PATTERN_BIND) declare_pending(checker, &pattern->name, declaration);
    for (size_t i = 0; i < pattern->part_count; i++)
        declare_pattern(checker, pattern->parts[i], declaration);
}

static void declare_module(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_IMPORT);
    if (!node->as.import.alias.text) return;
    Binding *binding = binding_new(checker, BINDING_MODULE, &node->as.import.alias);
    binding->program = node->as.import.program;
    scope_add(checker, &node->as.import.alias, binding);
}

static void declare_main(Checker *checker, const Node *node, const Node **first) {
    ASSERT(node->kind == NODE_MAIN);
    if (!*first) {
        *first = node;
        return;
    }
    ReportExtra extra = {.note = "the first is here", .note_span = (*first)->span};
    report(checker, STATUS_NAME, node->span, &extra, "a file has at most one main");
}

void declare_top(Checker *checker) {
    NodeList *statements = &checker->program->top->as.block.statements;
    const Node *first_main = NULL;
    for (size_t i = 0; i < statements->count; i++) {
        Node *node = statements->items[i];
        switch (node->kind) {
        case NODE_FUNCTION: declare_function(checker, node); break;
        case NODE_STRUCT: declare_struct(checker, node); break;
        case NODE_IMPORT: declare_module(checker, node); break;
        case NODE_MAIN: declare_main(checker, node, &first_main); break;
        case NODE_LET: declare_pattern(checker, node->as.let.pattern, node); break;
        case NODE_PROGRAM: declare_pending(checker, &node->as.program->name, node); break;
        case NODE_TENSOR_DECLARATION: declare_pending(checker, &node->as.tensor.name, node); break;
        default: break;
        }
    }
    logic_declare(checker);
}

static void declare_target(Checker *checker, Node *target) {
    if (target->kind == NODE_TUPLE) {
        for (size_t i = 0; i < target->as.list.count; i++)
            declare_target(checker, target->as.list.items[i]);
    } else if (target->kind == NODE_NAME) {
        const Entry *entry = symbol_top(checker, &target->as.name.word);
        for (; entry; entry = entry->outer)
            if (binding_is_variable(entry->binding)) return;
        declare_pending(checker, &target->as.name.word, target);
    }
}

void declare_assigned(Checker *checker) {
    NodeList *statements = &checker->program->top->as.block.statements;
    for (size_t i = 0; i < statements->count; i++) {
        Node *node = statements->items[i];
        if (node->kind != NODE_ASSIGN) continue;
        Node *target = node->as.assign.target;
        if (target->kind == NODE_INDEX && equation_begins(checker, node)) {
            if (!logic_names_relation(checker, target->as.index.object))
                declare_target(checker, target->as.index.object);
        } else if (node->op == OPERATOR_NONE)
            declare_target(checker, target);
    }
}

// Functions run when called, so their bodies see every variable of the top level.
static void check_deferred(Checker *checker, Node *node) {
    switch (node->kind) {
    case NODE_FUNCTION: check_function(checker, node->as.function); break;
    case NODE_IMPL: check_impl(checker, node); break;
    case NODE_MAIN:
    case NODE_TEST:
    case NODE_BENCH: check_body(checker, node->as.section.function, PLACE_SECTION); break;
    default: break;
    }
}

static bool is_deferred(NodeKind kind) {
    return kind == NODE_FUNCTION || kind == NODE_IMPL || kind == NODE_MAIN || kind == NODE_TEST ||
           kind == NODE_BENCH;
}

void check_top(Checker *checker) {
    NodeList *statements = &checker->program->top->as.block.statements;
    ASSERT(checker->scope == checker->top);
    checker->place = PLACE_TOP;
    for (size_t i = 0; i < statements->count; i++) {
        Node *node = statements->items[i];
        if (!is_deferred(node->kind) && node->kind != NODE_IMPORT) {
            if (i + 1 < statements->count) warn_lost(checker, node);
            check_statement(checker, node);
        }
    }
    for (size_t i = 0; i < statements->count; i++) check_deferred(checker, statements->items[i]);
    checker->program->slot_count = checker->slot_max;
}
