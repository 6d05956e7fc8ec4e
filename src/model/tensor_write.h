// The numbers of a tensor as files of tensors hold them: row-major, little-endian, in the tensor's
// own type or quantised. Knows no file format.
#ifndef MODEL_TENSOR_WRITE_H
#define MODEL_TENSOR_WRITE_H

#include <stdio.h>

#include "tensor/tensor.h"

// Bytes of `shape` stored as `dtype`; the last dimension is a multiple of the type's block.
size_t tensor_stored_bytes(const Shape *shape, DType dtype);
// True for types that quantise_row can make: q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k.
bool quantise_can(DType dtype);
// Blocks of `count` numbers, a multiple of the block, as ggml's reference quantises them (formulas:
// ggml, quantize_row_*_ref). False when a number is not finite or too large for the block's scale.
bool quantise_row(DType dtype, const float *numbers, int64_t count, uint8_t *blocks);
// Appends the tensor's numbers as `stored`: its own type, another float type, or one that
// quantise_can make. `name` is for messages. STATUS_VALUE for numbers that cannot be quantised.
Status tensor_write(FILE *stream, Tensor *tensor, DType stored, const char *name) MUST_USE;

#endif
