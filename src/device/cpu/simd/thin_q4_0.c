// Products with few rows by matrices of q4_0, once per instruction set.
#include "device/cpu/simd/thin.h"

THIN_BLOCKS_OWN(Q4_0)
