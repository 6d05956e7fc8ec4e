// Rows of the gradient of layer_norm, once per instruction set.
#include "device/cpu/norm_gradient.h"

#include <stdbool.h>

#include "device/cpu/simd/vector.h"

#define SIMD_INLINE static inline __attribute__((always_inline))
#define real float
#define NAME(x) float_##x
#include "device/cpu/simd/norm_slopes_loops.h"
#undef real
#undef NAME
#define real double
#define NAME(x) double_##x
#include "device/cpu/simd/norm_slopes_loops.h"

const NormSlopes ISA(norm_slopes_f32) = {float_row, float_add};
const NormSlopes ISA(norm_slopes_f64) = {double_row, double_add};
