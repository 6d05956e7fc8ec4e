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

// The method `name` that the receiver's kind has of its own ("append" of a list is not the function
// append), or NULL: then a builtin function of that name may serve. Call it with the receiver
// first.
const Builtin *builtin_find_method(Value receiver, const char *name, size_t length);
// A property that is not a call: x.shape x.dtype x.T x.ndim of tensors, `d.key` of dictionaries,
// fields of handles and structs. ABSENT when the value has no such property; otherwise a new
// reference or VALUE_FAIL.
Value value_get_property(Value object, const char *name, size_t length);

#endif
