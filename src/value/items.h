// What `for` runs through, and orders of values.
#ifndef VALUE_ITEMS_H
#define VALUE_ITEMS_H

#include "value/value.h"

// Everything that `for` runs through, as a new list: lists, tuples, ranges, tensors along dimension
// 0 (ints and bools give plain values), strings by code points, keys of dictionaries.
Value value_to_items(Value value, const char *what);
// Element `index` (in range) of a tensor along dimension 0, by the same rule.
Value tensor_element(Tensor *tensor, int64_t index);
// The numbers of a tensor of rank > 0 as lists nested by dimension.
Value tensor_to_list(Tensor *tensor);
// list + right, in the list itself where only its holder and the caller hold it; false: nothing is
// done.
bool list_extend_own(List *list, Value right);
// How two plain numbers (int, float, bool) compare by their exact values; false: one is nan.
bool value_order_numbers(Value a, Value b, int *out);
// The total order that sorted, min and max use: numbers, strings, and lists of them. `out` < 0, 0,
// > 0.
Status value_compare(Value a, Value b, int *out) MUST_USE;

// Equality as `==` on values that are not tensors of rank > 0.
Status value_equals(Value a, Value b, bool *out) MUST_USE;

#endif
