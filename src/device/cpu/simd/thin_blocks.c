// Products with few rows by matrices of quantised types, once per instruction set: they share one.
#include "device/cpu/simd/thin.h"

void ISA(dot_groups)(const ThinProduct *product, float_Reader reader) {
    float_dot_more(product, reader);
}

#define KIND_BOOL(code)
#define KIND_INT(code)
#define KIND_FLOAT(code)
#define KIND_QUANT(code) THIN_BLOCKS(code)
#define DTYPE(code, name, kind, ...) KIND_##kind(code)
#include "catalog/dtypes.def"
