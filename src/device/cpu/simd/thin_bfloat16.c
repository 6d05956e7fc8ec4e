// Products with few rows by matrices of bfloat16, once per instruction set.
#include "device/cpu/simd/thin.h"

THIN_HALVES(BFLOAT16, floats_of_bfloat16)
