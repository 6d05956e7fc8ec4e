// Calling catalog rows from the language: arguments are bound to a signature by position and name,
// the overload is chosen by their kinds, and the row's C function or tensor operation runs.
#ifndef EVAL_BIND_H
#define EVAL_BIND_H

#include "value/builtin.h"

typedef struct BuiltinArguments {
    const Value *positional; // all borrowed
    size_t count;
    const char *const *names; // of the named arguments, NUL-terminated
    const Value *named;
    size_t named_count;
    uint32_t donated;      // bit i: positional[i] is a tensor whose only reference is the caller's,
                           // who will not read it again: an operation may write into it
    bool first_is_literal; // the first argument was written as a string literal
} BuiltinArguments;

// Calls a row (the first overload of its name). The result is a new reference or VALUE_FAIL.
// `f32::zeros(...)` is a call with a named argument "dtype".
Value builtin_invoke(Interp *interp, const Builtin *row, const BuiltinArguments *arguments);
// The same while memory is foretold: unknown numbers stay unknown in texts (device/foretell.h).
Value builtin_invoke_foretold(Interp *interp, const Builtin *row,
                              const BuiltinArguments *arguments);

// Calls a builtin row with borrowed positional arguments (ops included).
Value interp_call_builtin(Interp *interp, const Builtin *row, const Value *arguments, size_t count);

#endif
