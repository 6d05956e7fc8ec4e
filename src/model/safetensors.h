// Safetensors files: named tensors under a JSON header. The reader believes no number before it has
// checked it against the file. Knows neither models nor scripts.
#ifndef MODEL_SAFETENSORS_H
#define MODEL_SAFETENSORS_H

#include "base/memory.h"
#include "tensor/tensor.h"

typedef struct NamedTensor {
    char *name;     // owned
    Tensor *tensor; // counted
} NamedTensor;
typedef VECTOR(NamedTensor) NamedTensors;

// Copies the name, takes the reference.
void named_tensors_add(NamedTensors *tensors, const char *name, Tensor *tensor);
// Borrowed; NULL when there is none of that name.
Tensor *named_tensors_find(const NamedTensors *tensors, const char *name);
void named_tensors_free(NamedTensors *tensors);

// Every tensor of the file, on the default device, in the file's order. STATUS_FORMAT names the
// file and what is wrong with it.
Status safetensors_read(const char *path, NamedTensors *out) MUST_USE;
// The same from memory; `name` is for messages.
Status safetensors_parse(const uint8_t *bytes, size_t length, const char *name,
                         NamedTensors *out) MUST_USE;
// Writes beside the path and renames, so that a failure leaves what was there.
Status safetensors_write(const char *path, const NamedTensors *tensors) MUST_USE;

#endif
