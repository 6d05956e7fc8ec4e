// Parses and checks a text and collects the places of its names.
#include "lsp/analysis.h"

#include <stdlib.h>

#include "parser/walk.h"

static void add(Analysis *analysis, Span span, Binding *binding, bool member) {
    if (span.begin == 0 || span.end <= span.begin) return;
    VECTOR_PUSH(&analysis->occurrences, ((Occurrence){span, binding, member}));
}

static bool is_variable(const Binding *binding) {
    return binding->kind == BINDING_LOCAL || binding->kind == BINDING_GLOBAL;
}

static bool holds_function(const Binding *binding) {
    const Node *node = binding->declaration;
    if (!node) return false;
    return node->kind == NODE_FUNCTION || (node->kind == NODE_LET && node->as.let.value &&
                                           node->as.let.value->kind == NODE_LAMBDA);
}

// What a name in call position means as far as the text tells: a variable that was not given a
// function is passed over when something else has the name.
static Binding *called_binding(const Node *name) {
    ASSERT(name->kind == NODE_NAME);
    Binding *binding = name->as.name.binding;
    const Candidate *next = name->as.name.otherwise;
    for (; binding && next && is_variable(binding) && !holds_function(binding); next = next->next)
        binding = next->binding;
    return binding;
}

static void add_import(Analysis *analysis, const Node *node) {
    add(analysis, node->as.import.alias.span, NULL, false);
}

static void add_struct(Analysis *analysis, const Node *node) {
    ASSERT(node->kind == NODE_STRUCT);
    const Word *owner = &node->as.structure.name;
    add(analysis, owner->span, node->as.structure.binding, false);
    for (size_t i = 0; i < node->as.structure.field_count; i++) {
        const Word *field = &node->as.structure.fields[i];
        add(analysis, field->span, NULL, true);
        Member member = {.name = field, .owner = owner, .type = node->as.structure.types[i]};
        VECTOR_PUSH(&analysis->members, member);
    }
}

static void add_impl(Analysis *analysis, const Node *node) {
    ASSERT(node->kind == NODE_IMPL);
    add(analysis, node->as.impl.name.span, node->as.impl.binding, false);
    for (size_t i = 0; i < node->as.impl.function_count; i++) {
        const FunctionNode *method = node->as.impl.functions[i]->as.function;
        Member member = {.name = &method->name, .owner = &node->as.impl.name, .method = method};
        VECTOR_PUSH(&analysis->members, member);
    }
}

static void add_literal(Analysis *analysis, const Node *node) {
    ASSERT(node->kind == NODE_STRUCT_LITERAL);
    add(analysis, node->as.struct_literal.type.span, node->as.struct_literal.binding, false);
    for (size_t i = 0; i < node->as.struct_literal.count; i++)
        add(analysis, node->as.struct_literal.names[i].span, NULL, true);
}

static void add_atom(Analysis *analysis, const AtomNode *atom) {
    if (atom->call) add(analysis, atom->call->as.call.callee->span, atom->binding, false);
}

static void add_clause(Analysis *analysis, const Clause *clause) {
    add_atom(analysis, &clause->atom);
    for (size_t i = 0; i < clause->goal_count; i++) add_atom(analysis, &clause->goals[i].atom);
}

static void visit_node(void *context, Node *node) {
    Analysis *analysis = context;
    switch (node->kind) {
    case NODE_NAME: add(analysis, node->as.name.word.span, node->as.name.binding, false); break;
    case NODE_CALL: {
        Node *callee = node->as.call.callee;
        if (callee->kind == NODE_NAME) callee->as.name.binding = called_binding(callee);
        break;
    }
    case NODE_METHOD_CALL: {
        Binding *binding = node->as.method.member;
        if (!binding && node->as.method.function) binding = node->as.method.function->binding;
        add(analysis, node->as.method.name.span, binding, !node->as.method.member);
        break;
    }
    case NODE_FIELD:
        add(analysis, node->as.field.name.span, node->as.field.member, !node->as.field.member);
        break;
    case NODE_PATH:
        add(analysis, node->as.path.type.span, node->as.path.binding, false);
        add(analysis, node->as.path.name.span, NULL, true);
        break;
    case NODE_STRUCT_LITERAL: add_literal(analysis, node); break;
    case NODE_TENSOR_DECLARATION:
        add(analysis, node->as.tensor.name.span, node->as.tensor.binding, false);
        break;
    case NODE_PROGRAM:
        add(analysis, node->as.program->name.span, node->as.program->binding, false);
        break;
    case NODE_TRY:
        add(analysis, node->as.attempt.name.span, node->as.attempt.binding, false);
        break;
    case NODE_STRUCT: add_struct(analysis, node); break;
    case NODE_IMPL: add_impl(analysis, node); break;
    case NODE_IMPORT: add_import(analysis, node); break;
    case NODE_ENTITY:
        add(analysis, node->as.entity.name.span, node->as.entity.binding, false);
        break;
    case NODE_RELATION:
        add(analysis, node->as.relation.name.span, node->as.relation.binding, false);
        break;
    case NODE_FACT:
    case NODE_DRAWN:
    case NODE_RULE:
    case NODE_RETRACT: add_clause(analysis, node->as.clause); break;
    case NODE_QUERY: add_clause(analysis, node->as.query.clause); break;
    default: break;
    }
}

static void visit_function(void *context, FunctionNode *function) {
    Analysis *analysis = context;
    for (size_t i = 0; i < function->parameter_count; i++)
        add(analysis, function->parameters[i].name.span, function->parameters[i].binding, false);
}

static void visit_declared_function(void *context, Node *node) {
    Analysis *analysis = context;
    if (node->kind == NODE_FUNCTION) {
        FunctionNode *function = node->as.function;
        add(analysis, function->name.span, function->binding, !function->binding);
    }
    visit_node(context, node);
}

static void visit_pattern(void *context, Pattern *pattern) {
    if (pattern->kind == PATTERN_BIND || pattern->kind == PATTERN_STRUCT)
        add(context, pattern->name.span, pattern->binding, false);
    for (size_t i = 0; pattern->kind == PATTERN_STRUCT && i < pattern->part_count; i++) {
        Span field = pattern->fields[i].span;
        // `Point { x }` binds x by the field's own name: one place, the variable's.
        if (pattern->parts[i]->span.begin != field.begin) add(context, field, NULL, true);
    }
}

static void visit_type(void *context, TypeNode *type) {
    if (type->binding) add(context, type->name.span, type->binding, false);
    for (size_t i = 0; i < type->dimension_count; i++) {
        const Dimension *dimension = &type->dimensions[i];
        Binding *binding = dimension->binding ? dimension->binding : dimension->variable;
        if (dimension->kind == DIMENSION_NAME) add(context, dimension->name.span, binding, false);
    }
}

static int compare_places(const void *a, const void *b) {
    const Occurrence *left = a, *right = b;
    if (left->span.begin != right->span.begin) return left->span.begin < right->span.begin ? -1 : 1;
    return (left->binding == NULL) - (right->binding == NULL);
}

// The alias of an import has no binding of its own in the tree: it is found by its uses.
static void bind_aliases(Analysis *analysis) {
    Occurrence *items = analysis->occurrences.items;
    for (size_t i = 0; i < analysis->occurrences.count; i++) {
        Binding *binding = items[i].binding;
        if (!binding || binding->kind != BINDING_MODULE) continue;
        SourcePos alias = binding->word.span.begin;
        size_t low = 0, high = i;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (items[middle].span.begin < alias)
                low = middle + 1;
            else
                high = middle;
        }
        if (items[low].span.begin == alias) items[low].binding = binding;
    }
}

// One occurrence a place: the first, which has a binding when any has.
static void order_occurrences(Analysis *analysis) {
    size_t count = 0;
    Occurrence *items = analysis->occurrences.items;
    if (analysis->occurrences.count > 0)
        qsort(items, analysis->occurrences.count, sizeof *items, compare_places);
    for (size_t i = 0; i < analysis->occurrences.count; i++)
        if (count == 0 || items[count - 1].span.begin != items[i].span.begin)
            items[count++] = items[i];
    analysis->occurrences.count = count;
    bind_aliases(analysis);
}

Analysis *analysis_new_beside(const char *path, const char *text, size_t length) {
    ASSERT(text != NULL || length == 0);
    const SourceFile *file;
    if (source_add(path, text, length, &file) != STATUS_OK) return NULL;
    Analysis *analysis = memory_allocate_zeroed(1, sizeof *analysis);
    analysis->file = file;
    analysis->program = parse_program(file, &analysis->diagnostics);
    // A text with syntax errors is checked for its names only: what is missing makes others
    // unknown.
    DiagnosticList ignored = {0};
    bool whole = analysis->diagnostics.error_count == 0;
    check_program_fully(analysis->program, whole ? &analysis->diagnostics : &ignored);
    diagnostic_list_free(&ignored);
    Walker walker = {.context = analysis,
                     .node = visit_declared_function,
                     .function = visit_function,
                     .pattern = visit_pattern,
                     .type = visit_type};
    walk_node(&walker, analysis->program->top);
    for (size_t i = 0; i < analysis->program->imported.count; i++)
        walk_node(&walker, analysis->program->imported.items[i]->top);
    order_occurrences(analysis);
    return analysis;
}

Analysis *analysis_new(const char *path, const char *text, size_t length) {
    source_reset();
    return analysis_new_beside(path, text, length);
}

void analysis_free(Analysis *analysis) {
    if (!analysis) return;
    VECTOR_FREE(&analysis->occurrences);
    VECTOR_FREE(&analysis->members);
    diagnostic_list_free(&analysis->diagnostics);
    program_free(analysis->program);
    free(analysis);
}

const Occurrence *analysis_at(const Analysis *analysis, size_t offset) {
    SourcePos at = analysis->file->base + (SourcePos)offset;
    ASSERT(offset <= analysis->file->length);
    const Occurrence *touched = NULL;
    for (size_t i = 0; i < analysis->occurrences.count; i++) {
        const Occurrence *occurrence = &analysis->occurrences.items[i];
        if (!analysis_has(analysis, occurrence->span.begin)) continue;
        if (at >= occurrence->span.begin && at < occurrence->span.end) return occurrence;
        if (at == occurrence->span.end) touched = occurrence;
    }
    return touched;
}
