// Calls: frames, defaults, annotations of parameters and results, traces, the depth limit.
#include "eval/invoke.h"

#include <string.h>
#include <unistd.h>

#include "base/sandbox.h"
#include "check/operator_words.h"
#include "device/foretell.h"
#include "eval/annotations.h"
#include "eval/bind.h"
#include "eval/methods.h"
#include "tensor/op.h"
#include "value/convert.h"
#include "value/object.h"
#include "value/print.h"

Value fail_depth(const FunctionCode *function) {
    fail(STATUS_DEPTH, "the calls are nested too deeply: %s calls itself without end, or almost",
         function->title);
    return value_fail();
}

void arguments_release(Value *values, size_t count) {
    while (count > 0) value_release(values[--count]);
}

// Defaults, annotations and cells of the parameters, in order.
static Status prepare_parameter(Frame *frame, const FunctionCode *code, int index) {
    const ParameterCode *parameter = &code->parameters[index];
    Value *slot = &frame->slots[index];
    ASSERT(slot->kind != VALUE_FAIL);
    if (slot->kind == VALUE_ABSENT && parameter->fallback) {
        Value value = EVAL(frame, parameter->fallback);
        if (failed(value)) return error_current()->code;
        *slot = value;
    }
    if (parameter->type) {
        TRY(annotation_check(frame, parameter->type, slot, parameter->what));
    }
    if (parameter->captured) *slot = value_cell(*slot);
    return STATUS_OK;
}

// Defaults, annotations and cells of the parameters; false: it failed.
static bool prepare(Frame *frame, const FunctionCode *code, Span called_at) {
    for (int i = 0; i < code->parameter_count; i++) {
        if (prepare_parameter(frame, code, i) == STATUS_OK) continue;
        error_place(called_at);
        return false;
    }
    return true;
}

Value function_unwind(Frame *frame, const FunctionCode *code, Span called_at) {
    if (frame->control == CONTROL_RETURN) return frame->result;
    trace_add(frame->interp, code->title, called_at.begin);
    return value_fail();
}

Value let_go_keeping(Value value, Value result) {
    value_release_counted(value);
    return result;
}

// Runs the body, and checks what it gives.
static Value run_body(Frame *frame, const FunctionCode *code, Span called_at) {
    Value result = EVAL(frame, code->body);
    if (failed(result)) result = function_unwind(frame, code, called_at);
    if (failed(result) || !code->result ||
        annotation_check(frame, code->result, &result, code->result_what) == STATUS_OK)
        return result;
    error_place(code->node->head);
    value_release(result);
    trace_add(frame->interp, code->title, called_at.begin);
    return value_fail();
}

Value function_run(Interp *interp, const FunctionCode *code, Function *closure, Value *slots,
                   Span called_at) {
    Frame frame = {.slots = slots, .interp = interp, .closure = closure};
    Origin saved = origin_current;
    Value result = value_fail();
    if (prepare(&frame, code, called_at)) {
        origin_current.called_from = called_at.begin;
        result = run_body(&frame, code, called_at);
    }
    for (Value *slot = slots + code->slot_count; slot-- > slots;) value_release(*slot);
    origin_current = saved;
    return result;
}

Value function_invoke(Interp *interp, const FunctionCode *code, Function *closure,
                      const Value *arguments, size_t count) {
    ASSERT(count == 0 || arguments != NULL);
    Value values[count + 1];
    for (size_t i = 0; i < count; i++) values[i] = value_retain(arguments[i]);
    CallArguments call = {.values = values,
                          .count = count,
                          .positional = count,
                          .span = {origin_current.at, origin_current.at}};
    return call_function(interp, code, closure, &call);
}

static Status place_named(const FunctionCode *code, const char *name, Value value, Value *slots) {
    for (int i = 0; i < code->parameter_count; i++) {
        if (strcmp(code->parameters[i].name, name) != 0) continue;
        if (slots[i].kind != VALUE_ABSENT)
            return fail(STATUS_ARITY, "argument `%s` of %s is given twice", name, code->title);
        slots[i] = value;
        return STATUS_OK;
    }
    return fail(STATUS_ARITY, "%s has no parameter `%s`", code->title, name);
}

// Moves the arguments into slots. On failure those not moved are released here, the others by the
// caller with the slots.
static Status place_arguments(const FunctionCode *code, CallArguments *arguments, Value *slots) {
    ASSERT(arguments->positional <= arguments->count);
    size_t placed = 0;
    Status status = STATUS_OK;
    if (arguments->positional > (size_t)code->parameter_count)
        status = call_fail_count(code->node, code->title, arguments->count);
    for (; status == STATUS_OK && placed < arguments->positional; placed++)
        slots[placed] = arguments->values[placed];
    while (status == STATUS_OK && placed < arguments->count) {
        const char *name = arguments->names[placed - arguments->positional];
        status = place_named(code, name, arguments->values[placed], slots);
        if (status == STATUS_OK) placed++;
    }
    ASSERT(status != STATUS_OK || placed == arguments->count);
    for (size_t i = placed; i < arguments->count; i++) value_release(arguments->values[i]);
    for (int i = 0; status == STATUS_OK && i < code->required_count; i++) {
        if (slots[i].kind != VALUE_ABSENT || code->parameters[i].fallback) continue;
        status = arguments->count == arguments->positional
                     ? call_fail_count(code->node, code->title, arguments->count)
                     : fail(STATUS_ARITY, "argument `%s` of %s is missing",
                            code->parameters[i].name, code->title);
    }
    return status;
}

Value call_function(Interp *interp, const FunctionCode *code, Function *closure,
                    CallArguments *arguments) {
    ASSERT(code->slot_count >= code->parameter_count);
    if (stack_is_low(interp)) {
        arguments_release(arguments->values, arguments->count);
        fail_depth(code);
        return fail_at(arguments->span);
    }
    Value slots[code->slot_count + 1];
    for (int i = 0; i < code->slot_count; i++) slots[i] = value_absent();
    Status status = place_arguments(code, arguments, slots);
    if (status == STATUS_OK) return function_run(interp, code, closure, slots, arguments->span);
    Frame frame = {.slots = slots, .interp = interp};
    slots_release(&frame, 0, code->slot_count);
    return fail_at(arguments->span);
}

static uint32_t donated_mask(const CallArguments *arguments) {
    uint32_t mask = 0;
    for (size_t i = 0; i < arguments->positional && i < 32; i++) {
        Value value = arguments->values[i];
        if (value.kind == VALUE_TENSOR && value.as.counted->refs == 1) mask |= 1u << i;
    }
    return mask;
}

// What the tensors of a failed operation are, by the text of the arguments.
static void label_arguments(const CallArguments *arguments) {
    if (!arguments->codes || error_current()->label[0] || error_current()->span.begin) return;
    SCOPED_TEXT(label);
    size_t offset = arguments->receiver ? 1 : 0;
    for (size_t i = 0; i < arguments->positional; i++) {
        if (arguments->values[i].kind != VALUE_TENSOR) continue;
        if (label.length) text_append_string(&label, ", ");
        operand_describe(&label, arguments->values[i],
                         i < offset ? arguments->receiver : arguments->codes[i - offset]);
    }
    if (label.length) fail_label("%s", text_get(&label));
}

bool path_from_file(SourcePos at, const char *path, Text *out) {
    SourcePlace place = source_find(at);
    const char *slash = place.file ? strrchr(place.file->name, '/') : NULL;
    if (!slash || path[0] == '/') return false;
    text_append(out, place.file->name, (size_t)(slash - place.file->name) + 1);
    text_append_string(out, path);
    return true;
}

// A file that is not in the current folder, but in that of the program.
static void help_with_path(const Builtin *row, const CallArguments *arguments) {
    const Signature *signature = &row->signature;
    if (error_current()->code != STATUS_IO || error_current()->help[0]) return;
    if (signature->count == 0 || strcmp(signature->params[0].name, "path") != 0) return;
    if (arguments->positional == 0 || arguments->values[0].kind != VALUE_STRING) return;
    const char *path = string_end(arguments->values[0].as.string)->bytes;
    SCOPED_TEXT(full);
    if (!path_from_file(arguments->span.begin, path, &full)) return;
    if (!sandbox_allows(text_get(&full)) || access(text_get(&full), F_OK) != 0) return;
    fail_help("paths begin at the current folder; here(\"%s\") is the file next to this program",
              path);
}

Value call_builtin(Interp *interp, const Builtin *row, CallArguments *arguments) {
    ASSERT(arguments->positional <= arguments->count);
    BuiltinArguments call = {.positional = arguments->values,
                             .count = arguments->positional,
                             .names = arguments->names,
                             .named = arguments->values + arguments->positional,
                             .named_count = arguments->count - arguments->positional,
                             .donated = donated_mask(arguments),
                             .first_is_literal = arguments->first_is_literal};
    origin_current.at = arguments->span.begin;
    Value result = value_fail();
    if (UNLIKELY(interp_interrupts()))
        interp_fail_interrupted(arguments->span);
    else if (UNLIKELY(foretelling()))
        result = builtin_invoke_foretold(interp, row, &call);
    else
        result = builtin_invoke(interp, row, &call);
    if (failed(result)) {
        if (row->kind == ROW_OP) label_arguments(arguments);
        help_with_path(row, arguments);
        error_place(arguments->span);
    }
    arguments_release(arguments->values, arguments->count);
    return result;
}

bool value_is_callable(Value value) {
    return value.kind == VALUE_FUNCTION || value.kind == VALUE_BUILTIN ||
           value.kind == VALUE_TYPE || value.kind == VALUE_DTYPE ||
           (value.kind == VALUE_HANDLE && value.as.handle->type->call);
}

// Point(...) is Point::new(...).
static Value call_type(Interp *interp, const StructType *type, CallArguments *arguments) {
    bool unclear;
    const FunctionCode *maker = struct_find_function(type, "new", NULL, &unclear);
    if (maker) return call_function(interp, maker, NULL, arguments);
    arguments_release(arguments->values, arguments->count);
    if (unclear) return fail_at(arguments->span);
    fail(STATUS_TYPE, "struct %s has no `new` and cannot be called", type->name);
    fail_help("a value is made by %s { field: value, ... }", type->name);
    return fail_at(arguments->span);
}

// float16(x) is x as float16.
static Value call_dtype(DType dtype, CallArguments *arguments) {
    ASSERT((unsigned)dtype < DTYPE_COUNT);
    Tensor *given = NULL, *cast = NULL;
    Status status = arguments->count == 1 && arguments->positional == 1
                        ? value_to_tensor(arguments->values[0], "x", &given)
                        : fail(STATUS_ARITY, "%s takes 1 argument, but %zu are given",
                               dtype_name(dtype), arguments->count);
    if (status == STATUS_OK) status = tensor_cast(given, dtype, &cast);
    tensor_release(given);
    arguments_release(arguments->values, arguments->count);
    return status == STATUS_OK ? value_tensor(cast) : fail_at(arguments->span);
}

// A handle that is a function; it has no names for its arguments.
static Value call_handle(Interp *interp, Handle *handle, CallArguments *arguments) {
    Value result = value_fail();
    if (!handle->type->call)
        (void)fail(STATUS_TYPE, "a %s is not a function and cannot be called", handle->type->name);
    else if (arguments->positional < arguments->count)
        (void)fail(STATUS_ARITY, "a %s takes its arguments by position, not by name",
                   handle->type->name);
    else
        result = handle->type->call(interp, handle, arguments->values, arguments->count);
    if (failed(result)) error_place(arguments->span);
    arguments_release(arguments->values, arguments->count);
    return result;
}

// f32::zeros as a value: a builtin and the dtype of what it makes, which are `attached`.
static Value call_typed(Interp *interp, Handle *handle, const Value *arguments, size_t count) {
    ASSERT(handle->attached.kind == VALUE_TUPLE);
    const Value *parts = handle->attached.as.list->items;
    const char *name = "dtype";
    Value values[count + 1];
    for (size_t i = 0; i < count; i++) values[i] = value_retain(arguments[i]);
    values[count] = parts[1];
    CallArguments call = {.values = values,
                          .names = &name,
                          .count = count + 1,
                          .positional = count,
                          .span = {origin_current.at, origin_current.at}};
    return call_builtin(interp, parts[0].as.builtin, &call);
}

static void print_typed(Handle *handle, Text *out) {
    const Value *parts = handle->attached.as.list->items;
    text_format(out, "<fn %s::%s>", dtype_name((DType)parts[1].as.integer),
                parts[0].as.builtin->signature.name);
}

static const HandleType handle_typed = {
    .name = "function", .print = print_typed, .call = call_typed};

Value value_typed_builtin(const Builtin *row, DType dtype) {
    ASSERT((unsigned)dtype < DTYPE_COUNT);
    Value parts = value_tuple(2);
    list_push(parts.as.list, (Value){.kind = VALUE_BUILTIN, .as.builtin = row});
    list_push(parts.as.list, (Value){.kind = VALUE_DTYPE, .as.integer = (int64_t)dtype});
    return value_handle_with(&handle_typed, NULL, parts);
}

Value call_value(Interp *interp, Value callee, CallArguments *arguments) {
    switch (callee.kind) {
    case VALUE_FUNCTION:
        return call_function(interp, callee.as.function->code, callee.as.function, arguments);
    case VALUE_BUILTIN: return call_builtin(interp, callee.as.builtin, arguments);
    case VALUE_TYPE: return call_type(interp, callee.as.pointer, arguments);
    case VALUE_DTYPE: return call_dtype((DType)callee.as.integer, arguments);
    case VALUE_HANDLE: return call_handle(interp, callee.as.handle, arguments);
    default:
        arguments_release(arguments->values, arguments->count);
        fail(STATUS_TYPE, "%s is not a function and cannot be called", value_text(callee).text);
        return fail_at(arguments->span);
    }
}

Value interp_call(Interp *interp, Value function, const Value *arguments, size_t count) {
    ASSERT(function.kind != VALUE_FAIL);
    Value values[count + 1];
    for (size_t i = 0; i < count; i++) values[i] = value_retain(arguments[i]);
    CallArguments call = {.values = values,
                          .count = count,
                          .positional = count,
                          .span = {origin_current.at, origin_current.at}};
    return call_value(interp, function, &call);
}
