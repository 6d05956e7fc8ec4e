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
// Whether gradients flow through a value: a tensor, or a list that holds one.
bool value_needs_gradient(Value value);
// As value_to_tensor, but plain floats become float64: nothing is rounded.
Status value_to_wide_tensor(Value value, const char *what, Tensor **out) MUST_USE;
// A list of numbers and tensors of one shape as a float32 tensor, joined by operations so that
// gradients flow on; nested literals count as lists.
Status value_stack(Value value, const char *what, Tensor **out) MUST_USE;
// Reads a rank-0 tensor as the plain number it holds; any other value stays. Never a new reference.
Status value_read_number(Value *value) MUST_USE;
// Everything that `for` runs through, as a new list: lists, tuples, ranges, tensors along dimension
// 0 (ints and bools give plain values), strings by code points, keys of dictionaries.
Value value_to_items(Value value, const char *what);
// Element `index` (in range) of a tensor along dimension 0, by the same rule.
Value tensor_element(Tensor *tensor, int64_t index);
// The numbers of a tensor of rank > 0 as lists nested by dimension.
Value tensor_to_list(Tensor *tensor);
// An index of something with `count` elements, negative from the end, made 0..count-1. STATUS_INDEX
// "index 5 is out of range for a list of 3 elements"; `of` is "a list".
Status value_to_index(Value index, int64_t count, const char *of, int64_t *out) MUST_USE;
// Whether `item` is in a list, tuple, range, tensor, string or among a dictionary's keys: `in`.
Status value_contains(Value container, Value item, bool *out) MUST_USE;
// What len(x) gives. STATUS_TYPE for values without a length.
Status value_length(Value value, int64_t *out) MUST_USE;
// A value that can be a dictionary's key: strings, ints (integral floats, rank-0 tensors), bools.
Status value_to_key(Value value, Value *out) MUST_USE;
// "x must be a list, but it is 5": records it and returns `code`.
Status fail_kind(const char *what, const char *wanted, Value value);
// How two plain numbers (int, float, bool) compare by their exact values; false: one is nan.
bool value_order_numbers(Value a, Value b, int *out);
// The total order that sorted, min and max use: numbers, strings, and lists of them. `out` < 0, 0,
// > 0.
Status value_compare(Value a, Value b, int *out) MUST_USE;

// In a function that returns a Value: fails when the call fails.
#define TRY_VALUE(call)                                                                            \
    do {                                                                                           \
        if (UNLIKELY((call) != STATUS_OK)) return value_fail();                                    \
    } while (0)

#endif
