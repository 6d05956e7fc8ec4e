// The step between the two halves of attention's gradient.
#include "device/cpu/attention_slopes.h"

#define DEFINE_SLOPES(real)                                                                        \
    static void slopes_##real(const real *restrict shares, real *restrict slopes, int64_t count,   \
                              double scale) {                                                      \
        real along = 0, factor = (real)scale;                                                      \
        _Pragma("omp simd reduction(+ : along)") for (int64_t i = 0; i < count; i++) along +=      \
            shares[i] * slopes[i];                                                                 \
        for (int64_t i = 0; i < count; i++) slopes[i] = shares[i] * (slopes[i] - along) * factor;  \
    }
DEFINE_SLOPES(float)
DEFINE_SLOPES(double)

void ISA(attention_slopes)(CpuCompute compute, const void *shares, void *slopes, int64_t count,
                           double scale) {
    if (compute == COMPUTE_F32)
        slopes_float(shares, slopes, count, scale);
    else
        slopes_double(shares, slopes, count, scale);
}
