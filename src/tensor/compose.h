// What the files that implement rows of ops_composed.def share: temporaries that release
// themselves, arguments with their defaults, and small shape arithmetic. Knows no operation.
#ifndef TENSOR_COMPOSE_H
#define TENSOR_COMPOSE_H

#include "tensor/op.h"
#include "tensor/scalar.h"
#include "tensor/view.h"

// The attribute of that name, or the fallback where neither caller nor signature gave one.
#define ATTRIBUTE_OR(call, name, fallback)                                                         \
    (op_has((call), ATTRIBUTE_##name) ? (call)->attributes->name : (fallback))

// The index-th input, borrowed; NULL when it was not given.
static inline Tensor *compose_input(const OpCall *call, int index) {
    return index < call->n_inputs ? call->inputs[index].tensor : NULL;
}
static inline KernelOperand compose_operand(const Tensor *tensor) {
    return (KernelOperand){.view = &tensor->view};
}
// Moves a temporary's reference into a result.
static inline Status compose_give(Tensor **temporary, Tensor **out) {
    *out = *temporary;
    *temporary = NULL;
    return STATUS_OK;
}

// x with a floating dtype: itself, or converted where it holds ints, bools or quantised blocks.
Status compose_floating(Tensor *x, Tensor **out) MUST_USE;
// x itself where it holds floats of any kind, else converted: for kernels that take mixed floats.
Status compose_stored_float(Tensor *x, DType dtype, Tensor **out) MUST_USE;
// x in the dtype that sums are safe in: float32 for the 16-bit floats and ints, else its own.
Status compose_wide(Tensor *x, Tensor **out) MUST_USE;
// Integers as int64: floats must be integral, bools are refused. `what` names the operand.
Status compose_whole(const OpCall *call, Tensor *x, const char *what, Tensor **out) MUST_USE;
// Every index must lie in -size..size-1; the failure shows the index, `dim` of x and its size.
Status compose_check_indexes(const Tensor *index, const Tensor *x, int dim) MUST_USE;
// Gives a number of an int64 tensor that is out of [least, most], or where all are in it one that
// is in it. One wait, or none for a literal and for what the device knows.
Status compose_within(const Tensor *index, int64_t least, int64_t most, int64_t *outside) MUST_USE;
// Has the device find out where the integers of x lie, if it keeps that: parts that are picked from
// it need no check of their own.
Status compose_know(Tensor *x) MUST_USE;
// A dimension of x; a rank-0 tensor counts as one element along dimension 0.
Status compose_dim(const Tensor *x, int64_t dim, int *out) MUST_USE;
// x, or a view [1] of it when its rank is 0.
Status compose_at_least_1d(Tensor *x, Tensor **out) MUST_USE;

// The view with one dimension made last, the order of the others kept.
TensorView compose_dim_last(const Tensor *x, int dim);
// A view of dims rank..: leading dimensions broadcast, the trailing `keep` ones untouched.
TensorView compose_broadcast_leading(const TensorView *view, const Shape *leading, int keep);
// The product of dims[first] .. dims[last - 1].
int64_t compose_product(const int64_t *dims, int first, int last);
Shape compose_shape(int rank, const int64_t *dims);

// Some tensors, borrowed.
typedef struct TensorSpan {
    Tensor *const *items;
    int count;
} TensorSpan;
// One kernel from tensors to one tensor.
Status compose_kernel(const OpCall *call, KernelId kernel, const KernelOptions *options,
                      TensorSpan inputs, Tensor *out) MUST_USE;
// Every element of `view` becomes the number.
Status compose_fill(const OpCall *call, const TensorView *view, Scalar value) MUST_USE;
// x op number, the number taking no part in the dtype.
Status compose_with_number(OpId op, Tensor *x, double number, Tensor **out) MUST_USE;

#endif
