// Products with few rows by matrices of float32, once per instruction set.
#include "device/cpu/simd/thin.h"

THIN_ELEMENTS(FLOAT32, float, float_dot_more, Floats, LANES, float_vector_at, 4)
