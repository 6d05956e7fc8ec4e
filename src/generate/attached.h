// What a script has attached to a model: hooks on activations and low-rank adapters. A model with
// attachments is a value of its own over the same tensors: the handle's `attached` is NONE or
// {"hooks": [(name, function)], "adapters": [(parts, scale)]}, where parts are {name: (down, up)}.
#ifndef GENERATE_ATTACHED_H
#define GENERATE_ATTACHED_H

#include "eval/state.h"

// A model like `model` with one thing more. The arguments are borrowed.
Value attached_with_hook(Value model, Value name, Value function);
Value attached_with_adapter(Value model, Value parts, double scale);
bool attached_has_hooks(Value model);
Value attached_adapters(Value model); // the list of them, borrowed, or NONE

// The functions on an activation: NONE or a list, a new reference.
Value attached_hooks(Value attached, const char *name);
// What such functions make of an activation (taken); NONE from one of them changes nothing.
Value attached_apply_hooks(Interp *interp, Value hooks, Value activation);
// Calls `take` with the (down, up) of each adapter that has a part of that name.
typedef Status (*AttachedTake)(void *context, const char *name, Value parts, double scale);
Status attached_each_adapter(Value attached, const char *name, AttachedTake take,
                             void *context) MUST_USE;

// Pages declare, while they are opened, what can be attached to; then attached_check fails for an
// attachment whose name none has declared, with the nearest.
enum { ATTACHED_PROJECTION = 'p', ATTACHED_ACTIVATION = 'a' };
void attached_declare(Interp *interp, char kind, const char *name);
Status attached_check(const Interp *interp, Value model) MUST_USE;

#endif
