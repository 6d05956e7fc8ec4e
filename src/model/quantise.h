// Blocks of GGUF's K types: 256 numbers to one block. False when a scale does not fit into float16.
#ifndef MODEL_QUANTISE_H
#define MODEL_QUANTISE_H

#include <stdbool.h>
#include <stdint.h>

#include "catalog/dtype.h"

bool quantise_q2_k(const float *x, uint8_t *out);
bool quantise_q3_k(const float *x, uint8_t *out);
bool quantise_q4_k(const float *x, uint8_t *out);
bool quantise_q5_k(const float *x, uint8_t *out);
bool quantise_q6_k(const float *x, uint8_t *out);

// True for types that quantise_row can make: q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k.
bool quantise_can(DType dtype);
// Blocks of `count` numbers, a multiple of the block, as ggml's reference quantises them (formulas:
// ggml, quantize_row_*_ref). False when a number is not finite or too large for the block's scale.
bool quantise_row(DType dtype, const float *numbers, int64_t count, uint8_t *blocks);

#endif
