// Backward through the tape, and gradients of given tensors.
#ifndef TENSOR_GRADIENT_BACKWARD_H
#define TENSOR_GRADIENT_BACKWARD_H

#include "tensor/gradient/tape.h"

// Adds the gradients of loss (one element, any rank) to those of the parameters that it reaches and
// uses its tape up. `reached`, when not NULL, takes those parameters in order of declaration (new
// references). Fails when loss does not depend on any parameter.
Status tape_backward(Tensor *loss, TensorArray *reached) MUST_USE;
// Gradients of loss with respect to watched tensors (tape_watch) or parameters: new references,
// zeros where loss does not depend on one. They carry gradients themselves where they depend on
// anything else that learns. Parameters' own gradients stay as they are.
Status tape_gradients_of(Tensor *loss, Tensor *const *inputs, size_t count,
                         Tensor **gradients) MUST_USE;
// Called with what a rule gave for an operation's inputs (NULL: nothing), from the last operation
// to the first; NULL: nobody is.
void tape_set_watch(void (*watch)(const char *op_name, Tensor *const *gradients, int count));
// Told of a parameter as soon as nothing will be added to its gradient by the backward that runs,
// which fails when `tell` does; NULL: nobody is. Borrowed until it is set back.
typedef struct TapeArrival {
    Status (*tell)(void *context, Tensor *parameter);
    void *context;
} TapeArrival;
void tape_set_arrival(const TapeArrival *arrival);
// The same for any result, starting from `up` (its shape) in place of 1; the tape stays, for
// further calls and for gradients of the gradients.
Status tape_gradients_along(Tensor *result, Tensor *up, Tensor *const *inputs, size_t count,
                            Tensor **gradients) MUST_USE;
// A program reads x as plain numbers, which carry no gradient: where nothing else leads to what is
// differentiated, tape_gradients_of fails and names the last such reading since tape_forget_reads.
void tape_note_read(const char *name, const Tensor *x);
void tape_forget_reads(void);

#endif
