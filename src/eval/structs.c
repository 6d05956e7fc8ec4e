// Structs: their types, literals, methods, and drop.
#include "eval/structs.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/diagnostic.h"
#include "base/output.h"
#include "eval/annotations.h"
#include "eval/declared.h"
#include "eval/invoke.h"
#include "eval/methods.h"

void struct_renew(StructCode *code) {
    code->type.id = ++runtime_current->evaluation->types_made;
}

StructCode *struct_of_binding(Lowering *lowering, Binding *binding) {
    if (binding->lowered) return binding->lowered;
    const Node *node = binding->declaration;
    StructCode *code = heap_allocate_rooted(sizeof *code);
    size_t count = node->as.structure.field_count;
    const char **names = lower_array(lowering, count, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = lower_word(lowering, &node->as.structure.fields[i]);
    code->type = (StructType){.name = lower_word(lowering, &node->as.structure.name),
                              .field_count = count,
                              .field_names = names,
                              .definition = code};
    code->fields = lower_array(lowering, count, sizeof *code->fields);
    code->fallback_slots = node->as.structure.frame->slot_count;
    struct_renew(code);
    binding->lowered = code;
    interp_keep_rooted(lowering->interp, code);
    return code;
}

// Which type parameter of the struct a field's annotation names: T, or the dtype in T[2, ?].
static int parameter_of(const Node *structure, const TypeNode *type) {
    for (size_t i = 0; type && i < structure->as.structure.type_count; i++)
        if (type->name.text &&
            strcmp(structure->as.structure.type_parameters[i].text, type->name.text) == 0)
            return (int)i;
    return -1;
}

static void lower_fields(Lowering *lowering, const Node *node) {
    StructCode *code = struct_of_binding(lowering, node->as.structure.binding);
    Lowering inner = *lowering;
    inner.function = node->as.structure.frame;
    inner.code = NULL;
    for (size_t i = 0; i < code->type.field_count; i++) {
        const TypeNode *type = node->as.structure.types[i];
        code->fields[i].type = lower_annotation(&inner, type);
        code->fields[i].what =
            lower_text(lowering, "field %s of %s", code->type.field_names[i], code->type.name);
        code->fields[i].learnable = type && type->learnable;
        code->fields[i].parameter = parameter_of(node, type);
        code->fields[i].fallback = lower(&inner, node->as.structure.fallbacks[i]);
    }
}

static void define_impl(Lowering *lowering, const Node *node) {
    StructCode *code = struct_of_binding(lowering, node->as.impl.binding);
    for (size_t i = 0; i < code->method_count; i++) {
        MethodCode *method = &code->methods[i];
        if (!method->function->body) lower_function_body(lowering, method->function, method->node);
    }
}

void lower_types_declare(Lowering *lowering, const NodeList *statements) {
    for (size_t i = 0; i < statements->count; i++) {
        const Node *node = statements->items[i];
        if (node->kind == NODE_STRUCT) struct_of_binding(lowering, node->as.structure.binding);
        if (node->kind == NODE_IMPL) struct_add_impl(lowering, node);
    }
}

void lower_types_define(Lowering *lowering, const NodeList *statements) {
    for (size_t i = 0; i < statements->count; i++) {
        const Node *node = statements->items[i];
        if (node->kind == NODE_STRUCT) lower_fields(lowering, node);
        if (node->kind == NODE_IMPL) define_impl(lowering, node);
    }
}

Value struct_fail_field(const StructType *type, const char *name) {
    fail(STATUS_NAME, "struct %s has no field `%s`", type->name, name);
    SCOPED_TEXT(help);
    catalog_fields_help(name, type->field_names, type->field_count, &help);
    fail_help("%s", text_get(&help));
    return value_fail();
}

bool struct_field_learns(const StructType *type, int field) {
    const StructCode *code = type->definition;
    return code && code->fields[field].learnable;
}

Value struct_convert_field(const StructType *type, int field, Value value) {
    const StructCode *code = type->definition;
    if (!code || !code->fields[field].type || annotation_is_met(code->fields[field].type, value))
        return value;
    Frame frame = {0};
    const FieldCode *target = &code->fields[field];
    value = annotation_convert(&frame, target->type, value, target->what);
    bool parameter = target->learnable && value.kind == VALUE_TENSOR;
    return parameter ? tensor_make_parameter(value) : value;
}

typedef struct LiteralCode {
    Code head;
    const StructCode *structure;
    int *fields; // of each value
    const Code **values;
    size_t count;
} LiteralCode;

static Value field_default(Frame *frame, const StructCode *structure, size_t field) {
    const Code *fallback = structure->fields[field].fallback;
    if (!fallback) {
        fail(STATUS_VALUE, "field `%s` of %s is missing", structure->type.field_names[field],
             structure->type.name);
        return value_fail();
    }
    Value slots[structure->fallback_slots + 1];
    for (int i = 0; i < structure->fallback_slots; i++) slots[i] = value_absent();
    Frame inner = {.slots = slots, .interp = frame->interp};
    return EVAL(&inner, fallback);
}

// Puts the value (taken) into the field.
static bool set_field(Instance *instance, int field, Value value) {
    if (!failed(value)) value = struct_convert_field(instance->type, field, value);
    if (failed(value)) return false;
    instance->fields[field] = value;
    return true;
}

static bool fill_fields(Frame *frame, const LiteralCode *literal, Instance *instance) {
    for (size_t i = 0; i < literal->count; i++) {
        bool set = set_field(instance, literal->fields[i], EVAL(frame, literal->values[i]));
        if (set) continue;
        if (frame->control == CONTROL_NONE) error_place(literal->values[i]->span);
        return false;
    }
    for (size_t i = 0; i < instance->type->field_count; i++) {
        if (instance->fields[i].kind != VALUE_ABSENT) continue;
        Value value = field_default(frame, literal->structure, i);
        if (!set_field(instance, (int)i, value)) {
            error_place(literal->head.span);
            return false;
        }
    }
    return true;
}

static Value eval_literal(Frame *frame, const Code *code) {
    const LiteralCode *literal = (const LiteralCode *)code;
    Value value = value_struct(&literal->structure->type);
    origin_current.at = code->span.begin;
    if (fill_fields(frame, literal, value.as.instance)) return value;
    value.as.instance->dropped = true; // it never came to be, so it has nothing to drop
    value_release(value);
    return value_fail();
}

const Code *lower_struct_literal(Lowering *lowering, const Node *node) {
    LiteralCode *code = LOWER_NEW(lowering, LiteralCode, eval_literal, node->span);
    code->structure = struct_of_binding(lowering, node->as.struct_literal.binding);
    code->count = node->as.struct_literal.count;
    code->values = lower_array(lowering, code->count, sizeof *code->values);
    code->fields = lower_array(lowering, code->count, sizeof *code->fields);
    for (size_t i = 0; i < code->count; i++) {
        const Word *name = &node->as.struct_literal.names[i];
        code->values[i] = lower(lowering, node->as.struct_literal.values[i]);
        code->fields[i] = struct_find_field(&code->structure->type, name->text, name->length);
    }
    return &code->head;
}

static void report_drop_error(const Instance *instance) {
    Diagnostic diagnostic = diagnostic_from_error(error_current());
    SCOPED_TEXT(note);
    SCOPED_TEXT(text);
    text_format(&note, "in drop of %s: %s", instance->type->name, diagnostic.message);
    diagnostic.message = text_get(&note);
    diagnostic_render(&text, &diagnostic, diagnostic_color());
    output_flush();
    fputs(text_get(&text), output_errors());
}

void struct_drop(Instance *instance) {
    const StructCode *code = instance->type->definition;
    Interp *interp = interp_running();
    if (!code || !code->drop || !interp) return;
    // Drops run while an error or an interrupt unwinds: neither may stop or be lost to them.
    Failure *failure = failure_set_aside(interp);
    int interrupted = atomic_exchange(&interp->runtime->interrupts, 0);
    bool exiting = interp->exit_requested;
    interp->exit_requested = false;
    Value self = {.kind = VALUE_STRUCT, .as.instance = instance};
    Value result = function_invoke(interp, code->drop, NULL, &self, 1);
    if (failed(result) && !interp->exit_requested) report_drop_error(instance);
    if (!failed(result)) value_release(result);
    if (interp->exit_requested && !exiting) interrupted |= INTERRUPT_EXIT;
    if (interrupted) runtime_interrupt(interp->runtime, interrupted);
    interp->exit_requested |= exiting;
    failure_restore(interp, failure);
}
