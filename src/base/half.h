// float16 (IEEE binary16) and bfloat16 as 16-bit patterns; rounding is to nearest even, NaN stays
// NaN.
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <stdint.h>

float half_to_float(uint16_t half);
uint16_t half_from_float(float value);
float bfloat_to_float(uint16_t bfloat);
uint16_t bfloat_from_float(float value);

#endif
