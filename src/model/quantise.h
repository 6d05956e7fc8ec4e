// Blocks of GGUF's K types: 256 numbers to one block. False when a scale does not fit into float16.
#ifndef MODEL_QUANTISE_H
#define MODEL_QUANTISE_H

#include <stdbool.h>
#include <stdint.h>

bool quantise_q2_k(const float *x, uint8_t *out);
bool quantise_q3_k(const float *x, uint8_t *out);
bool quantise_q4_k(const float *x, uint8_t *out);
bool quantise_q5_k(const float *x, uint8_t *out);
bool quantise_q6_k(const float *x, uint8_t *out);

#endif
