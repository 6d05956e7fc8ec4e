// Products with few rows by matrices of quantised types, once per instruction set: they share one.
#include "device/cpu/simd/thin.h"

void ISA(dot_groups)(const ThinProduct *product, float_GroupLoad load, int64_t item_bytes) {
    float_dot_more(product, load, item_bytes);
}

#define KIND_BOOL(code)
#define KIND_INT(code)
#define KIND_FLOAT(code)
#define KIND_QUANT(code) THIN_BLOCKS(code)
#define DTYPE(code, name, kind, ...) KIND_##kind(code)
#include "catalog/dtypes.def"
