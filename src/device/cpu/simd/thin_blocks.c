// Products with few rows by matrices of the quantised types that have no file of their own, once
// per instruction set: they share one.
#include "device/cpu/simd/thin.h"

void ISA(dot_groups)(const ThinProduct *product, float_GroupLoad load, int64_t item_bytes) {
    float_dot(product, load, item_bytes);
}

#define PRODUCT_NONE(code)
#define PRODUCT_OWN(code)
#define PRODUCT_SHARED(code) THIN_BLOCKS_SHARED(code)
#define DTYPE(code, name, kind, block, bytes, short_name, gguf, product, ...)                      \
    PRODUCT_##product(code)
#include "catalog/dtypes.def"
