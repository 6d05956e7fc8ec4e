// Assignment: to names, to tuples of targets, and through chains of fields and indexes. A chain is
// evaluated once, from left to right; then the innermost tensor is replaced where it is held.
#include <stdlib.h>

#include "eval/access.h"
#include "eval/annotations.h"
#include "eval/code.h"
#include "eval/handle_tensor.h"
#include "eval/parameter.h"
#include "eval/structs.h"
#include "eval/subscripts.h"
#include "tensor/gradient/tape.h"
#include "value/convert.h"
#include "value/items.h"
#include "value/object.h"
#include "value/print.h"

typedef struct TargetCode {
    const VariableCode *variable; // the name at the root; NULL: any other expression
    const Code *root;
    StepCode *steps;
    int step_count, subscript_count;  // subscripts of all steps together
    const struct TargetCode *members; // of a tuple
    int member_count;
    const Annotation *awaits; // converts the first value of the variable; NULL: none is declared
    bool parameter;           // the variable is declared as learnable
    const char *name;
    Span span;
} TargetCode;

typedef struct AssignCode {
    Code head;
    Operator op;
    TargetCode target;
    const Code *value, *read; // read: the variable, for `x += e` and for assignments with a value
    bool give_value;
} AssignCode;

static void lower_chain(Lowering *lowering, const Node *node, TargetCode *out) {
    const Node *root = node;
    for (; root->kind == NODE_FIELD || root->kind == NODE_INDEX; out->step_count++) {
        if (root->kind == NODE_FIELD && root->as.field.member) break;
        root = root->kind == NODE_FIELD ? root->as.field.object : root->as.index.object;
    }
    ASSERT(out->step_count >= 0);
    out->steps = lower_array(lowering, (size_t)out->step_count, sizeof *out->steps);
    for (int i = out->step_count - 1; i >= 0; i--) {
        lower_step(lowering, node, &out->steps[i]);
        out->subscript_count += out->steps[i].count;
        node = node->kind == NODE_FIELD ? node->as.field.object : node->as.index.object;
    }
    Binding *binding = root->kind == NODE_NAME    ? root->as.name.binding
                       : root->kind == NODE_FIELD ? root->as.field.member
                                                  : NULL;
    bool variable = binding && (binding->kind == BINDING_GLOBAL || binding->kind == BINDING_LOCAL);
    if (variable)
        out->variable = lower_variable(lowering, binding, root->span);
    else
        out->root = lower(lowering, root);
}

static void lower_target(Lowering *lowering, const Node *node, TargetCode *out) {
    out->span = node->span;
    if (node->kind != NODE_TUPLE) {
        lower_chain(lowering, node, out);
        if (node->kind != NODE_NAME) return;
        out->awaits = lower_annotation(lowering, node->as.name.awaits);
        out->parameter = node->as.name.parameter;
        out->name = lower_word(lowering, &node->as.name.word);
        return;
    }
    out->member_count = (int)node->as.list.count;
    TargetCode *members = lower_array(lowering, node->as.list.count, sizeof *members);
    for (int i = 0; i < out->member_count; i++)
        lower_target(lowering, node->as.list.items[i], &members[i]);
    out->members = members;
}

// The evaluated part of a chain: the subscripts of each step, and where the root lies.
typedef struct Chain {
    const TargetCode *code;
    SubscriptValue *subscripts;
    Value *root, temporary;
    Value value; // what is assigned
} Chain;

static Value chain_eval(Frame *frame, Chain *chain) {
    int done = 0;
    Value value = value_none();
    if (chain->code->root) {
        chain->temporary = EVAL(frame, chain->code->root);
        if (failed(chain->temporary)) return chain->temporary;
    }
    for (int i = 0; i < chain->code->step_count && !failed(value); i++) {
        value = subscripts_eval(frame, &chain->code->steps[i], &chain->subscripts[done]);
        if (!failed(value)) done += chain->code->steps[i].count;
    }
    if (!failed(value)) {
        // Only now: evaluating a subscript may have assigned the variable.
        chain->root =
            chain->code->root ? &chain->temporary : variable_place(frame, chain->code->variable);
        if (chain->root) return value;
    }
    subscripts_release(chain->subscripts, done);
    value_release(chain->temporary);
    return value_fail();
}

static void chain_release(Chain *chain) {
    subscripts_release(chain->subscripts, chain->code->subscript_count);
    value_release(chain->temporary);
}

// Where a walk along a chain stands.
typedef struct Walk {
    Chain *chain;
    int step;
    SubscriptValue *subscripts; // of the step
} Walk;

static const StepCode *walk_step(const Walk *walk) {
    return &walk->chain->code->steps[walk->step];
}

static Walk walk_next(const Walk *walk) {
    return (Walk){walk->chain, walk->step + 1, walk->subscripts + walk_step(walk)->count};
}

static bool walk_is_last(const Walk *walk) {
    return walk->step + 1 == walk->chain->code->step_count;
}

static Value step_read(Value object, const Walk *walk) {
    const StepCode *step = walk_step(walk);
    if (step->name) return value_field(object, step->name, step->name_length);
    return value_index(object, walk->subscripts, step->count);
}

static Status assign_through(Value *place, const Walk *walk, Value value);

// What is stored in a tensor; *converted is to be released.
static Status stored_input(Value value, OpInput *out, Tensor **converted) {
    Scalar scalar;
    *converted = NULL;
    if (value_is_plain_number(value)) {
        TRY(value_to_scalar(value, "the value", &scalar));
        *out = op_scalar(scalar);
    } else {
        TRY(value_to_tensor(value, "the value", converted));
        *out = op_tensor(*converted);
    }
    return STATUS_OK;
}

static Status tensor_set(Value *place, const Walk *walk, Value value) {
    const StepCode *step = walk_step(walk);
    IndexItem items[INDEX_ITEMS_MAX];
    OpInput input;
    Tensor *converted;
    if (step->name)
        return fail(STATUS_TYPE, "the field `%s` of a tensor cannot be assigned", step->name);
    TRY(stored_input(value, &input, &converted));
    Status status = index_items(walk->subscripts, step->count, items);
    if (status == STATUS_OK) {
        bool unique = place->as.tensor->counted.refs == 1;
        status = place->as.tensor->learnable
                     ? index_set_parameter(place->as.tensor, items, step->count, input)
                     : index_set(&place->as.tensor, items, step->count, input, unique);
        index_items_release(walk->subscripts, items, step->count);
    }
    tensor_release(converted);
    return status;
}

// x[i][j] = v on a tensor: the part x[i] is changed and put back.
static Status part_assign(Value *place, const Walk *walk, Value value) {
    ASSERT(place->kind == VALUE_TENSOR);
    if (walk_is_last(walk)) return tensor_set(place, walk, value);
    SCOPED_VALUE(part) = step_read(*place, walk);
    if (failed(part)) return error_current()->code;
    Walk next = walk_next(walk);
    TRY(assign_through(&part, &next, value));
    return tensor_set(place, walk, part);
}

static Status tensor_assign(Value *place, const Walk *walk, Value value) {
    ASSERT(place->kind == VALUE_TENSOR);
    if (!place->as.tensor->learnable) return part_assign(place, walk, value);
    TRY(parameter_prepare_write(place->as.tensor, &walk->chain->value));
    bool recording = tape_set_enabled(false);
    Status status = part_assign(place, walk, walk->chain->value);
    tape_set_enabled(recording);
    return status;
}

// Puts a value (retained here) into a place, or goes on through it.
static Status place_assign(Value *place, const Walk *walk, Value value) {
    if (!walk_is_last(walk)) {
        Walk next = walk_next(walk);
        return assign_through(place, &next, value);
    }
    Value old = *place;
    *place = value_retain(value);
    value_release(old);
    return STATUS_OK;
}

// A field declared as learnable holds one parameter: numbers are set, and only another parameter
// takes its place, so that two fields can share one.
static bool sets_parameter(const Instance *instance, int field, Value value) {
    ASSERT(field >= 0 && (size_t)field < instance->type->field_count);
    return struct_field_learns(instance->type, field) &&
           value_is_parameter(instance->fields[field]) && value.kind != VALUE_NONE &&
           !value_is_parameter(value);
}

static Status struct_assign(Instance *instance, const Walk *walk, Value value) {
    const StepCode *step = walk_step(walk);
    if (!step->name) return fail_no_index((Value){.kind = VALUE_STRUCT, .as.instance = instance});
    int field = struct_find_field(instance->type, step->name, step->name_length);
    if (field < 0) {
        struct_fail_field(instance->type, step->name);
        return error_current()->code;
    }
    if (!walk_is_last(walk)) return place_assign(&instance->fields[field], walk, value);
    if (sets_parameter(instance, field, value))
        return parameter_write(instance->fields[field].as.tensor, &walk->chain->value, step->name);
    Value stored = struct_convert_field(instance->type, field, value_retain(value));
    if (failed(stored)) return error_current()->code;
    Value old = instance->fields[field];
    instance->fields[field] = stored;
    value_release(old);
    return STATUS_OK;
}

static Status list_assign(List *list, const Walk *walk, Value value) {
    const StepCode *step = walk_step(walk);
    Value index = value_absent();
    char *end;
    bool slice = !step->name && step->count == 1 &&
                 (walk->subscripts->kind == SUBSCRIPT_SLICE ||
                  (walk->subscripts->kind == SUBSCRIPT_INDEX &&
                   walk->subscripts->index.kind == VALUE_RANGE));
    if (slice && walk_is_last(walk)) return list_assign_slice(list, walk->subscripts, value);
    if (step->name)
        index = value_int(strtoll(step->name, &end, 10));
    else if (step->count == 1 && walk->subscripts->kind == SUBSCRIPT_INDEX)
        index = walk->subscripts->index;
    if (step->name && *end) return fail(STATUS_NAME, "a list has no field `%s`", step->name);
    bool many = index.kind == VALUE_RANGE || index.kind == VALUE_LIST ||
                (index.kind == VALUE_TENSOR && tensor_rank(index.as.tensor) > 0);
    if (index.kind == VALUE_ABSENT || many)
        return fail(STATUS_TYPE,
                    "an element of a list is assigned by an int, a part of it by a slice");
    size_t position;
    TRY(sequence_position(index, list->count, "list", &position));
    return place_assign(&list->items[position], walk, value);
}

// A tensor in a dictionary is taken out while it is changed, so that it is held once.
static Status dict_assign_through(Dict *dict, Value key, const Walk *walk, Value value) {
    Value item = dict_get(dict, key);
    if (item.kind == VALUE_ABSENT) return dict_fail_missing(dict, key, NULL);
    Value held = value_retain(item);
    Walk next = walk_next(walk);
    if (held.kind != VALUE_TENSOR) {
        Status status = assign_through(&held, &next, value);
        value_release(held);
        return status;
    }
    dict_set(dict, key, value_none());
    Status status = assign_through(&held, &next, value);
    dict_set(dict, key, held);
    return status;
}

static Status dict_assign(Dict *dict, const Walk *walk, Value value) {
    const StepCode *step = walk_step(walk);
    Value key;
    if (step->name)
        key = value_string(step->name, step->name_length);
    else if (step->count == 1 && walk->subscripts->kind == SUBSCRIPT_INDEX)
        key = walk->subscripts->index;
    else
        return fail(STATUS_KEY, "a dictionary takes one key");
    TRY(value_to_key(key, &key));
    if (!walk_is_last(walk)) return dict_assign_through(dict, key, walk, value);
    dict_set(dict, key, value_retain(value));
    return STATUS_OK;
}

static Status handle_set(Handle *handle, const Walk *walk, Value value) {
    OpInput input;
    SCOPED_TENSOR(converted);
    TRY(stored_input(value, &input, &converted));
    return handle_tensor_set(handle, walk->subscripts, walk_step(walk)->count, input);
}

// A tensor that only the expression holds would be changed and lost.
static Status check_held(Value value) {
    if (value.kind != VALUE_TENSOR || value.as.tensor->learnable) return STATUS_OK;
    fail(STATUS_TYPE, "no variable or container holds the tensor that is assigned to");
    return fail_help("give it a name, as in let t = ...; then t[i] = v");
}

static Status handle_assign(Value object, const Walk *walk, Value value) {
    bool tensor = !walk_step(walk)->name && value_is_handle_tensor(object);
    if (walk_is_last(walk) && tensor) return handle_set(object.as.handle, walk, value);
    if (walk_is_last(walk))
        return fail(STATUS_TYPE, "parts of a %s cannot be assigned", value_kind_name(object));
    SCOPED_VALUE(part) = step_read(object, walk);
    if (failed(part)) return error_current()->code;
    Walk next = walk_next(walk);
    Status status = tensor ? STATUS_OK : check_held(part);
    if (status == STATUS_OK) status = assign_through(&part, &next, value);
    if (status == STATUS_OK && tensor) status = handle_set(object.as.handle, walk, part);
    return status;
}

// Assigns through the walk's step of *place. The value is borrowed.
static Status assign_through(Value *place, const Walk *walk, Value value) {
    switch (place->kind) {
    case VALUE_TENSOR: return tensor_assign(place, walk, value);
    case VALUE_STRUCT: return struct_assign(place->as.instance, walk, value);
    case VALUE_LIST: return list_assign(place->as.list, walk, value);
    case VALUE_DICT: return dict_assign(place->as.dict, walk, value);
    case VALUE_HANDLE: return handle_assign(*place, walk, value);
    case VALUE_TUPLE:
        if (!walk_is_last(walk)) return list_assign(place->as.list, walk, value);
        return fail(STATUS_TYPE, "a tuple cannot be changed; make a new one");
    case VALUE_STRING: return fail(STATUS_TYPE, "a string cannot be changed; make a new one");
    case VALUE_RANGE: return fail(STATUS_TYPE, "a range cannot be changed; make a new one");
    default:
        if (walk_step(walk)->name)
            return fail(STATUS_TYPE, "%s has no field `%s`", value_text(*place).text,
                        walk_step(walk)->name);
        return fail_no_index(*place);
    }
}

// What is there, and what kind of value holds it.
static Value chain_read(Chain *chain, ValueKind *holder) {
    Value value = value_retain(*chain->root);
    Walk walk = {chain, 0, chain->subscripts};
    for (int i = 0; i < chain->code->step_count && !failed(value); i++) {
        Value next = step_read(value, &walk);
        *holder = (ValueKind)value.kind;
        value_release(value);
        value = next;
        if (!walk_is_last(&walk)) walk = walk_next(&walk);
    }
    return value;
}

// Whether storing a list where it is cannot fail: it would have grown already.
static bool can_grow_in(ValueKind holder) {
    return holder == VALUE_LIST || holder == VALUE_DICT || holder == VALUE_STRUCT;
}

// What is assigned: the value itself, or for `+=` what the operator makes of it. Takes the value.
static Value chain_combine(Frame *frame, const AssignCode *assign, Chain *chain, Value value) {
    if (assign->op == OPERATOR_NONE) return value;
    ValueKind holder = VALUE_NONE;
    Value old = chain_read(chain, &holder);
    if (failed(old)) {
        value_release(value);
        return old;
    }
    bool list = assign->op == OPERATOR_ADD && old.kind == VALUE_LIST && can_grow_in(holder);
    if (list && list_extend_own(old.as.list, value)) {
        value_release(value);
        return old;
    }
    Operands operands = {
        .left = old, .right = value, .right_code = assign->value, .span = assign->head.span};
    return operator_apply(frame, assign->op, &operands);
}

// Takes the value.
static Value assign_chain(Frame *frame, const AssignCode *assign, const TargetCode *target,
                          Value value) {
    SubscriptValue subscripts[target->subscript_count + 1];
    Chain chain = {.code = target, .subscripts = subscripts, .temporary = value_none()};
    Value outcome = chain_eval(frame, &chain);
    if (failed(outcome)) {
        value_release(value);
        return outcome;
    }
    origin_current.at = assign->head.span.begin;
    chain.value = chain_combine(frame, assign, &chain, value);
    Walk walk = {&chain, 0, subscripts};
    Status status = failed(chain.value) ? error_current()->code : check_held(chain.temporary);
    if (status == STATUS_OK) status = assign_through(chain.root, &walk, chain.value);
    if (status != STATUS_OK) error_place(target->span);
    value_release(chain.value);
    chain_release(&chain);
    return status == STATUS_OK ? value_none() : value_fail();
}

static Value assign_target(Frame *frame, const AssignCode *assign, const TargetCode *target,
                           Value value);

static Value assign_members(Frame *frame, const AssignCode *assign, const TargetCode *target,
                            Value value) {
    ASSERT(target->member_count > 0);
    bool sequence = value.kind == VALUE_TUPLE || value.kind == VALUE_LIST;
    SCOPED_VALUE(items) = sequence ? value_retain(value) : value_to_items(value, "the value");
    value_release(value);
    if (failed(items)) return fail_at(assign->value->span);
    Value outcome = value_none();
    if (items.as.list->count != (size_t)target->member_count) {
        fail(STATUS_VALUE, "%d targets cannot take %zu values", target->member_count,
             items.as.list->count);
        outcome = fail_at(target->span);
    }
    bool own = items.as.list->counted.refs == 1; // then a member is held by nobody else
    for (int i = 0; i < target->member_count && !failed(outcome); i++) {
        Value *item = &items.as.list->items[i], member = own ? *item : value_retain(*item);
        if (own) *item = value_none();
        outcome = assign_target(frame, assign, &target->members[i], member);
    }
    return outcome;
}

// w = e and w += e on a name declared as learnable: its parameter takes the numbers over. Takes the
// value.
static Value assign_parameter(Frame *frame, const AssignCode *assign, const TargetCode *target,
                              Value value) {
    ASSERT(target->parameter);
    const Value *place = variable_peek(frame, target->variable);
    Value held = place ? value_retain(*place) : value_absent();
    if (assign->op != OPERATOR_NONE && !place) {
        value_release(value);
        return fail_unset(target->name, target->span);
    }
    Operands operands = {
        .left = held, .right = value, .right_code = assign->value, .span = assign->head.span};
    if (assign->op != OPERATOR_NONE) {
        value_retain(held);
        value = operator_apply(frame, assign->op, &operands);
    }
    bool sets = !failed(value) && value_is_parameter(held);
    if (sets && parameter_write(held.as.tensor, &value, target->name) != STATUS_OK) {
        value_release(value);
        value = fail_at(assign->head.span);
    }
    value_release(held);
    if (failed(value)) return value;
    if (sets)
        value_release(value);
    else
        variable_set(frame, target->variable, value);
    return value_none();
}

// Takes the value.
static Value assign_target(Frame *frame, const AssignCode *assign, const TargetCode *target,
                           Value value) {
    if (target->member_count > 0) return assign_members(frame, assign, target, value);
    if (target->step_count > 0) return assign_chain(frame, assign, target, value);
    if (target->parameter) return assign_parameter(frame, assign, target, value);
    if (target->awaits && !variable_peek(frame, target->variable)) {
        value = annotation_convert(frame, target->awaits, value, target->name);
        if (failed(value)) return fail_at(assign->head.span);
    }
    variable_set(frame, target->variable, value);
    return value_none();
}

Value assign_evaluated(Frame *frame, const Code *code, Value value) {
    const AssignCode *assign = (const AssignCode *)code;
    return assign_target(frame, assign, &assign->target, value);
}

static Value eval_assign(Frame *frame, const Code *code) {
    Value value = EVAL(frame, ((const AssignCode *)code)->value);
    return failed(value) ? value : assign_evaluated(frame, code, value);
}

// x = e in a function's last place: the value is the function's too.
static Value eval_assign_value(Frame *frame, const Code *code) {
    Value outcome = eval_assign(frame, code);
    return failed(outcome) ? outcome : EVAL(frame, ((const AssignCode *)code)->read);
}

static const Code *lower_compound_name(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_ASSIGN && node->op != OPERATOR_NONE);
    Binding *binding = node->as.assign.target->as.name.binding;
    const Code *read = lower_binding(lowering, binding, node->as.assign.target->span);
    const Code *value = lower(lowering, node->as.assign.value);
    const Code *combined = lower_scalar_binary(lowering, node->op, read, value, node->span);
    return lower_store(lowering, binding, combined, node->span);
}

const Code *lower_assign(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_ASSIGN);
    const Node *target = node->as.assign.target;
    bool name = target->kind == NODE_NAME, give_value = node->as.assign.result;
    bool parameter = name && target->as.name.parameter;
    if (name && node->op != OPERATOR_NONE && !parameter) return lower_compound_name(lowering, node);
    if (name && !give_value && !target->as.name.awaits && !parameter)
        return lower_store(lowering, target->as.name.binding,
                           lower(lowering, node->as.assign.value), node->span);
    AssignCode *code =
        LOWER_NEW(lowering, AssignCode, give_value ? eval_assign_value : eval_assign, node->span);
    code->op = node->op;
    code->value = lower(lowering, node->as.assign.value);
    lower_target(lowering, target, &code->target);
    if (give_value) code->read = lower_name(lowering, target);
    const Code *quick =
        give_value ? NULL : lower_place_store(lowering, node, code->value, &code->head);
    return quick ? quick : &code->head;
}
