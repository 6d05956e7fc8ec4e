// Pages: the file models/NAME.tl computes the models whose metadata says that their architecture is
// NAME. It declares `open(m: model)`, which gives a struct with the methods forward(ids), what the
// last layer gives for each of the ids that follow those before, and logits(x) of such rows.
// Without logits it is an encoder, whose forward takes a whole text.
#ifndef EVAL_PAGE_H
#define EVAL_PAGE_H

#include "eval/state.h"

// What the page's `open` gives for the model, a new reference. The page is looked for as imports
// are, from the script on, then among those of std/. STATUS_VALUE lists the known architectures.
Status page_open(Interp *interp, const char *architecture, Value model, Value *out) MUST_USE;
// The same with a file of std/ ("std/onnx.tl") and any value.
Status page_open_standard(Interp *interp, const char *path, Value argument, Value *out) MUST_USE;
// Whether what page_open gave has a method.
bool page_has(Value opened, const char *method);
// Calls a method of what page_open gave with one argument (borrowed); the tensor is a new
// reference.
Status page_call(Interp *interp, Value opened, const char *method, Value argument,
                 Tensor **out) MUST_USE;
void pages_clear(Interp *interp);   // their variables
void pages_release(Interp *interp); // their constants; afterwards no code of theirs may run
void pages_free(Interp *interp);

#endif
