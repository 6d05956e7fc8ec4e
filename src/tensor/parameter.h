// Parameters: tensors that learn, their gradients, and tensors that gradients are asked of.
#ifndef TENSOR_PARAMETER_H
#define TENSOR_PARAMETER_H

#include "tensor/gradient/tape.h"

// A new parameter with x's contents, or x itself when it is one already. Fails unless the dtype is
// a float. Parameters are numbered in the order in which they are made.
Status tape_parameter_new(Tensor *x, Tensor **out) MUST_USE;
// Every parameter that is alive, in order of declaration: new references.
void tape_parameters(TensorArray *out);
// Counts up over the life of the runtime.
uint64_t tape_parameter_number(const Tensor *parameter);
// Whether a backward has ever reached it.
bool tape_parameter_reached(const Tensor *parameter);
// The gradient accumulated so far, borrowed; NULL when none has arrived since it was cleared.
Tensor *tape_gradient(const Tensor *parameter);
// Replaces the gradient (takes the reference); NULL clears it.
void tape_set_gradient(Tensor *parameter, Tensor *gradient);
// Clears the gradients of every parameter.
void tape_zero_gradients(void);
// After this the parameter's buffer is contiguous and shared with nobody, so that a kernel may
// update it in place; whoever held a view or a saved copy keeps the old numbers.
Status tape_parameter_unshare(Tensor *parameter) MUST_USE;
// The parameter takes over the contents of value: same shape, converted to its dtype. Never
// recorded.
Status tape_parameter_assign(Tensor *parameter, Tensor *value) MUST_USE;
// Whether something recorded and not used up yet reads the parameter.
bool tape_parameter_held(const Tensor *parameter);
// sqrt(sum of squares) over the gradients of the parameters; 0 without any.
Status tape_gradient_norm(Tensor *const *parameters, size_t count, double *norm) MUST_USE;
// Scales their gradients by limit / norm when the norm is larger; the norm before it comes back.
Status tape_clip_gradient_norm(Tensor *const *parameters, size_t count, double limit,
                               double *norm) MUST_USE;
// No element of their gradients beyond limit, on either side of 0.
Status tape_clip_gradient_value(Tensor *const *parameters, size_t count, double limit) MUST_USE;
// x under a new identity, from which the tape records; gradients flow on to x.
Status tape_watch(Tensor *x, Tensor **out) MUST_USE;
// The same numbers with no past.
Status tape_detach(Tensor *x, Tensor **out) MUST_USE;

#endif
