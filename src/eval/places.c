// x[i] and x.name read and assigned where they lie: an element of a list, a dictionary's item, a
// struct's field. Everything else (slices, tensors, errors) goes the ways of subscripts.c and
// assign.c.
#include "eval/places.h"
#include "eval/formula.h"
#include "eval/subscripts.h"

// An index, alone in its brackets.
typedef struct At {
    const Code *code; // NULL: there are several, or a slice
    bool local;       // a plain local variable,
    size_t offset;    // in this slot
} At;

typedef struct IndexCode {
    Code head;
    const Code *object;
    StepCode step;
    Place place; // of the object
    At at;
    FieldMemory memory;
} IndexCode;

// The index is evaluated before its object is looked at, which it cannot change: it is arithmetic
// at most. In a slot it is not held.
static inline Value at_eval(Frame *frame, const At *at) {
    return at->local ? *slot_at(frame, at->offset) : EVAL(frame, at->code);
}

static bool is_simple(const Code *code) {
    return variable_find_of(code) || code_is_arithmetic(code);
}

static At at_of(const StepCode *step) {
    At at = {0};
    int slot;
    if (step->name || step->count != 1 || step->subscripts[0].kind != SUBSCRIPT_INDEX) return at;
    at.code = step->subscripts[0].index;
    at.local = code_is_local(at.code, &slot);
    if (at.local) at.offset = slot_offset(slot);
    return at;
}

// A new reference, or ABSENT.
static inline Value element_read(const Value *object, Value at) {
    if (LIKELY(value_is_sequence(*object) && at.kind == VALUE_INT)) {
        const Value *item = list_find(object->as.list, at.as.integer);
        return item ? value_retain(*item) : value_absent();
    }
    if (object->kind == VALUE_DICT && (at.kind == VALUE_STRING || at.kind == VALUE_INT))
        return value_retain(dict_get(object->as.dict, at));
    if (object->kind == VALUE_STRING && at.kind == VALUE_INT) {
        const String *string = object->as.string;
        if (at.as.integer >= 0 && at.as.integer < string_length(string))
            return string_slice(string, at.as.integer, 1);
    }
    return value_absent();
}

// Takes the object and the index.
static Value element_general(const IndexCode *index, Value object, Value at) {
    SubscriptValue subscript = {SUBSCRIPT_INDEX, at, value_absent(), value_absent(),
                                value_absent()};
    origin_current.at = index->head.span.begin;
    Value result = value_index(object, &subscript, 1);
    if (failed(result)) error_place(index->head.span);
    value_release(at);
    value_release(object);
    return result;
}

static Value eval_place_element(Frame *frame, const Code *code) {
    const IndexCode *index = (const IndexCode *)code;
    Value at = at_eval(frame, &index->at);
    Value item = element_read(place_find(frame, &index->place), at);
    if (LIKELY(item.kind != VALUE_ABSENT)) return item;
    if (index->at.local) at = EVAL(frame, index->at.code);
    if (failed(at)) return at;
    Value object = EVAL(frame, index->object);
    if (!failed(object)) return element_general(index, object, at);
    value_release(at);
    return object;
}

static const Value *find_element(Frame *frame, const Code *code) {
    const IndexCode *index = (const IndexCode *)code;
    Value at = *slot_at(frame, index->at.offset);
    const Value *object = place_find(frame, &index->place);
    if (!value_is_sequence(*object) || at.kind != VALUE_INT) return &place_absent;
    const Value *item = list_find(object->as.list, at.as.integer);
    return item ? item : &place_absent;
}

static Value eval_element(Frame *frame, const Code *code) {
    const IndexCode *index = (const IndexCode *)code;
    Value object = EVAL(frame, index->object);
    if (failed(object)) return object;
    Value at = EVAL(frame, index->at.code);
    if (failed(at)) {
        value_release(object);
        return at;
    }
    Value item = element_read(&object, at);
    if (item.kind == VALUE_ABSENT) return element_general(index, object, at);
    value_release(at);
    value_release(object);
    return item;
}

// Several subscripts, or a slice.
static Value eval_subscripts(Frame *frame, const Code *code) {
    const IndexCode *index = (const IndexCode *)code;
    SubscriptValue subscripts[index->step.count + 1];
    SCOPED_VALUE(object) = EVAL(frame, index->object);
    if (failed(object)) return object;
    Value result = subscripts_eval(frame, &index->step, subscripts);
    if (failed(result)) return result;
    origin_current.at = code->span.begin;
    result = value_index(object, subscripts, index->step.count);
    if (failed(result)) error_place(code->span);
    subscripts_release(subscripts, index->step.count);
    return result;
}

const Code *lower_index(Lowering *lowering, const Node *node) {
    IndexCode *code = LOWER_NEW(lowering, IndexCode, eval_subscripts, node->span);
    code->object = lower(lowering, node->as.index.object);
    lower_step(lowering, node, &code->step);
    code->place = place_of(code->object);
    code->at = at_of(&code->step);
    if (code->at.code)
        code->head.eval =
            code->place.exists && is_simple(code->at.code) ? eval_place_element : eval_element;
    return &code->head;
}

// --- fields

static int field_search(FieldMemory *memory, const StructType *type, const StepCode *step) {
    int index = struct_find_field(type, step->name, step->name_length);
    if (index >= 0) *memory = (FieldMemory){type->id, index};
    return index;
}

// The field's index, or -1.
static inline int field_find(FieldMemory *memory, const StructType *type, const StepCode *step) {
    return LIKELY(type->id == memory->type && type->id) ? memory->index
                                                        : field_search(memory, type, step);
}

static const Value *find_member(Frame *frame, const Code *code) {
    IndexCode *field = (IndexCode *)(uintptr_t)code;
    const Value *object = place_find(frame, &field->place);
    if (object->kind != VALUE_STRUCT) return &place_absent;
    const Instance *instance = object->as.instance;
    int index = field_find(&field->memory, instance->type, &field->step);
    return index < 0 ? &place_absent : &instance->fields[index];
}

static Value eval_member(Frame *frame, const Code *code) {
    IndexCode *field = (IndexCode *)(uintptr_t)code;
    SCOPED_VALUE(object) = EVAL(frame, field->object);
    if (failed(object)) return object;
    if (object.kind == VALUE_STRUCT) {
        const Instance *instance = object.as.instance;
        int index = field_find(&field->memory, instance->type, &field->step);
        if (index >= 0 && instance->fields[index].kind != VALUE_ABSENT)
            return value_retain(instance->fields[index]);
    }
    origin_current.at = code->span.begin;
    Value result = value_field(object, field->step.name, field->step.name_length);
    if (failed(result)) error_place(code->span);
    return result;
}

static Value eval_place_member(Frame *frame, const Code *code) {
    const Value *value = find_member(frame, code);
    return LIKELY(value->kind != VALUE_ABSENT) ? value_retain(*value) : eval_member(frame, code);
}

const Code *lower_field(Lowering *lowering, const Node *node) {
    if (node->as.field.member) return lower_binding(lowering, node->as.field.member, node->span);
    IndexCode *code = LOWER_NEW(lowering, IndexCode, eval_member, node->span);
    code->object = lower(lowering, node->as.field.object);
    lower_step(lowering, node, &code->step);
    code->place = place_of(code->object);
    if (code->place.exists) code->head.eval = eval_place_member;
    return &code->head;
}

bool place_parts(const Code *code, PlaceParts *out) {
    const IndexCode *index = (const IndexCode *)code;
    bool field = code->eval == eval_place_member || code->eval == eval_member;
    if (!field && code->eval != eval_place_element && code->eval != eval_element) return false;
    *out = (PlaceParts){index->object, index->at.code, field ? &index->memory : NULL};
    return true;
}

Place place_of(const Code *code) {
    int slot;
    Place place = {.code = code, .find = variable_find_of(code)};
    place.local = code_is_local(code, &slot);
    if (place.local) place.offset = slot_offset(slot);
    if (code->eval == eval_place_member) place.find = find_member;
    if (code->eval == eval_place_element && ((const IndexCode *)code)->at.local)
        place.find = find_element;
    place.exists = place.find != NULL;
    return place;
}

// --- assignments

typedef struct StoreCode {
    Code head;
    Operator op;
    const Code *value, *general;
    StepCode step;
    Place container;
    At at;
    FieldMemory *memory; // that of the code which reads the target
    Value constant;      // what list[local] = constant stores
    const Code *next;    // what that goes on to, or NULL
} StoreCode;

// Apart, because a value whose address is taken is no longer kept in registers.
static __attribute__((noinline)) bool place_combine(Operator op, Value *place, Value value) {
    return scalar_combine(op, place, &value, place);
}

// Puts the value (taken) into *place, or for `+=` what it makes with what is there; false: the
// general way has to.
static inline bool place_put(Operator op, Value *place, Value value) {
    if (op != OPERATOR_NONE) return place_combine(op, place, value);
    Value old = *place;
    *place = value;
    value_release(old);
    return true;
}

static inline bool element_put(const StoreCode *store, const Value *container, Value at,
                               Value value) {
    if (LIKELY(container->kind == VALUE_LIST && at.kind == VALUE_INT)) {
        Value *place = list_find(container->as.list, at.as.integer);
        return place && place_put(store->op, place, value);
    }
    if (container->kind != VALUE_DICT || (at.kind != VALUE_INT && at.kind != VALUE_STRING))
        return false;
    if (store->op == OPERATOR_NONE) {
        dict_set(container->as.dict, at, value);
        return true;
    }
    Value *place = dict_find(container->as.dict, at);
    return place && place_put(store->op, place, value);
}

static Value eval_put_element(Frame *frame, const Code *code) {
    const StoreCode *store = (const StoreCode *)code;
    Value value = EVAL(frame, store->value);
    if (failed(value)) return value;
    Value at = at_eval(frame, &store->at);
    if (failed(at)) {
        value_release(value);
        return at;
    }
    if (LIKELY(element_put(store, place_find(frame, &store->container), at, value)))
        return value_none();
    if (!store->at.local) value_release(at);
    return assign_evaluated(frame, store->general, value);
}

// list[local] = constant, where the list is a local too.
static Value eval_put_constant(Frame *frame, const Code *code) {
    const StoreCode *store = (const StoreCode *)code;
    const Value *list = slot_at(frame, store->container.offset);
    const Value *at = slot_at(frame, store->at.offset);
    if (LIKELY(list->kind == VALUE_LIST && at->kind == VALUE_INT)) {
        Value *place = list_find(list->as.list, at->as.integer);
        if (LIKELY(place && !value_is_counted(*place))) {
            *place = store->constant;
            return code_go_on(frame, store->next);
        }
    }
    Value outcome = eval_put_element(frame, code);
    return failed(outcome) ? outcome : code_go_on(frame, store->next);
}

bool place_store_follow(const Code *store, const Code *next) {
    if (store->eval != eval_put_constant) return false;
    ((StoreCode *)(uintptr_t)store)->next = next;
    return true;
}

static bool puts_constant(const StoreCode *store, Value *constant) {
    return store->op == OPERATOR_NONE && store->container.local && store->at.local &&
           code_constant(store->value, constant) && !value_is_counted(*constant);
}

// Puts a value of the kind that the field holds already: then there is nothing to convert.
static inline bool member_put(Operator op, Value *place, Value value) {
    if (place->kind != value.kind || value.kind > VALUE_STRING) return false;
    if (op != OPERATOR_NONE) return value.kind >= VALUE_INT && place_combine(op, place, value);
    place->as = value.as;
    return true;
}

static Value eval_put_member(Frame *frame, const Code *code) {
    const StoreCode *store = (const StoreCode *)code;
    Value value = EVAL(frame, store->value);
    if (failed(value)) return value;
    const Value *container = place_find(frame, &store->container);
    if (LIKELY(container->kind == VALUE_STRUCT)) {
        Instance *instance = container->as.instance;
        int index = field_find(store->memory, instance->type, &store->step);
        if (index >= 0 && member_put(store->op, &instance->fields[index], value))
            return value_none();
    }
    return assign_evaluated(frame, store->general, value);
}

// What can be lowered once more without making anything anew: names, fields and elements of them,
// arithmetic of those.
static bool is_plain(const Node *node) {
    switch (node->kind) {
    case NODE_NAME:
    case NODE_INT:
    case NODE_STRING: return true;
    case NODE_FIELD: return is_plain(node->as.field.object);
    case NODE_BINARY: return is_plain(node->as.binary.left) && is_plain(node->as.binary.right);
    case NODE_INDEX:
        return node->as.index.count == 1 && node->as.index.subscripts[0].kind == SUBSCRIPT_INDEX &&
               is_plain(node->as.index.object) && is_plain(node->as.index.subscripts[0].index);
    default: return false;
    }
}

const Code *lower_place_store(Lowering *lowering, const Node *node, const Code *value,
                              const Code *general) {
    const Node *target = node->as.assign.target;
    bool field = target->kind == NODE_FIELD;
    if ((!field && target->kind != NODE_INDEX) || !is_plain(target)) return NULL;
    if (field && target->as.field.member) return NULL;
    const Node *object = field ? target->as.field.object : target->as.index.object;
    Place container = place_of(lower(lowering, object));
    if (!container.exists) return NULL;
    StoreCode *code =
        LOWER_NEW(lowering, StoreCode, field ? eval_put_member : eval_put_element, node->span);
    code->op = node->op;
    code->general = general;
    code->value = value;
    code->container = container;
    lower_step(lowering, target, &code->step);
    code->at = at_of(&code->step);
    if (!field && (!code->at.code || !is_simple(code->at.code))) return NULL;
    if (!field && puts_constant(code, &code->constant)) {
        code->head.eval = eval_put_constant;
        return &code->head;
    }
    const Code *read = lower(lowering, target);
    code->memory = &((IndexCode *)(uintptr_t)read)->memory;
    return lower_formula_store(lowering, node->op, read, value, &code->head);
}
