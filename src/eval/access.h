// Methods and properties that values have by their kind; lengths, keys and indexes.
#ifndef EVAL_ACCESS_H
#define EVAL_ACCESS_H

#include "value/builtin.h"

// The method `name` that the receiver's kind has of its own ("append" of a list is not the function
// append), or NULL: then a builtin function of that name may serve. Call it with the receiver
// first.
const Builtin *builtin_find_method(Value receiver, const char *name, size_t length);
// A property that is not a call: x.shape x.dtype x.T x.ndim of tensors, `d.key` of dictionaries,
// fields of handles and structs. ABSENT when the value has no such property; otherwise a new
// reference or VALUE_FAIL.
Value value_get_property(Value object, const char *name, size_t length);

// An index of something with `count` elements, negative from the end, made 0..count-1. STATUS_INDEX
// "index 5 is out of range for a list of 3 elements"; `of` is "a list".
Status value_to_index(Value index, int64_t count, const char *of, int64_t *out) MUST_USE;
// Whether `item` is in a list, tuple, range, tensor, string or among a dictionary's keys: `in`.
Status value_contains(Value container, Value item, bool *out) MUST_USE;
// What len(x) gives. STATUS_TYPE for values without a length.
Status value_length(Value value, int64_t *out) MUST_USE;
// A value that can be a dictionary's key: strings, ints (integral floats, rank-0 tensors), bools.
Status value_to_key(Value value, Value *out) MUST_USE;

#endif
