// What reductions, softmax and normalisation do to contiguous numbers of a compute type, one table
// per type and instruction set. Knows no dtype, no view.
#ifndef DEVICE_CPU_FOLD_H
#define DEVICE_CPU_FOLD_H

#include "device/cpu/convert.h"
#include "device/reduction.h"

// What a fold accumulates in: double for float types, int64 for integers.
typedef union Wide {
    double f;
    int64_t i;
} Wide;

// Folds `count` numbers into *state; the parameter is the fold's own.
typedef void (*FoldRow)(Wide *state, const void *numbers, int64_t count, Wide parameter);
// Rows of `count` numbers, of which each begins `stride` numbers behind the one before.
typedef struct FoldLines {
    const void *numbers;
    int64_t rows, stride, count;
} FoldLines;
// Folds each of `count` numbers of a row into a state of its own, one row after the other.
typedef void (*FoldColumns)(Wide *states, const FoldLines *lines, const Wide *parameters);

typedef struct FoldTable {
    FoldRow row[FOLD_COUNT]; // NULL where a fold is not defined for the type
    FoldColumns columns[FOLD_COUNT];
    Wide identity[FOLD_COUNT];
    // The first position of a number equal to `value`, or of a NaN when it is one; -1 for none.
    int64_t (*find)(const void *numbers, int64_t count, Wide value);
    // The rest is for float types only. out = exp(in - max), and returns their sum.
    double (*exp_row)(void *out, const void *in, int64_t count, double max);
    // out = (in - shift) * factor
    void (*scale_row)(void *out, const void *in, int64_t count, double shift, double factor);
    // The same times weight plus bias, either of which may be NULL.
    void (*affine_row)(void *out, const void *in, int64_t count, const double shift_factor[2],
                       const void *const weight_bias[2]);
} FoldTable;

extern const FoldTable fold_f32_base, fold_f32_avx2, fold_f32_avx512;
extern const FoldTable fold_f64_base, fold_f64_avx2, fold_f64_avx512;
extern const FoldTable fold_i64_base, fold_i64_avx2, fold_i64_avx512;

static inline const FoldTable *cpu_fold(CpuCompute compute) {
    if (compute == COMPUTE_F32) return CPU_CHOOSE(&fold_f32);
    return compute == COMPUTE_F64 ? CPU_CHOOSE(&fold_f64) : CPU_CHOOSE(&fold_i64);
}

// Two partial results of a fold.
static inline Wide fold_combine(Fold fold, bool whole, Wide a, Wide b) {
    switch (fold_kinds[fold]) {
    case FOLD_KIND_LARGEST:
        if (whole) return a.i > b.i ? a : b;
        return a.f > b.f || a.f != a.f ? a : b;
    case FOLD_KIND_SMALLEST:
        if (whole) return a.i < b.i ? a : b;
        return a.f < b.f || a.f != a.f ? a : b;
    case FOLD_KIND_PRODUCT: // integers wrap
        return whole ? (Wide){.i = (int64_t)((uint64_t)a.i * (uint64_t)b.i)}
                     : (Wide){.f = a.f * b.f};
    case FOLD_KIND_SUM:
    case FOLD_KIND_POSITIVE: break;
    }
    return whole ? (Wide){.i = (int64_t)((uint64_t)a.i + (uint64_t)b.i)} : (Wide){.f = a.f + b.f};
}

#endif
