// What a builtin written in C sees: its arguments, bound by the row's signature, and conversions
// with the language's rules. Arguments are borrowed; the result is a new reference; failure is
// VALUE_FAIL after fail(). Tensor operations (ops.def) need no code here: eval/call_op.c runs every
// row.
#ifndef VALUE_BUILTIN_H
#define VALUE_BUILTIN_H

#include "catalog/catalog.h"
#include "value/value.h"

typedef struct Interp Interp;

typedef struct BuiltinCall {
    Interp *interp;
    const Builtin *row;
    // One per parameter in the order of the signature: the argument, its default, or ABSENT.
    // For a rest parameter: ABSENT; its values are in `rest`.
    Value arguments[PARAMETERS_MAX];
    const Value *rest;
    size_t rest_count;
    bool first_is_literal; // the first argument was written as a string literal (print's formats)
} BuiltinCall;

typedef Value (*BuiltinFunction)(BuiltinCall *call);

// From functions_*.def: FUNCTION(id, signature, section, doc) is implemented as builtin_<id>.
typedef enum FunctionId {
#define FUNCTION(id, signature, section, doc) FUNCTION_##id,
#include "catalog/functions.def"
#undef FUNCTION
    FUNCTION_COUNT
} FunctionId;
#define FUNCTION(id, signature, section, doc) Value builtin_##id(BuiltinCall *call);
#include "catalog/functions.def"
#undef FUNCTION

// Conversions. Rank-0 tensors serve as numbers; integral floats as integers. Failures name the
// value and what was wanted; `what` is the parameter's name or another short noun ("dim").
Status value_to_int(Value value, const char *what, int64_t *out) MUST_USE;
Status value_to_double(Value value, const char *what, double *out) MUST_USE;
Status value_to_bool(Value value, const char *what,
                     bool *out) MUST_USE; // conditions: bool or rank-0 bool
// Numbers become rank-0 tensors, lists of numbers and nested lists tensors. New reference.
Status value_to_tensor(Value value, const char *what, Tensor **out) MUST_USE;
// A relation or an embedding: value_to_tensor makes a tensor of it.
bool value_is_handle_tensor(Value value);
Status value_to_shape(Value value, const char *what, Shape *out) MUST_USE;
// Any number of integers (a number, list, tuple, range or tensor); *out is malloc'd.
Status value_to_ints(Value value, const char *what, int64_t **out, size_t *count) MUST_USE;
Status value_to_string(Value value, const char *what, const String **out) MUST_USE;
bool value_is_number(Value value); // int, float, or a tensor with rank 0
// A handle of this type, or a failure in words.
Status value_to_handle(Value value, const HandleType *type, const char *what,
                       void **payload) MUST_USE;

#endif
