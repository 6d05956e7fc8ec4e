// Other shapes over the same numbers: views where strides allow, copies where they do not. Results
// are new references; `x` is borrowed and materialised first. Dimensions may be negative.
#ifndef TENSOR_VIEW_H
#define TENSOR_VIEW_H

#include "tensor/tensor.h"

// Python's slice before it meets a dimension, and after: `count` elements from start on.
typedef struct SliceBounds {
    bool has_start, has_stop, has_step;
    int64_t start, stop, step;
} SliceBounds;
typedef struct ResolvedSlice {
    int64_t start, step, count;
} ResolvedSlice;
// Bounds count from the end when negative and are clamped. STATUS_INDEX when step is 0.
Status slice_resolve(const SliceBounds *bounds, int64_t size, ResolvedSlice *out) MUST_USE;
// The same on dimension dim of a view of x in the making; `source` is that dimension's number in x,
// which messages name.
Status view_slice(Tensor *x, int source, TensorView *view, int dim,
                  const ResolvedSlice *slice) MUST_USE;
// STATUS_INDEX with index, dimension and size; the dimension disappears.
Status view_select(Tensor *x, int source, TensorView *view, int dim, int64_t index) MUST_USE;

// STATUS_DTYPE for the dimension along which the blocks of a quantised tensor lie, that of stride
// 1: it cannot be cut.
Status view_refuse_blocks(const Tensor *x, int dim) MUST_USE;

// x as a result: a new reference, or an ordinary tensor over its buffer when x is a parameter.
Tensor *tensor_same(Tensor *x);

// One -1 means "the rest". A view when the strides allow, else a contiguous copy.
Status tensor_reshape(Tensor *x, const Shape *shape, Tensor **out) MUST_USE;
Status tensor_transpose(Tensor *x, int64_t d0, int64_t d1, Tensor **out) MUST_USE;
// All dimensions reversed: x.T.
Status tensor_reverse_dims(Tensor *x, Tensor **out) MUST_USE;
// dims: a permutation of 0..rank-1.
Status tensor_permute(Tensor *x, const Shape *dims, Tensor **out) MUST_USE;
// The dimension made last, the order of the others kept: what kernels over the last dimension want.
Status tensor_move_dim_last(Tensor *x, int64_t dim, Tensor **out) MUST_USE;
Status tensor_move_dim(Tensor *x, int64_t from, int64_t to, Tensor **out) MUST_USE;
// A -1 keeps x's size there.
Status tensor_broadcast_to(Tensor *x, const Shape *shape, Tensor **out) MUST_USE;
Status tensor_squeeze(Tensor *x, int64_t dim,
                      Tensor **out) MUST_USE; // a no-op when the size is not 1
Status tensor_squeeze_all(Tensor *x, Tensor **out) MUST_USE;
Status tensor_unsqueeze(Tensor *x, int64_t dim, Tensor **out) MUST_USE;
// Dimensions start..stop (included) become one.
Status tensor_flatten(Tensor *x, int64_t start, int64_t stop, Tensor **out) MUST_USE;
// Python's slice: bounds count from the end when negative and are clamped; step may be negative.
Status tensor_slice_by(Tensor *x, int64_t dim, const SliceBounds *bounds, Tensor **out) MUST_USE;
// From start to stop by steps of 1.
Status tensor_slice(Tensor *x, int64_t dim, int64_t start, int64_t stop, Tensor **out) MUST_USE;
// One index along dim, which disappears. STATUS_INDEX with index, dimension and size.
Status tensor_select(Tensor *x, int64_t dim, int64_t index, Tensor **out) MUST_USE;
// The diagonal of two dimensions as a new last dimension (a view).
Status tensor_diagonal(Tensor *x, int64_t d0, int64_t d1, Tensor **out) MUST_USE;
Status tensor_flip(Tensor *x, int64_t dim, Tensor **out) MUST_USE;

// All the pieces, as views in a new array of n references: release each, then free() it.
typedef struct TensorArray {
    Tensor **items;
    size_t count;
} TensorArray;

#endif
