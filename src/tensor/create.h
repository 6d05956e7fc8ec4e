// Where and as what creating operations make their results.
#ifndef TENSOR_CREATE_H
#define TENSOR_CREATE_H

#include "tensor/compose.h"

typedef struct CreateTarget {
    Device *device;
    DType dtype;
} CreateTarget;

// The call's `dtype:` and `device:`, or the fallback on the default device.
Status create_target(const OpCall *call, DType fallback, CreateTarget *out) MUST_USE;
// The same with x's dtype and device for what the call does not say.
Status create_like(const OpCall *call, const Tensor *x, CreateTarget *out) MUST_USE;
// The call's `shape:`, which must be given and must not be negative anywhere.
Status create_shape(const OpCall *call, Shape *out) MUST_USE;

#endif
