// Further conversions of arguments, for the builtins and the binder.
#ifndef VALUE_CONVERT_H
#define VALUE_CONVERT_H

#include "value/builtin.h"

// A dtype word, a string that names one, or int, float, bool.
Status value_to_dtype(Value value, const char *what, DType *out) MUST_USE;
// A device by its name; opened devices are kept for the run. Borrowed.
Status value_to_device(Value value, const char *what, Device **out) MUST_USE;
// Int, float, bool or rank-0 tensor, its kind kept.
Status value_to_scalar(Value value, const char *what, Scalar *out) MUST_USE;
Value value_from_scalar(Scalar scalar);
// What only a run has, of an int64, float64 or bool that was read here.
Value value_unknown(DType dtype);
// Whether gradients flow through a value: a tensor, or a list that holds one.
bool value_needs_gradient(Value value);
// As value_to_tensor, but plain floats become float64: nothing is rounded.
Status value_to_wide_tensor(Value value, const char *what, Tensor **out) MUST_USE;
// A list of numbers and tensors of one shape as a float32 tensor, joined by operations so that
// gradients flow on; nested literals count as lists.
Status value_stack(Value value, const char *what, Tensor **out) MUST_USE;
// What one that holds one number holds.
Status value_read_tensor(Tensor *tensor, Value *out) MUST_USE;
// The program looks at a number: what is guessed for one that only a run has; others stay.
Value value_look_measured(Value value);
static inline Value value_look(Value value) {
    return UNLIKELY(value.kind == VALUE_MEASURED) ? value_look_measured(value) : value;
}
// The same for one that is only shown: nothing follows from it.
Value value_guess(Value value);
// Reads a rank-0 tensor as the plain number it holds; any other value stays. Never a new reference.
Status value_read_number(Value *value) MUST_USE;
// "x must be a list, but it is 5": records it and returns `code`.
COLD Status fail_kind(const char *what, const char *wanted, Value value);

// In a function that returns a Value: fails when the call fails.
#define TRY_VALUE(call)                                                                            \
    do {                                                                                           \
        if (UNLIKELY((call) != STATUS_OK)) return value_fail();                                    \
    } while (0)

#endif
