// How what computes tensors tells the tape. An operation with a gradient rule runs between
// tape_begin and tape_end: what it does inside is not recorded, its results get one node.
// Everything here costs one branch while nothing learns.
#ifndef TENSOR_GRADIENT_RECORD_H
#define TENSOR_GRADIENT_RECORD_H

#include "tensor/gradient/tape.h"
#include "tensor/op.h"

typedef struct Gradient Gradient; // gradient.h
typedef Status (*GradientRule)(Gradient *gradient);
// The result of a node once more, from what its inputs were.
typedef Status (*GradientAgain)(const TapeNode *node, Tensor *const *inputs, Tensor **result);

typedef enum GradientKind {
    GRADIENT_RULE,     // a function says how
    GRADIENT_COMPOSED, // made of operations that are recorded themselves
    GRADIENT_CONSTANT, // piecewise constant, or independent of its inputs: nothing flows
    GRADIENT_MISSING,  // none: backward through it fails
    GRADIENT_PART,     // the result shows a part of the input (kept: a TensorView), nothing twice
} GradientKind;

// What a rule reads, as bits: inputs 0 to 5 and the result. GIVES_NONE: the input only steers what
// becomes of others, and no gradient flows into it.
enum {
    SAVE_X = 1,
    SAVE_Y = 2,
    SAVE_Z = 4,
    SAVE_INPUT_3 = 8,
    SAVE_INPUT_4 = 16,
    SAVE_INPUT_5 = 32,
    SAVE_RESULT = 64,
    GIVES_NONE = 128,
};

typedef struct GradientInfo {
    const char *name;
    GradientKind kind;
    GradientRule rule;
    uint8_t saves[3];    // for the gradient of the first, second and any further input
    GradientAgain again; // below the level of rows: computes the result again; NULL: nothing can
    bool is_view;        // what it computes lies in its input's memory
} GradientInfo;
extern const GradientInfo gradient_table[OP_COUNT];

typedef struct TapeRecord {
    TapeNode *node; // NULL: nothing is recorded
    bool resume;    // recording was on and goes on at tape_end
} TapeRecord;

bool tape_call_needs_gradient(const OpCall *call);
TapeRecord tape_begin_call(const GradientInfo *info, const OpCall *call);
TapeRecord tape_begin_inputs(const GradientInfo *info, Tensor *const *inputs, int n_inputs);
// The result gets a node through which backward fails, naming the operation.
void tape_record_missing(const OpCall *call, Tensor **output);
Status tape_end_node(TapeRecord *record, Status status, Tensor **outputs, int n_outputs);
// A copy of what the rule needs next to tensors; `release` (NULL: none) is called before it is
// freed.
void tape_keep_copy(TapeRecord *record, const void *data, size_t bytes, void (*release)(void *));

// For operations below the level of rows: inputs may be NULL.
static inline TapeRecord tape_begin(const GradientInfo *info, Tensor *const *inputs, int n_inputs) {
    if (LIKELY(!tape_is_recording())) return (TapeRecord){0};
    return tape_begin_inputs(info, inputs, n_inputs);
}
static inline void tape_keep(TapeRecord *record, const void *data, size_t bytes) {
    if (UNLIKELY(record->node != NULL)) tape_keep_copy(record, data, bytes, NULL);
}
static inline Status tape_end(TapeRecord *record, Status status, Tensor **out) {
    if (LIKELY(!record->resume)) return status;
    return tape_end_node(record, status, out, 1);
}

// The tensor no longer comes from where it came from: its contents were overwritten.
void tape_forget(Tensor *tensor);
// The tensor is being destroyed.
void tape_leave(Tensor *tensor);
static inline bool tape_follows(const Tensor *tensor) {
    return UNLIKELY(tape_is_recording()) && tensor->node;
}

// Views over x: `out` has just been made of it.
void tape_record_reshape(Tensor *x, Tensor *out);
void tape_record_permute(Tensor *x, const Shape *order, Tensor *out);
void tape_record_broadcast(Tensor *x, Tensor *out);
void tape_record_cast(Tensor *x, Tensor *out);
// out shows the part of x that `part` shows of a contiguous tensor at offset 0 of x's shape.
void tape_record_part(Tensor *x, const TensorView *part, Tensor *out);
// out holds x at `part` and constants elsewhere; `part` is a view of a contiguous tensor of out's
// shape at offset 0.
void tape_record_place(Tensor *x, const TensorView *part, Tensor *out);
// x's dimensions laid out contiguously from offset 0, for the two above.
TensorView tape_dense_view(const Tensor *x);

#endif
