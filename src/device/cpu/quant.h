// Block-quantised weights as GGUF stores them: reading them back as numbers. Knows no tensor.
#ifndef DEVICE_CPU_QUANT_H
#define DEVICE_CPU_QUANT_H

#include "catalog/dtype.h"

// Writes `count` float32 values, a multiple of the type's block; `blocks` needs no alignment.
void quant_dequantize(DType dtype, const void *blocks, float *out, int64_t count);

#endif
