// Products with few rows by matrices of float16, once per instruction set.
#include "device/cpu/simd/thin.h"

THIN_ELEMENTS(FLOAT16, float, Floats, LANES, floats_of_float16, 2)
