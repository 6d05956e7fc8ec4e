// Call expressions: f(a, b: c), x.f(a), Type::f(a), closures.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "catalog/foreign.h"
#include "eval/access.h"
#include "eval/code.h"
#include "eval/invoke.h"
#include "eval/methods.h"
#include "eval/structs.h"
#include "eval/upper.h"
#include "tensor/op.h"
#include "value/object.h"
#include "value/print.h"

static const Code *lower_path_call(Lowering *lowering, const Node *node);

// The arguments as written: positional ones first.
typedef struct ArgumentsCode {
    const Code **values;
    OperandCode *operands; // the same
    const char **names;
    size_t count, positional;
    bool first_is_literal;
    Span span; // of the call
} ArgumentsCode;

typedef struct CallCode {
    Code head;
    ArgumentsCode arguments;
    const FunctionCode *function; // known: a function of the program
    const Builtin *row;           // known: a builtin
    OperandCode *candidates;      // else: what the callee may be, nearest first
    size_t candidate_count;
    const Code *receiver; // of methods
    const char *name;
    size_t name_length;
    const char *known_kind;           // of the receiver for which the method was last looked up
    const Builtin *known_row;         // and what was found
    uint64_t known_type;              // of the struct for which one was looked up last, 0: none yet
    const FunctionCode *known_method; // NULL: it has none
    DType dtype;                      // f32::zeros: of what is made
} CallCode;

// "text" and "text" + "more", as print's formats are written.
static bool is_string_literal(const Node *node) {
    while (node->kind == NODE_BINARY && node->op == OPERATOR_ADD) {
        if (node->as.binary.right->kind != NODE_STRING) return false;
        node = node->as.binary.left;
    }
    return node->kind == NODE_STRING;
}

static void lower_call_arguments(Lowering *lowering, const Argument *arguments, size_t count,
                                 ArgumentsCode *out) {
    ASSERT(count == 0 || arguments != NULL);
    out->count = count;
    out->values = lower_array(lowering, count, sizeof *out->values);
    while (out->positional < count && !arguments[out->positional].name.text) out->positional++;
    out->names = lower_array(lowering, count + 1, sizeof *out->names);
    out->operands = lower_array(lowering, count, sizeof *out->operands);
    for (size_t i = 0; i < count; i++) {
        out->values[i] = lower(lowering, arguments[i].value);
        out->operands[i] = operand_code(out->values[i]);
        if (i >= out->positional)
            out->names[i - out->positional] = lower_word(lowering, &arguments[i].name);
    }
    out->first_is_literal = out->positional > 0 && is_string_literal(arguments[0].value);
}

// Evaluates the arguments into values; VALUE_FAIL with none left.
static inline Value eval_arguments(Frame *frame, const ArgumentsCode *code, Value *values) {
    for (size_t i = 0; i < code->count; i++) {
        values[i] = EVAL(frame, code->values[i]);
        if (failed(values[i])) {
            arguments_release(values, i);
            return value_fail();
        }
    }
    return value_none();
}

static CallArguments arguments_of(const ArgumentsCode *code, Value *values) {
    return (CallArguments){.values = values,
                           .count = code->count,
                           .positional = code->positional,
                           .names = code->names,
                           .first_is_literal = code->first_is_literal,
                           .codes = code->values,
                           .span = code->span};
}

// Whether every argument, `before` others in front of them, has its parameter by position.
static inline bool is_complete(const CallCode *call, const FunctionCode *function, size_t before) {
    const ArgumentsCode *arguments = &call->arguments;
    return arguments->positional == arguments->count &&
           arguments->count + before == (size_t)function->parameter_count;
}

static __attribute__((noinline)) Value
fail_call_depth(const CallCode *call, const FunctionCode *function, Value receiver) {
    value_release(receiver);
    fail_depth(function);
    return fail_at(call->head.span);
}

static __attribute__((noinline)) Value fail_arguments(Value *slots, const Value *failure) {
    arguments_release(slots, (size_t)(failure - slots));
    return value_fail();
}

// A function of the program with every argument by position: straight into its slots. `receiver`
// (taken) is the first where it is not ABSENT.
static inline __attribute__((always_inline)) Value call_direct(Frame *frame, const CallCode *call,
                                                               const FunctionCode *function,
                                                               Function *closure, Value receiver) {
    if (stack_is_low(frame->interp)) return fail_call_depth(call, function, receiver);
    Value slots[function->room], *next = slots;
    if (receiver.kind != VALUE_ABSENT) *next++ = receiver;
    const OperandCode *operand = call->arguments.operands, *end = operand + call->arguments.count;
    for (; operand < end; operand++, next++) {
        *next = eval_operand(frame, operand);
        if (failed(*next)) return fail_arguments(slots, next);
    }
    for (const Value *past = slots + function->slot_count; next < past; next++)
        *next = value_absent();
    return LIKELY(function->plain)
               ? function_run_plain(frame->interp, function, closure, slots, call->head.span)
               : function_run(frame->interp, function, closure, slots, call->head.span);
}

static Value eval_call_direct(Frame *frame, const Code *code) {
    const CallCode *call = (const CallCode *)code;
    if (UNLIKELY(interp_interrupted(frame->interp))) return interp_fail_interrupted(code->span);
    return call_direct(frame, call, call->function, NULL, value_absent());
}

static Value eval_call_function(Frame *frame, const Code *code) {
    const CallCode *call = (const CallCode *)code;
    Value values[call->arguments.count + 1];
    CHECK_INTERRUPT(code->span);
    Value outcome = eval_arguments(frame, &call->arguments, values);
    if (failed(outcome)) return outcome;
    CallArguments arguments = arguments_of(&call->arguments, values);
    return call_function(frame->interp, call->function, NULL, &arguments);
}

static Value eval_call_builtin(Frame *frame, const Code *code) {
    const CallCode *call = (const CallCode *)code;
    Value values[call->arguments.count + 1];
    Value outcome = eval_arguments(frame, &call->arguments, values);
    if (failed(outcome)) return outcome;
    CallArguments arguments = arguments_of(&call->arguments, values);
    return call_builtin(frame->interp, call->row, &arguments);
}

// len of a query, which gives the number of its answers at once; what has none fails as any other.
static Value eval_call_len(Frame *frame, const Code *code) {
    const CallCode *call = (const CallCode *)code;
    Value value = EVAL(frame, call->arguments.values[0]);
    if (failed(value) || value.kind == VALUE_INT) return value;
    CallArguments arguments = arguments_of(&call->arguments, &value);
    return call_builtin(frame->interp, call->row, &arguments);
}

// The nearest candidate that can be called; a failure when there is none.
static Value choose_callee(Frame *frame, const CallCode *call) {
    Value first = value_absent();
    for (size_t i = 0; i < call->candidate_count; i++) {
        Value callee = eval_operand(frame, &call->candidates[i]);
        bool certain = callee.kind == VALUE_FUNCTION && i == 0;
        if (certain || (failed(callee) && call->candidate_count == 1)) return callee;
        if (failed(callee)) continue;
        if (value_is_callable(callee)) {
            value_release(first);
            return callee;
        }
        if (first.kind == VALUE_ABSENT)
            first = callee;
        else
            value_release(callee);
    }
    if (first.kind != VALUE_ABSENT)
        fail(STATUS_TYPE, "%s is not a function and cannot be called", value_text(first).text);
    value_release(first);
    return fail_at(call->head.span);
}

// Borrows the callee.
static Value call_with_values(Frame *frame, const CallCode *call, Value callee) {
    Value values[call->arguments.count + 1];
    Value outcome = eval_arguments(frame, &call->arguments, values);
    if (failed(outcome)) return outcome;
    CallArguments arguments = arguments_of(&call->arguments, values);
    return call_value(frame->interp, callee, &arguments);
}

static Value eval_call_value(Frame *frame, const Code *code) {
    const CallCode *call = (const CallCode *)code;
    CHECK_INTERRUPT(code->span);
    SCOPED_VALUE(callee) = choose_callee(frame, call);
    if (failed(callee)) return callee;
    const FunctionCode *function = callee.kind == VALUE_FUNCTION ? callee.as.function->code : NULL;
    return function && is_complete(call, function, 0)
               ? call_direct(frame, call, function, callee.as.function, value_absent())
               : call_with_values(frame, call, callee);
}

const Builtin *code_map(const Code *code, const Code **argument) {
    const CallCode *call = (const CallCode *)code;
    if (code->eval != eval_call_builtin || call->row->kind != ROW_OP) return NULL;
    const OpRow *op = &op_rows[call->row->id];
    bool alone = call->row->signature.count == 1 && call->arguments.count == 1 &&
                 call->arguments.positional == 1;
    if (!alone || op->run || op->rule != MAP_RULE_FLOAT) return NULL;
    *argument = call->arguments.values[0];
    return call->row;
}

static OperandCode *lower_candidates(Lowering *lowering, Binding *first, const Candidate *rest,
                                     Span span, size_t *count) {
    *count = first ? 1 : 0;
    for (const Candidate *next = rest; next; next = next->next) ++*count;
    OperandCode *codes = lower_array(lowering, *count, sizeof *codes);
    size_t index = 0;
    if (first) codes[index++] = operand_code(lower_binding(lowering, first, span));
    for (const Candidate *next = rest; next; next = next->next)
        codes[index++] = operand_code(lower_binding(lowering, next->binding, span));
    return codes;
}

// The call of a name whose meaning is certain.
static bool lower_known(CallCode *code, const Binding *binding) {
    if (binding->kind == BINDING_BUILTIN) {
        code->row = binding->builtin;
        code->head.eval = eval_call_builtin;
        return true;
    }
    if (binding->kind != BINDING_FUNCTION) return false;
    const FunctionCode *function = binding->lowered;
    code->function = function;
    code->head.eval = is_complete(code, function, 0) ? eval_call_direct : eval_call_function;
    return true;
}

static bool is_len_of_query(const CallCode *code, const Node *node) {
    return code->row && code->row == catalog_find("len", 3) && node->as.call.count == 1 &&
           code->arguments.positional == 1 && node->as.call.arguments[0].value->kind == NODE_QUERY;
}

const Code *lower_call(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_CALL);
    const Node *callee = node->as.call.callee;
    if (callee->kind == NODE_NAME && strcmp(callee->as.name.word.text, "backward") == 0)
        lowering->steps = true;
    if (callee->kind == NODE_PATH) return lower_path_call(lowering, node);
    CallCode *code = LOWER_NEW(lowering, CallCode, eval_call_value, node->span);
    lower_call_arguments(lowering, node->as.call.arguments, node->as.call.count, &code->arguments);
    code->arguments.span = node->span;
    if (callee->kind == NODE_NAME) {
        bool known = lower_known(code, callee->as.name.binding);
        if (known && is_len_of_query(code, node)) {
            lower_query_counted(code->arguments.values[0]);
            code->head.eval = eval_call_len;
        }
        if (known && code->row && code->row == catalog_find("assert", 6) &&
            code->arguments.positional > 0)
            code->arguments.values[0] = lower_asserted(lowering, node->as.call.arguments[0].value,
                                                       code->arguments.values[0]);
        if (known) return &code->head;
        code->candidates =
            lower_candidates(lowering, callee->as.name.binding, callee->as.name.otherwise,
                             callee->span, &code->candidate_count);
    } else {
        OperandCode *single = lower_array(lowering, 1, sizeof *single);
        single[0] = operand_code(lower(lowering, callee));
        code->candidates = single;
        code->candidate_count = 1;
    }
    return &code->head;
}

// The builtin method of a kind of value. The names of kinds are constants: a pointer identifies
// one.
static const Builtin *find_builtin_method(Value receiver, const CallCode *call) {
    CallCode *known = (CallCode *)(uintptr_t)call;
    const char *kind = value_kind_name(receiver);
    if (kind != known->known_kind) {
        known->known_row = builtin_find_method(receiver, call->name, call->name_length);
        known->known_kind = kind;
    }
    return known->known_row;
}

// As struct_find_method, whose answer is remembered where it holds for every value of the type.
static const FunctionCode *find_struct_method(const Instance *instance, const CallCode *call,
                                              bool *unclear) {
    CallCode *known = (CallCode *)(uintptr_t)call;
    const StructType *type = instance->type;
    *unclear = false;
    if (LIKELY(type->id == known->known_type && type->id)) return known->known_method;
    const FunctionCode *method = struct_find_method(instance, call->name, unclear);
    const StructCode *code = type->definition;
    if (code && !code->specialised) {
        known->known_method = method;
        known->known_type = type->id;
    }
    return method;
}

// A method and its receiver's own meaning of the name; `field` says that it is a field's value.
// Retained; ABSENT when there is none, FAIL when none of several fits.
static Value find_method(Value receiver, const CallCode *call, const FunctionCode **function,
                         bool *field) {
    *function = NULL;
    *field = false;
    if (receiver.kind == VALUE_STRUCT) {
        ASSERT(receiver.kind == VALUE_STRUCT);
        const StructType *type = receiver.as.instance->type;
        bool unclear;
        *function = find_struct_method(receiver.as.instance, call, &unclear);
        if (unclear) return value_fail();
        if (*function) return value_none();
        int place = struct_find_field(type, call->name, call->name_length);
        *field = place >= 0 && value_is_callable(receiver.as.instance->fields[place]);
        return *field ? value_retain(receiver.as.instance->fields[place]) : value_absent();
    }
    const Builtin *row = find_builtin_method(receiver, call);
    if (row) return (Value){.kind = VALUE_BUILTIN, .as.builtin = row};
    if (receiver.kind != VALUE_DICT) return value_absent();
    Value item = dict_get_word(receiver.as.dict, call->name);
    *field = value_is_callable(item);
    return *field ? value_retain(item) : value_absent();
}

static Value find_function(Frame *frame, const CallCode *call) {
    for (size_t i = 0; i < call->candidate_count; i++) {
        Value callee = EVAL(frame, call->candidates[i].code);
        if (failed(callee)) continue;
        if (value_is_callable(callee)) return callee;
        value_release(callee);
    }
    return value_absent();
}

static const char *nearest_method(Value receiver, const char *name) {
    bool structure = receiver.kind == VALUE_STRUCT;
    const StructCode *code = structure ? receiver.as.instance->type->definition : NULL;
    size_t most = structure ? (code ? code->method_count : 0) : catalog_count(), count = 0;
    SCOPED_MEMORY const char **names = memory_allocate((most + 1) * sizeof *names);
    for (size_t i = 0; i < most; i++) {
        names[count] = structure ? code->methods[i].name
                                 : catalog_method_name(catalog_get(i)->signature.name,
                                                       value_kind_name(receiver));
        if (names[count]) count++;
    }
    return catalog_nearest(name, names, count);
}

static void fail_no_method(Value receiver, const CallCode *call) {
    bool structure = receiver.kind == VALUE_STRUCT;
    fail(STATUS_NAME, "%s has no method `%s`",
         structure ? receiver.as.instance->type->name : value_kind_name(receiver), call->name);
    const char *foreign =
        structure ? NULL : foreign_help(FOREIGN_MEMBER, call->name, strlen(call->name));
    const char *near = foreign ? NULL : nearest_method(receiver, call->name);
    if (foreign) fail_help("%s", foreign);
    if (near) fail_help("did you mean `%s`?", near);
}

// values[0] is the receiver (taken with the others).
static Value call_method(Frame *frame, const CallCode *call, Value *values) {
    const FunctionCode *function;
    Value receiver = values[0];
    CallArguments arguments = arguments_of(&call->arguments, values);
    arguments.count++;
    arguments.positional++;
    arguments.first_is_literal = false;
    arguments.receiver = call->receiver;
    bool field;
    Value callee = find_method(receiver, call, &function, &field);
    if (failed(callee)) {
        arguments_release(values, arguments.count);
        return fail_at(call->head.span);
    }
    if (function) return call_function(frame->interp, function, NULL, &arguments);
    if (callee.kind == VALUE_ABSENT) callee = find_function(frame, call);
    if (callee.kind == VALUE_ABSENT) {
        fail_no_method(receiver, call);
        arguments_release(values, arguments.count);
        return fail_at(call->head.span);
    }
    if (field) { // a function in a field is called without its holder
        arguments.receiver = NULL;
        arguments.values++;
        arguments.count--;
        arguments.positional--;
    }
    Value result = call_value(frame->interp, callee, &arguments);
    if (field) value_release(receiver);
    value_release(callee);
    return result;
}

// Point.new(...): a function of the type itself.
static Value call_associated(Frame *frame, const CallCode *call, const StructType *type,
                             Value *values) {
    CallArguments arguments = arguments_of(&call->arguments, values);
    bool unclear;
    const FunctionCode *function = struct_find_function(type, call->name, NULL, &unclear);
    if (function) return call_function(frame->interp, function, NULL, &arguments);
    arguments_release(values, arguments.count);
    if (unclear) return fail_at(call->head.span);
    const StructCode *code = type->definition;
    const char *names[code->method_count + 1];
    for (size_t i = 0; i < code->method_count; i++) names[i] = code->methods[i].name;
    const char *near = catalog_nearest(call->name, names, code->method_count);
    fail(STATUS_NAME, "struct %s has no function `%s`", type->name, call->name);
    if (near) fail_help("did you mean `%s.%s`?", type->name, near);
    return fail_at(call->head.span);
}

// Takes the receiver.
static Value call_on(Frame *frame, const CallCode *call, Value receiver) {
    Value values[call->arguments.count + 2];
    values[0] = receiver;
    Value outcome = eval_arguments(frame, &call->arguments, values + 1);
    if (failed(outcome)) {
        value_release(values[0]);
        return outcome;
    }
    if (values[0].kind == VALUE_TYPE)
        return call_associated(frame, call, values[0].as.pointer, values + 1);
    return call_method(frame, call, values);
}

static Value eval_method(Frame *frame, const Code *code) {
    const CallCode *call = (const CallCode *)code;
    CHECK_INTERRUPT(code->span);
    Value receiver = EVAL(frame, call->receiver);
    if (failed(receiver)) return receiver;
    if (receiver.kind == VALUE_STRUCT) {
        bool unclear;
        const FunctionCode *method = find_struct_method(receiver.as.instance, call, &unclear);
        if (method && is_complete(call, method, 1))
            return call_direct(frame, call, method, NULL, receiver);
        if (unclear) error_clear(); // the general way says it, after the arguments
    }
    return call_on(frame, call, receiver);
}

const Code *lower_method_call(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_METHOD_CALL);
    CallCode *code = LOWER_NEW(lowering, CallCode, eval_method, node->span);
    lower_call_arguments(lowering, node->as.method.arguments, node->as.method.count,
                         &code->arguments);
    code->arguments.span = node->span;
    Binding *member = node->as.method.member;
    if (member) {
        if (lower_known(code, member)) return &code->head;
        code->head.eval = eval_call_value;
        code->candidates =
            lower_candidates(lowering, member, NULL, node->span, &code->candidate_count);
        return &code->head;
    }
    code->receiver = lower(lowering, node->as.method.receiver);
    code->name = lower_word(lowering, &node->as.method.name);
    code->name_length = node->as.method.name.length;
    code->candidates = lower_candidates(lowering, NULL, node->as.method.function, node->span,
                                        &code->candidate_count);
    return &code->head;
}

typedef struct ClosureCode {
    Code head;
    const FunctionCode *function;
} ClosureCode;

// The cell of a variable of this frame; made when the variable has no value yet.
static Cell *frame_cell(Frame *frame, int slot) {
    Value *place = &frame->slots[slot];
    if (place->kind != VALUE_CELL) *place = value_cell(*place);
    place->as.counted->refs++;
    return place->as.cell;
}

static Cell *capture(Frame *frame, CaptureCode capture) {
    if (capture.from == CAPTURE_SLOT) return frame_cell(frame, capture.index);
    ASSERT(frame->closure && (size_t)capture.index < frame->closure->cell_count);
    Cell *cell = frame->closure->cells[capture.index];
    if (cell) {
        cell->counted.refs++;
        return cell;
    }
    // The frame's own function, which does not hold itself.
    Value self = {.kind = VALUE_FUNCTION, .as.function = frame->closure};
    return value_cell(value_retain(self)).as.cell;
}

static Value eval_closure(Frame *frame, const Code *code) {
    const FunctionCode *function = ((const ClosureCode *)code)->function;
    Value value = value_function(function->name, function, (size_t)function->capture_count);
    for (int i = 0; i < function->capture_count; i++)
        if (function->captures[i].from != CAPTURE_SELF)
            value.as.function->cells[i] = capture(frame, function->captures[i]);
    return value;
}

const Code *lower_closure(Lowering *lowering, const FunctionNode *node, Span span) {
    ASSERT(node->body != NULL);
    FunctionCode *function = lower_function(lowering, node);
    lower_function_body(lowering, function, node);
    ClosureCode *code = LOWER_NEW(lowering, ClosureCode, eval_closure, span);
    code->function = function;
    return &code->head;
}

// f32::zeros(...) is zeros(..., dtype: float32).
static Value eval_call_with_dtype(Frame *frame, const Code *code) {
    const CallCode *call = (const CallCode *)code;
    size_t count = call->arguments.count;
    Value values[count + 1];
    Value outcome = eval_arguments(frame, &call->arguments, values);
    if (failed(outcome)) return outcome;
    values[count] = (Value){.kind = VALUE_DTYPE, .as.integer = (int64_t)call->dtype};
    CallArguments arguments = arguments_of(&call->arguments, values);
    arguments.count++;
    arguments.codes = NULL;
    return call_builtin(frame->interp, call->row, &arguments);
}

static Value eval_fail_path(Frame *frame, const Code *code) {
    (void)frame;
    const CallCode *call = (const CallCode *)code;
    fail(STATUS_NAME, "there is no function `%s`", call->name);
    return fail_at(code->span);
}

// Several impls have the function, and nothing says which is meant: `name` is the message.
static Value eval_fail_unclear(Frame *frame, const Code *code) {
    (void)frame;
    fail(STATUS_TYPE, "%s", ((const CallCode *)code)->name);
    fail_help("the types of one of them say which is meant: Name<float32>::function(...)");
    return fail_at(code->span);
}

static const char *path_text(Lowering *lowering, const Node *path) {
    SCOPED_TEXT(text);
    text_format(&text, "%s::%s", path->as.path.type.text, path->as.path.name.text);
    return arena_copy_string(lowering->arena, text_get(&text), text.length);
}

// A method of a struct, a member of a module, or a builtin of a namespace.
static void lower_path_target(Lowering *lowering, CallCode *code, const Node *path) {
    ASSERT(path->kind == NODE_PATH);
    Binding *binding = path->as.path.binding;
    const Word *type = &path->as.path.type, *name = &path->as.path.name;
    code->name = path_text(lowering, path);
    code->head.eval = eval_fail_path;
    if (binding && binding->kind == BINDING_STRUCT) {
        const StructCode *structure = struct_of_binding(lowering, binding);
        bool unclear;
        code->function = struct_find_function(&structure->type, name->text, path, &unclear);
        if (code->function) code->head.eval = eval_call_function;
        if (!unclear) return;
        const char *message = error_current()->message;
        code->name = arena_copy_string(lowering->arena, message, strlen(message));
        code->head.eval = eval_fail_unclear;
        error_clear();
        return;
    }
    if (binding && lower_known(code, binding)) return;
    code->row = catalog_find(code->name, strlen(code->name));
    if (code->row) {
        code->head.eval = eval_call_builtin;
        return;
    }
    code->row = catalog_find(name->text, name->length);
    if (!code->row) return;
    if (dtype_find(type->text, type->length, &code->dtype)) {
        code->head.eval = eval_call_with_dtype;
        code->arguments.names[code->arguments.count - code->arguments.positional] = "dtype";
    } else if (strcmp(type->text, "Tensor") == 0 || strcmp(type->text, "tensor") == 0) {
        code->head.eval = eval_call_builtin;
    }
}

static const Code *lower_path_call(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_CALL);
    CallCode *code = LOWER_NEW(lowering, CallCode, eval_fail_path, node->span);
    lower_call_arguments(lowering, node->as.call.arguments, node->as.call.count, &code->arguments);
    code->arguments.span = node->span;
    lower_path_target(lowering, code, node->as.call.callee);
    return &code->head;
}

static Value eval_path_function(Frame *frame, const Code *code) {
    (void)frame;
    const CallCode *path = (const CallCode *)code;
    return value_function(path->function->name, path->function, 0);
}

// Type::f without a call: the function as a value.
const Code *lower_path(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_PATH);
    CallCode *code = LOWER_NEW(lowering, CallCode, eval_fail_path, node->span);
    code->arguments.names = lower_array(lowering, 1, sizeof *code->arguments.names);
    lower_path_target(lowering, code, node);
    Value builtin = {.kind = VALUE_BUILTIN, .as.builtin = code->row};
    if (code->function) code->head.eval = eval_path_function;
    if (code->head.eval == eval_call_with_dtype)
        builtin = value_typed_builtin(code->row, code->dtype);
    else if (code->head.eval != eval_call_builtin)
        return &code->head;
    return lower_constant(lowering, builtin, node->span);
}
