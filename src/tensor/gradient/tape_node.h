// Nodes of the tape, for the files that keep and walk it.
#ifndef TENSOR_GRADIENT_TAPE_NODE_H
#define TENSOR_GRADIENT_TAPE_NODE_H

#include "base/memory.h"
#include "tensor/gradient/gradient.h"

typedef struct TapeMade TapeMade; // remake.h

struct TapeNode {
    Counted counted;
    const GradientInfo
        *info;   // NULL: a leaf, that is a parameter or a watched tensor without a past
    bool spent;  // its edges and what it saved are gone
    bool wanted; // of the current walk: leads to where gradients are wanted
    Origin origin;
    uint64_t number;           // counts up: inputs have smaller ones
    uint64_t place;            // in the walk: a leaf comes right after the last that uses it
    uint64_t walk;             // the last walk that came here
    int walks;                 // under way: one, and those that its rules have started
    TapeNode *previous, *next; // newer and older ones
    TapeNode *waiting;         // of nodes about to be freed
    const OpRow *op; // that was applied to the inputs with the attributes; NULL: something else was
    TapeMade *made;  // n_outputs; NULL: its results are not made again
    uint64_t changes; // of parameters, until then
    OpAttributes *attributes;
    void *kept;
    void (*release_kept)(void *);
    int n_outputs;
    Tensor *saved_outputs[OP_OUTPUTS_MAX]; // without a node: no cycle
    Tensor *incoming[OP_OUTPUTS_MAX];      // gradients that have arrived in the current walk
    Tensor *parameter;                     // of a leaf: borrowed; NULL once it is gone
    TapeNode *newer, *older;               // leaves with parameters
    Tensor *gradient;                      // accumulated for the parameter
    bool reached;                          // a gradient has ever arrived at the parameter
    uint64_t arrived;                      // the last walk in which one has
    int n_inputs;
    GradientInput inputs[];
};

// Where a walk ends: a result of a node.
typedef struct TapeEnd {
    TapeNode *node;
    int output;
} TapeEnd;
// What was recorded between results and ends, which everything that was there before is cut at.
typedef struct TapeSection {
    Tensor *const *results;
    Tensor *const *up; // their gradients; NULL where none arrived
    int n_results;
    const TapeEnd *ends;
    size_t n_ends;
} TapeSection;
// What was there before the mark and the results are made of, in the order in which it is found;
// borrowed.
typedef VECTOR(GradientInput) TapeEnds;
void tape_find_ends(Tensor *const *results, int count, TapeMark mark, TapeEnds *ends);
// The gradients at the ends, NULL where none arrives. They are recorded where recording is on.
Status tape_gradients_within(const TapeSection *section, Tensor **gradients) MUST_USE;

TapeNode *tape_node_retain(TapeNode *node);
void tape_node_release(TapeNode *node);
// Lets go of edges and saved tensors.
void tape_node_spend(TapeNode *node);
TapeNode *tape_leaf_new(void);
// The record of results that depend on the ends alone.
TapeRecord tape_begin_ends(const GradientInfo *info, const TapeEnds *ends);
// The tensor of a node's result; takes the reference to the node.
void tape_attach(Tensor *tensor, TapeNode *node, int output);
// The last operation that was given something that needs a gradient and lets none through, since
// tape_forget_cut; info is NULL when there was none.
typedef struct TapeCut {
    const GradientInfo *info;
    Origin origin;
} TapeCut;
TapeCut tape_last_cut(void);
void tape_forget_cut(void);
// A program's last reading of a tensor as plain numbers; name is NULL when there was none.
typedef struct TapeRead {
    const char *name;
    Origin origin;
} TapeRead;

struct Tape {
    bool enabled;
    bool busy;        // freeing the nodes that wait
    int pauses;       // operations with a rule that are running
    bool remakes;     // results can be forgotten: remake.h
    uint64_t changes; // counts those of parameters from then on
    size_t leaf_count, node_count;
    uint64_t next_number, walks;
    TapeNode *newest, *waiting;
    TapeNode *newest_parameter;
    TapeCut last_cut;
    TapeRead last_read;
};

// The leaves of parameters, newest first: among nodes they may be few.
TapeNode *tape_newest_parameter(void);
void tape_set_parameter(TapeNode *leaf, Tensor *parameter); // of the newest leaf
// A new tensor over x's buffer without a node.
Tensor *tape_alias(Tensor *x);

// Runs one rule; results[i] are new references or NULL.
Status gradient_run(TapeNode *node, Tensor **results);
// Adds the gradient of a part (GRADIENT_PART) to what has arrived for the whole, in place: the
// steps of a sequence together cost what the sequence is long.
Status gradient_add_part(TapeNode *node, Tensor *piece);

#endif
