// Results that the tape holds and a limit has no room for: where computing them again takes less
// time than moving them, they are forgotten, and made again before backward reads them.
#ifndef TENSOR_GRADIENT_REMAKE_H
#define TENSOR_GRADIENT_REMAKE_H

#include "tensor/gradient/tape_node.h"

// A result of a node, while it is where the node has put it.
struct TapeMade {
    TapeNode *node;
    Buffer *buffer;  // not counted; the buffer makes it NULL when its contents change or end
    TensorView view; // without its buffer
};

// Whether a node keeps an input that nothing recorded has made, to make its results again.
bool remake_wants(const TapeNode *node, const Tensor *input);
// After a node's operation: where its results are. Nothing where memory is not short.
void remake_note_results(TapeNode *node, Tensor *const *results, int count);
// The node is about to let go of what making its results again takes: those that others hold are
// made now.
void remake_end_node(TapeNode *node);
// What the rule of a node reads comes back, and stays until it is let go.
typedef VECTOR(Buffer *) RemakeHeld;
Status remake_begin_rule(TapeNode *node, RemakeHeld *held) MUST_USE;
void remake_end_rule(RemakeHeld *held);
// Something that results are made again from is about to change: they are made now.
Status remake_before_change(void) MUST_USE;
// The node's rule runs soon.
void remake_expect(const TapeNode *node);

#endif
