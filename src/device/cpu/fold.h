// What reductions, softmax and normalisation do to contiguous numbers of a compute type, one table
// per type and instruction set. Knows no dtype, no view.
#ifndef DEVICE_CPU_FOLD_H
#define DEVICE_CPU_FOLD_H

#include "device/cpu/convert.h"

typedef enum Fold {
    FOLD_SUM,
    FOLD_SUM_ABS,
    FOLD_SUM_SQUARE,
    FOLD_COUNT_NONZERO,
    FOLD_SUM_EXP,       // of x - parameter
    FOLD_SUM_DEVIATION, // of (x - parameter)^2
    FOLD_PROD,
    FOLD_MAX,
    FOLD_MIN,
    FOLD_COUNT
} Fold;

// What a fold accumulates in: double for float types, int64 for integers.
typedef union Wide {
    double f;
    int64_t i;
} Wide;

// Folds `count` numbers into *state; the parameter is the fold's own.
typedef void (*FoldRow)(Wide *state, const void *numbers, int64_t count, Wide parameter);
// Folds each of `count` numbers into a state of its own.
typedef void (*FoldColumns)(Wide *states, const void *numbers, int64_t count,
                            const Wide *parameters);

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
    if (whole) {
        if (fold == FOLD_MAX) return a.i > b.i ? a : b;
        if (fold == FOLD_MIN) return a.i < b.i ? a : b;
        uint64_t x = (uint64_t)a.i, y = (uint64_t)b.i; // wraps
        return (Wide){.i = (int64_t)(fold == FOLD_PROD ? x * y : x + y)};
    }
    if (fold == FOLD_MAX) return a.f > b.f || a.f != a.f ? a : b;
    if (fold == FOLD_MIN) return a.f < b.f || a.f != a.f ? a : b;
    return (Wide){.f = fold == FOLD_PROD ? a.f * b.f : a.f + b.f};
}

#endif
