// Products with few rows by matrices of bfloat16, once per instruction set.
#include "device/cpu/simd/thin.h"

THIN_ELEMENTS(BFLOAT16, float, Floats, LANES, floats_of_bfloat16, 2)
