// Dequantisation: the arithmetic is in simd/blocks.h.
#include "device/cpu/quant.h"

#include "device/cpu/matrix.h"

void quant_dequantize(DType dtype, const void *blocks, float *out, int64_t count) {
    ASSERT(dtype_is_quant(dtype) && count % dtype_info[dtype].block_elements == 0);
    matrix_simd()->dequantize[dtype](blocks, out, count);
}
