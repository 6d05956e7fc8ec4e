// Variables: slots of the frame, globals, and cells that closures share. And the other things a
// name can mean: functions, structs, builtins, dtypes.
#include "eval/code.h"
#include "eval/formula.h"
#include "eval/structs.h"
#include "value/object.h"

typedef struct GlobalCode {
    Code head;
    Value *place;
    const char *name;
} GlobalCode;

typedef struct SlotCode {
    Code head;
    int slot;
    size_t offset;
    const char *name;
} SlotCode;

struct VariableCode {
    enum { VARIABLE_SLOT, VARIABLE_GLOBAL, VARIABLE_CELL_SLOT, VARIABLE_CAPTURE } kind;
    int index;
    Value *global;
    const char *name;
    Span span;
};

Value fail_unset(const char *name, Span span) {
    fail(STATUS_NAME, "`%s` has no value yet", name);
    return fail_at(span);
}

static Value eval_local(Frame *frame, const Code *code) {
    const SlotCode *local = (const SlotCode *)code;
    Value value = *slot_at(frame, local->offset);
    if (UNLIKELY(value.kind == VALUE_ABSENT)) return fail_unset(local->name, code->span);
    return value_retain(value);
}

static Value eval_global(Frame *frame, const Code *code) {
    (void)frame;
    const GlobalCode *global = (const GlobalCode *)code;
    Value value = *global->place;
    if (UNLIKELY(value.kind == VALUE_ABSENT)) return fail_unset(global->name, code->span);
    return value_retain(value);
}

static Value eval_cell_slot(Frame *frame, const Code *code) {
    const SlotCode *local = (const SlotCode *)code;
    Value slot = frame->slots[local->slot];
    if (slot.kind != VALUE_CELL || slot.as.cell->value.kind == VALUE_ABSENT)
        return fail_unset(local->name, code->span);
    return value_retain(slot.as.cell->value);
}

static Value eval_capture(Frame *frame, const Code *code) {
    const SlotCode *capture = (const SlotCode *)code;
    const Cell *cell = frame->closure->cells[capture->slot];
    if (!cell || cell->value.kind == VALUE_ABSENT) return fail_unset(capture->name, code->span);
    return value_retain(cell->value);
}

static Value eval_self(Frame *frame, const Code *code) {
    (void)code;
    frame->closure->counted.refs++;
    return (Value){.kind = VALUE_FUNCTION, .as.function = frame->closure};
}

static bool slot_of(const Code *code, Eval eval, int *slot) {
    if (code->eval != eval) return false;
    *slot = ((const SlotCode *)code)->slot;
    return true;
}

bool code_is_local(const Code *code, int *slot) {
    return slot_of(code, eval_local, slot);
}

OperandCode operand_code(const Code *code) {
    int slot;
    bool local = code_is_local(code, &slot);
    return (OperandCode){code, local ? (ptrdiff_t)slot_offset(slot) : -1};
}

bool code_is_cell(const Code *code, int *slot) {
    return slot_of(code, eval_cell_slot, slot);
}

bool code_is_capture(const Code *code, int *index) {
    return slot_of(code, eval_capture, index);
}

const Value *code_global(const Code *code) {
    return code->eval == eval_global ? ((const GlobalCode *)code)->place : NULL;
}

const Value place_absent = {.kind = VALUE_ABSENT};

static const Value *find_local(Frame *frame, const Code *code) {
    return slot_at(frame, ((const SlotCode *)code)->offset);
}

static const Value *find_global(Frame *frame, const Code *code) {
    (void)frame;
    return ((const GlobalCode *)code)->place;
}

static const Value *find_cell_slot(Frame *frame, const Code *code) {
    const Value *slot = find_local(frame, code);
    return slot->kind == VALUE_CELL ? &slot->as.cell->value : &place_absent;
}

static const Value *find_capture(Frame *frame, const Code *code) {
    const Cell *cell = frame->closure->cells[((const SlotCode *)code)->slot];
    return cell ? &cell->value : &place_absent;
}

PlaceFind variable_find_of(const Code *code) {
    if (code->eval == eval_local) return find_local;
    if (code->eval == eval_global) return find_global;
    if (code->eval == eval_cell_slot) return find_cell_slot;
    return code->eval == eval_capture ? find_capture : NULL;
}

static int capture_index(const FunctionNode *function, const Binding *binding) {
    ASSERT(function->captures.count > 0);
    int index = 0;
    while (function->captures.items[index] != binding) index++;
    return index;
}

static const Code *lower_local(Lowering *lowering, const Binding *binding, Span span) {
    Eval eval = binding->captured ? eval_cell_slot : eval_local;
    int slot = binding->slot;
    if (binding->owner != lowering->function) {
        slot = capture_index(lowering->function, binding);
        bool self = lowering->code && lowering->code->captures[slot].from == CAPTURE_SELF;
        eval = self ? eval_self : eval_capture;
    }
    SlotCode *code = LOWER_NEW(lowering, SlotCode, eval, span);
    code->slot = slot;
    code->offset = slot_offset(slot);
    code->name = lower_word(lowering, &binding->word);
    return &code->head;
}

static Value binding_constant(Lowering *lowering, Binding *binding) {
    switch (binding->kind) {
    case BINDING_FUNCTION: return value_retain(((const FunctionCode *)binding->lowered)->value);
    case BINDING_STRUCT:
        return (Value){.kind = VALUE_TYPE,
                       .as.pointer = &struct_of_binding(lowering, binding)->type};
    case BINDING_RELATION: return value_retain(*(const Value *)binding->lowered);
    case BINDING_BUILTIN: return (Value){.kind = VALUE_BUILTIN, .as.builtin = binding->builtin};
    case BINDING_DTYPE: return (Value){.kind = VALUE_DTYPE, .as.integer = binding->slot};
    case BINDING_CONSTANT: return value_float(binding->constant->number);
    default: return value_none();
    }
}

const Code *lower_binding(Lowering *lowering, Binding *binding, Span span) {
    if (binding->kind == BINDING_LOCAL || binding->kind == BINDING_DIMENSION)
        return lower_local(lowering, binding, span);
    if (binding->kind == BINDING_GLOBAL) {
        GlobalCode *code = LOWER_NEW(lowering, GlobalCode, eval_global, span);
        ASSERT(binding->lowered != NULL);
        code->place = binding->lowered;
        code->name = lower_word(lowering, &binding->word);
        return &code->head;
    }
    return lower_constant(lowering, binding_constant(lowering, binding), span);
}

const Code *lower_name(Lowering *lowering, const Node *node) {
    return lower_binding(lowering, node->as.name.binding, node->span);
}

const VariableCode *lower_variable(Lowering *lowering, Binding *binding, Span span) {
    VariableCode *variable = lower_array(lowering, 1, sizeof *variable);
    variable->name = lower_word(lowering, &binding->word);
    variable->span = span;
    variable->index = binding->slot;
    if (binding->kind == BINDING_GLOBAL) {
        variable->kind = VARIABLE_GLOBAL;
        variable->global = binding->lowered;
    } else if (binding->owner != lowering->function) {
        variable->kind = VARIABLE_CAPTURE;
        variable->index = capture_index(lowering->function, binding);
    } else {
        variable->kind = binding->captured ? VARIABLE_CELL_SLOT : VARIABLE_SLOT;
    }
    return variable;
}

const char *variable_name(const VariableCode *variable) {
    return variable->name;
}

// Where the value lies, or would lie; NULL when a cell has not been made.
static Value *variable_find(Frame *frame, const VariableCode *variable) {
    Value *slot = variable->kind == VARIABLE_GLOBAL ? variable->global : NULL;
    if (variable->kind == VARIABLE_SLOT) slot = &frame->slots[variable->index];
    if (variable->kind == VARIABLE_CELL_SLOT) {
        Value cell = frame->slots[variable->index];
        slot = cell.kind == VALUE_CELL ? &cell.as.cell->value : NULL;
    }
    if (variable->kind == VARIABLE_CAPTURE) {
        Cell *cell = frame->closure->cells[variable->index];
        slot = cell ? &cell->value : NULL;
    }
    return slot;
}

Value *variable_place(Frame *frame, const VariableCode *variable) {
    Value *place = variable_find(frame, variable);
    if (place && place->kind != VALUE_ABSENT) return place;
    fail_unset(variable->name, variable->span);
    return NULL;
}

const Value *variable_peek(Frame *frame, const VariableCode *variable) {
    const Value *place = variable_find(frame, variable);
    return place && place->kind != VALUE_ABSENT ? place : NULL;
}

void variable_set(Frame *frame, const VariableCode *variable, Value value) {
    Value *place = variable_find(frame, variable);
    if (!place) { // no cell yet: the slot may hold what another variable of the same place had
        value_release(frame->slots[variable->index]);
        frame->slots[variable->index] = value_cell(value);
        return;
    }
    Value old = *place;
    *place = value;
    value_release(old);
}

typedef struct StoreCode {
    Code head;
    const Code *value;
    const VariableCode *variable;
    int slot;
    const Code *next; // what it goes on to, or NULL
} StoreCode;

static Value eval_store_slot(Frame *frame, const Code *code) {
    const StoreCode *store = (const StoreCode *)code;
    Value value = EVAL(frame, store->value);
    if (failed(value)) return value;
    Value old = frame->slots[store->slot];
    frame->slots[store->slot] = value;
    value_release(old);
    return code_go_on(frame, store->next);
}

// A variable that a closure shares.
static Value eval_store_capture(Frame *frame, const Code *code) {
    const StoreCode *store = (const StoreCode *)code;
    Value value = EVAL(frame, store->value);
    if (failed(value)) return value;
    Cell *cell = frame->closure->cells[store->variable->index];
    if (UNLIKELY(!cell)) {
        variable_set(frame, store->variable, value);
        return code_go_on(frame, store->next);
    }
    Value old = cell->value;
    cell->value = value;
    value_release(old);
    return code_go_on(frame, store->next);
}

static Value eval_store(Frame *frame, const Code *code) {
    const StoreCode *store = (const StoreCode *)code;
    Value value = EVAL(frame, store->value);
    if (failed(value)) return value;
    variable_set(frame, store->variable, value);
    return code_go_on(frame, store->next);
}

bool variable_store_follow(const Code *store, const Code *next) {
    if (store->eval != eval_store_slot && store->eval != eval_store_capture &&
        store->eval != eval_store)
        return false;
    ((StoreCode *)(uintptr_t)store)->next = next;
    return true;
}

static const Code *lower_store_general(Lowering *lowering, Binding *binding, const Code *value,
                                       Span span) {
    const VariableCode *variable = lower_variable(lowering, binding, span);
    if (variable->kind == VARIABLE_SLOT || variable->kind == VARIABLE_GLOBAL) {
        const Code *scalar = lower_scalar_store(lowering, binding->slot, variable->global, value);
        if (scalar) return scalar;
    }
    Eval eval = variable->kind == VARIABLE_SLOT      ? eval_store_slot
                : variable->kind == VARIABLE_CAPTURE ? eval_store_capture
                                                     : eval_store;
    StoreCode *code = LOWER_NEW(lowering, StoreCode, eval, span);
    code->value = value;
    code->variable = variable;
    code->slot = binding->slot;
    return &code->head;
}

const Code *lower_store(Lowering *lowering, Binding *binding, const Code *value, Span span) {
    const Code *general = lower_store_general(lowering, binding, value, span);
    const Code *target = lower_binding(lowering, binding, span);
    return lower_formula_store(lowering, OPERATOR_NONE, target, value, general);
}
