// The numbers of a tensor as files of tensors hold them: row-major, little-endian, in the tensor's
// own type or quantised. Knows no file format.
#ifndef MODEL_TENSOR_WRITE_H
#define MODEL_TENSOR_WRITE_H

#include <stdio.h>

#include "tensor/tensor.h"

// Bytes of `shape` stored as `dtype`; the last dimension is a multiple of the type's block.
size_t tensor_stored_bytes(const Shape *shape, DType dtype);
// Appends the tensor's numbers as `stored`: its own type, another float type, or one that
// quantise_can make. `name` is for messages. STATUS_VALUE for numbers that cannot be quantised.
Status tensor_write(FILE *stream, Tensor *tensor, DType stored, const char *name) MUST_USE;

#endif
