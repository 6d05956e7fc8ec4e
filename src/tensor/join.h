// Tensors made of others: joined, cut into pieces, repeated, padded.
#ifndef TENSOR_JOIN_H
#define TENSOR_JOIN_H

#include "tensor/view.h"

void tensor_array_release(TensorArray *array);
// count == 1: pieces of that size, the last may be smaller; else the sizes, which must add up.
Status tensor_split(Tensor *x, const int64_t *sizes, size_t count, int64_t dim,
                    TensorArray *out) MUST_USE;
// n pieces as even as torch.chunk makes them (never more than n).
Status tensor_chunk(Tensor *x, int64_t n, int64_t dim, TensorArray *out) MUST_USE;
Status tensor_concat(Tensor *const *tensors, size_t count, int64_t dim, Tensor **out) MUST_USE;
Status tensor_stack(Tensor *const *tensors, size_t count, int64_t dim, Tensor **out) MUST_USE;
// x `times` times along dim: as a whole, or each slice in its place.
Status tensor_repeat_dim(Tensor *x, int dim, int64_t times, bool each, Tensor **out) MUST_USE;
// What is moved off the end comes back at the start.
Status tensor_roll_dim(Tensor *x, int dim, int64_t shift, Tensor **out) MUST_USE;
// A border of `value`: before[i] and after[i] elements along dimension i.
Status tensor_pad(Tensor *x, const int64_t *before, const int64_t *after, Scalar value,
                  Tensor **out) MUST_USE;
// A copy on another device, or a new reference to x when it is there already.
Status tensor_to_device(Tensor *x, Device *device, Tensor **out) MUST_USE;

#endif
