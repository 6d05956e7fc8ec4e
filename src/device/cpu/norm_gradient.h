// Rows of the gradient of layer_norm.
#ifndef DEVICE_CPU_NORM_GRADIENT_H
#define DEVICE_CPU_NORM_GRADIENT_H

#include "device/cpu/cpu.h"

// A row of x, whose mean and 1 / standard deviation are known. Contiguous, of one compute type.
typedef struct NormRow {
    const void *up, *x, *weight; // weight NULL: ones
    void *out;                   // the gradient of x
    void *sums[2];               // to which the gradients of weight and bias are added; NULL: none
    int64_t count;
    double mean, factor;
} NormRow;

typedef struct NormSlopes {
    void (*row)(const NormRow *row);
    // totals[i] += numbers[i]
    void (*add)(double *totals, const void *numbers, int64_t count);
} NormSlopes;
extern const NormSlopes norm_slopes_f32_base, norm_slopes_f32_avx2, norm_slopes_f32_avx512;
extern const NormSlopes norm_slopes_f64_base, norm_slopes_f64_avx2, norm_slopes_f64_avx512;

#endif
