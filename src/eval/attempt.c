// try and catch, and blocks that run with something: a buffer, a device, without gradients.
#include "base/source.h"
#include "device/foretell.h"
#include "eval/code.h"
#include "eval/upper.h"
#include "model/tensor_buffer.h"
#include "tensor/gradient/tape.h"
#include "value/convert.h"
#include "value/handles.h"
#include "value/object.h"
#include "value/print.h"

typedef struct TryCode {
    Code head;
    const Code *body, *handler;
    const VariableCode *variable; // NULL: catch without a name
    int slot;
} TryCode;

static const char *const error_fields[] = {"kind", "message", "file", "line"};
static const StructType error_type = {
    .name = "Error", .field_count = 4, .field_names = error_fields};

bool value_is_error(Value value) {
    return value.kind == VALUE_STRUCT && value.as.instance->type == &error_type;
}

static Value message_value(const char *message, bool measured) {
    Value text = value_cstring(message);
    return UNLIKELY(measured) ? string_as_measured(text.as.string) : text;
}

// `measured`: its words may show numbers that only a run has (foretell.h).
static Value error_value(const ErrorRecord *record, bool measured) {
    ASSERT(record->code != STATUS_OK);
    SourcePlace place = source_find(record->span.begin);
    Value error = value_struct(&error_type);
    Value *fields = error.as.instance->fields;
    fields[0] = value_cstring(record->kind);
    fields[1] = message_value(record->message, measured);
    fields[2] = place.file ? value_cstring(place.file->name) : value_none();
    fields[3] = place.file ? value_int(place.line) : value_none();
    return error;
}

// Leaving, exit(n) and Ctrl-C are not for handlers.
static bool is_caught(const Frame *frame) {
    return frame->control == CONTROL_NONE && !frame->interp->exit_requested &&
           error_current()->code != STATUS_INTERRUPT;
}

// Runs the handler; until it is done the error can be raised again with its place and trace.
static Value handle(Frame *frame, const TryCode *attempt) {
    Interp *interp = frame->interp;
    if (!attempt->variable) {
        error_clear();
        trace_clear(interp);
        return EVAL(frame, attempt->handler);
    }
    SCOPED_VALUE(error) = error_value(error_current(), interp->measured_error);
    Caught caught = {error.as.instance, failure_set_aside(interp), interp->caught};
    interp->caught = &caught;
    variable_set(frame, attempt->variable, value_retain(error));
    Value value = EVAL(frame, attempt->handler);
    slots_release(frame, attempt->slot, 1);
    interp->caught = caught.outer;
    failure_forget(caught.failure);
    return value;
}

static Value eval_try(Frame *frame, const Code *code) {
    const TryCode *attempt = (const TryCode *)code;
    Value value = EVAL(frame, attempt->body);
    if (UNLIKELY(interp_interrupts()) && !failed(value)) {
        value_release(value);
        value = interp_fail_interrupted(attempt->body->span);
    }
    if (!failed(value) || !is_caught(frame)) return value;
    // The refusal is this error: it does not fail the handler as well.
    if (error_current()->code == STATUS_MEMORY)
        (void)runtime_take_interrupts(frame->interp->runtime, INTERRUPT_MEMORY);
    return handle(frame, attempt);
}

// While memory is foretold: a handler waits for the errors of what is checked here.
static Value eval_awaited(Frame *frame, const Code *code) {
    const TryCode *awaited = (const TryCode *)code;
    uint64_t reads = foretell_reads();
    foretell_attempt(1);
    Value value = EVAL(frame, awaited->body);
    foretell_attempt(-1);
    frame->interp->measured_error = foretell_reads() != reads;
    return value;
}

static const Code *lower_attempted(Lowering *lowering, const Node *body) {
    const Code *attempted = lower(lowering, body);
    if (!foretelling()) return attempted;
    TryCode *code = LOWER_NEW(lowering, TryCode, eval_awaited, body->span);
    code->body = attempted;
    return &code->head;
}

const Code *lower_try(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_TRY);
    TryCode *code = LOWER_NEW(lowering, TryCode, eval_try, node->span);
    code->body = lower_attempted(lowering, node->as.attempt.body);
    code->handler = node->as.attempt.handler ? lower(lowering, node->as.attempt.handler)
                                             : lower_constant(lowering, value_none(), node->span);
    Binding *binding = node->as.attempt.binding;
    if (binding) {
        code->variable = lower_variable(lowering, binding, node->span);
        code->slot = binding->slot;
    }
    return &code->head;
}

typedef struct WithCode {
    Code head;
    const Code *argument, *body;
    bool device;  // the argument names one
    bool no_grad; // nothing is recorded inside
} WithCode;

// What a with statement changes for its block, to be put back after it.
typedef struct Scope {
    Device *device;       // the default device before
    TensorBuffer *buffer; // NULL: none
    size_t used;          // of it
    bool recording;
} Scope;

static Status with_enter(const WithCode *with, Value argument, Scope *scope) {
    if (with->device) {
        Device *device;
        TRY(value_to_device(argument, "the device", &device));
        scope->device = device_default_replace(device);
    } else if (with->argument) {
        if (argument.kind != VALUE_HANDLE || argument.as.handle->type != &handle_buffer)
            return fail(STATUS_TYPE, "`with` takes a tensor buffer or an entity type, not %s",
                        value_text(argument).text);
        scope->buffer = argument.as.handle->payload;
        scope->used = tensor_buffer_used(scope->buffer);
    }
    if (with->no_grad) scope->recording = tape_set_enabled(false);
    return STATUS_OK;
}

static Status with_leave(const WithCode *with, const Scope *scope) {
    if (with->device) (void)device_default_replace(scope->device);
    if (with->no_grad) (void)tape_set_enabled(scope->recording);
    return scope->buffer ? tensor_buffer_rewind(scope->buffer, scope->used) : STATUS_OK;
}

// The block has failed: its error stands, and what it changed is put back all the same.
static __attribute__((noinline)) void with_abandon(const WithCode *with, const Scope *scope) {
    ErrorRecord first = *error_current();
    (void)!with_leave(with, scope);
    *error_current() = first;
}

static Value eval_with(Frame *frame, const Code *code) {
    const WithCode *with = (const WithCode *)code;
    SCOPED_VALUE(argument) = value_none();
    if (with->argument) {
        argument = EVAL(frame, with->argument);
        if (failed(argument)) return argument;
    }
    Scope scope = {0};
    if (with_enter(with, argument, &scope) != STATUS_OK) return fail_at(with->argument->span);
    Value value = EVAL(frame, with->body);
    if (failed(value)) {
        with_abandon(with, &scope);
    } else if (with_leave(with, &scope) != STATUS_OK) {
        value_release(value);
        value = fail_at(with->head.span);
    }
    return value;
}

static bool names_entity_type(const Node *argument) {
    if (!argument || argument->kind != NODE_NAME) return false;
    const Binding *binding = argument->as.name.binding;
    return binding && binding_is_entity_type(binding);
}

const Code *lower_with(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_WITH);
    if (names_entity_type(node->as.with.argument)) return lower_with_entity(lowering, node);
    WithCode *code = LOWER_NEW(lowering, WithCode, eval_with, node->span);
    code->argument = node->as.with.argument ? lower(lowering, node->as.with.argument) : NULL;
    code->device = strcmp(node->as.with.word.text, "device") == 0;
    code->no_grad = strcmp(node->as.with.word.text, "no_grad") == 0;
    code->body = lower(lowering, node->as.with.body);
    return &code->head;
}
