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

// Whether a gradient would flow through x.
bool tensor_needs_gradient(const Tensor *x);

// --- the tape's life: nodes go with their tensors; these are for loops whose tensors outlive a
// turn

typedef uint64_t TapeMark;
TapeMark tape_mark(void);

// Forgets what was recorded since the mark: tensors keep their numbers, and a later backward
// through them says that their tape is gone.
void tape_release_since(TapeMark mark);
// Nodes alive, parameters not counted.
size_t tape_node_count(void);

#endif
