// Products with few rows by matrices of float16, once per instruction set.
#include "device/cpu/simd/thin.h"

THIN_HALVES(FLOAT16, floats_of_float16)
