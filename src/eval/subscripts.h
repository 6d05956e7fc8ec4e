// x[...] and x.name: evaluated subscripts, reading through them, and the steps of an assignment.
#ifndef EVAL_SUBSCRIPTS_H
#define EVAL_SUBSCRIPTS_H

#include "eval/code.h"
#include "tensor/index.h"

typedef struct SubscriptCode {
    int kind; // of Subscript
    const Code *index, *start, *stop, *step;
    Span span;
} SubscriptCode;

// An evaluated subscript; owns its values.
typedef struct SubscriptValue {
    int kind;
    Value index, start, stop, step; // ABSENT where not written
} SubscriptValue;

// One step of a chain: .name or [subscripts].
typedef struct StepCode {
    const char *name; // NULL: subscripts
    size_t name_length;
    const SubscriptCode *subscripts;
    int count;
    Span span;
} StepCode;

void lower_step(Lowering *lowering, const Node *node, StepCode *out); // FIELD or INDEX
// Value none, or VALUE_FAIL with everything released.
Value subscripts_eval(Frame *frame, const StepCode *step, SubscriptValue *out);
void subscripts_release(SubscriptValue *subscripts, int count);
// object[subscripts]; borrows. The result is a new reference or VALUE_FAIL.
Value value_index(Value object, const SubscriptValue *subscripts, int count);
Value tensor_index(Tensor *tensor, const SubscriptValue *subscripts, int count);
// list[a:b] = items, with as many items as there may be; with a step as many as it selects.
Status list_assign_slice(List *list, const SubscriptValue *subscript, Value value) MUST_USE;
// object.name
Value value_field(Value object, const char *name, size_t length);
// Subscripts of a tensor. The items may hold tensors made here: index_items_release.
Status index_items(const SubscriptValue *subscripts, int count, IndexItem *items) MUST_USE;
void index_items_release(const SubscriptValue *subscripts, IndexItem *items, int count);
// A list index, negative from the end, as a position.
Status sequence_position(Value index, size_t count, const char *what, size_t *out) MUST_USE;
COLD Status fail_no_index(Value object);

#endif
