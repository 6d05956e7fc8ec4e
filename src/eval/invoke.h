// Calling functions of the program: arguments into a frame's slots, the body, and the way out.
#ifndef EVAL_INVOKE_H
#define EVAL_INVOKE_H

#include "eval/code.h"

// A path seen from the folder of the text in which the position lies; false where that is the
// current folder, or the path is absolute.
bool path_from_file(SourcePos at, const char *path, Text *out);

// Whether the C stack is nearly used up.
static inline bool stack_is_low(const Interp *interp) {
    return UNLIKELY((const char *)__builtin_frame_address(0) < interp->stack_limit);
}
COLD Value fail_depth(const FunctionCode *function);

// Runs a function whose arguments lie in the first slots (the others ABSENT); releases every slot.
// `called_at` is the place of the call.
Value function_run(Interp *interp, const FunctionCode *code, Function *closure, Value *slots,
                   Span called_at);
// What a body that unwinds gives its function: the value of a return, else the failure, in whose
// trace the call then is.
Value function_unwind(Frame *frame, const FunctionCode *code, Span called_at);
// Frees a value whose last reference went, and gives the result back: what runs a function then
// need not save it at each of its values.
Value let_go_keeping(Value value, Value result);

// The same as function_run for a plain function.
static inline Value function_run_plain(Interp *interp, const FunctionCode *code, Function *closure,
                                       Value *slots, Span called_at) {
    Frame frame;
    frame.slots = slots;
    frame.interp = interp;
    frame.closure = closure;
    frame.control = CONTROL_NONE;
    Origin saved = origin_current;
    origin_current.called_from = called_at.begin;
    Value result = EVAL(&frame, code->body);
    if (failed(result)) result = function_unwind(&frame, code, called_at);
    // Nothing reads the slots any more, so that they keep what they hold.
    for (Value *slot = slots + code->slot_count; slot-- > slots;)
        if (value_is_counted(*slot) && --slot->as.counted->refs <= 0)
            result = let_go_keeping(*slot, result);
    origin_current = saved;
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
Value value_typed_builtin(const Builtin *row, DType dtype); // f32::zeros as a value
Value call_function(Interp *interp, const FunctionCode *code, Function *closure,
                    CallArguments *arguments);
Value call_builtin(Interp *interp, const Builtin *row, CallArguments *arguments);
void arguments_release(Value *values, size_t count);

// Calls a function value with borrowed arguments; the result is a new reference or VALUE_FAIL.
Value interp_call(Interp *interp, Value function, const Value *arguments, size_t count);

#endif
