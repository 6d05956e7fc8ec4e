// Products with few rows by matrices of float64, once per instruction set.
#include "device/cpu/simd/thin.h"

THIN_ELEMENTS(FLOAT64, double, double_dot_more, Doubles, DOUBLE_LANES, double_vector_at, 8)
