// Products with few rows by matrices of q6_k, once per instruction set.
#include "device/cpu/simd/thin.h"

THIN_BLOCKS_OWN(Q6_K)
