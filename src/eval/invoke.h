// Calling functions of the program: arguments into a frame's slots, the body, and the way out.
#ifndef EVAL_INVOKE_H
#define EVAL_INVOKE_H

#include "eval/code.h"

// Whether the C stack is nearly used up.
static inline bool stack_is_low(const Interp *interp) {
    return UNLIKELY((const char *)__builtin_frame_address(0) < interp->stack_limit);
}
Value fail_depth(const FunctionCode *function);

// Defaults, annotations and cells of the parameters; false (failed): every slot is released.
bool function_prepare(Frame *frame, const FunctionCode *code, Span called_at);
// What the function gives when its body gave `result`: that of a return, and checked.
Value function_finish(Frame *frame, const FunctionCode *code, Value result);

// Runs a function whose arguments lie in the first slots (the others ABSENT); releases every slot.
// `called_at` is the place of the call.
static inline Value function_run(Interp *interp, const FunctionCode *code, Function *closure,
                                 Value *slots, Span called_at) {
    Frame frame;
    frame.slots = slots;
    frame.interp = interp;
    frame.closure = closure;
    frame.control = CONTROL_NONE;
    Origin saved = origin_current;
    if (!LIKELY(code->plain) && !function_prepare(&frame, code, called_at)) {
        origin_current = saved;
        return value_fail();
    }
    origin_current.called_from = called_at.begin;
    Value result = EVAL(&frame, code->body);
    if (UNLIKELY(failed(result) || code->result)) result = function_finish(&frame, code, result);
    // Nothing reads the slots any more, so that they keep what they hold.
    for (Value *slot = slots + code->slot_count; slot-- > slots;) value_release(*slot);
    origin_current = saved;
    if (failed(result)) trace_add(interp, code->title, called_at.begin);
    return result;
}
// With borrowed arguments by position.
Value function_invoke(Interp *interp, const FunctionCode *code, Function *closure,
                      const Value *arguments, size_t count);

// Arguments of one call, evaluated. Taken by call_value.
typedef struct CallArguments {
    Value *values; // positional ones first
    size_t count, positional;
    const char *const *names; // of the named ones
    bool first_is_literal;
    const Code *receiver;     // of values[0] in x.f(a), for messages; else NULL
    const Code *const *codes; // of the other values, for messages; NULL when there are none
    Span span;
} CallArguments;

bool value_is_callable(Value value);
// Calls anything callable; takes the arguments, borrows the callee.
Value call_value(Interp *interp, Value callee, CallArguments *arguments);
Value call_function(Interp *interp, const FunctionCode *code, Function *closure,
                    CallArguments *arguments);
Value call_builtin(Interp *interp, const Builtin *row, CallArguments *arguments);
void arguments_release(Value *values, size_t count);

// Calls a function value with borrowed arguments; the result is a new reference or VALUE_FAIL.
Value interp_call(Interp *interp, Value function, const Value *arguments, size_t count);

#endif
