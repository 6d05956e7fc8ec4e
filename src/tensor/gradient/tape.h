// Automatic gradients: while something learns, op_apply leaves a node on the tape for every result
// that depends on a parameter or on a watched tensor; backward walks the nodes from the last to the
// first and applies the gradient rule of each. Knows rules only as functions (gradient.h).
#ifndef TENSOR_GRADIENT_TAPE_H
#define TENSOR_GRADIENT_TAPE_H

#include "base/runtime.h"
#include "tensor/view.h"

typedef struct TapeNode TapeNode;

typedef struct Tape Tape; // of a runtime
Tape *tape_new(void);
void tape_free(Tape *tape);

// True while recording is on and anything alive could need a gradient: the one branch that
// programs pay that learn nothing.
static inline bool tape_is_recording(void) {
    return runtime_current->tape_recording;
}

// Recording on or off (`with no_grad`, updates, validation); returns what it was.
bool tape_set_enabled(bool enabled);

// --- parameters

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

// --- gradients

// Whether a gradient would flow through x.
bool tensor_needs_gradient(const Tensor *x);
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
// The same for any result, starting from `up` (its shape) in place of 1; the tape stays, for
// further calls and for gradients of the gradients.
Status tape_gradients_along(Tensor *result, Tensor *up, Tensor *const *inputs, size_t count,
                            Tensor **gradients) MUST_USE;
// A program reads x as plain numbers, which carry no gradient: where nothing else leads to what is
// differentiated, tape_gradients_of fails and names the last such reading since tape_forget_reads.
void tape_note_read(const char *name, const Tensor *x);
void tape_forget_reads(void);
// x under a new identity, from which the tape records; gradients flow on to x.
Status tape_watch(Tensor *x, Tensor **out) MUST_USE;
// The same numbers with no past.
Status tape_detach(Tensor *x, Tensor **out) MUST_USE;

// --- the tape's life: nodes go with their tensors; these are for loops whose tensors outlive a
// turn

// What a program computed by itself: `output` depends on the inputs (TAPE_CUSTOM_INPUTS at most)
// through a gradient that `run` computes: gradients[i] are new references or NULL. `data` belongs
// to the tape from here on, whatever happens, and goes by `release`.
enum { TAPE_CUSTOM_INPUTS = 6 };
typedef struct TapeCustom {
    Status (*run)(void *data, Tensor *const *inputs, int n_inputs, Tensor *up, Tensor **gradients);
    void (*release)(void *data);
    void *data;
} TapeCustom;
void tape_record_custom(const TapeCustom *custom, Tensor *const *inputs, int n_inputs,
                        Tensor **output);

typedef uint64_t TapeMark;
TapeMark tape_mark(void);

// A part of a program that is forgotten once it has given its results and runs again when their
// gradients are wanted. `data` belongs to the tape as that of TapeCustom does.
enum { TAPE_REPLAY_RESULTS = 3 };
typedef struct TapeReplay {
    Status (*run)(void *data, Tensor **results, int count); // the same results as the first time
    void (*release)(void *data);
    void *data;
} TapeReplay;
// In place of `results`, which the part has made since the mark, come tensors that are recorded as
// one operation on whatever it has read from before.
void tape_record_replay(const TapeReplay *replay, TapeMark mark, Tensor **results, int count);
// Forgets what was recorded since the mark: tensors keep their numbers, and a later backward
// through them says that their tape is gone.
void tape_release_since(TapeMark mark);
// Nodes alive, parameters not counted.
size_t tape_node_count(void);

#endif
