// Rows of attention's scores: what is made of them between its products.
#ifndef DEVICE_CPU_ATTENTION_SCORES_H
#define DEVICE_CPU_ATTENTION_SCORES_H

#include "device/cpu/convert.h"

// Rows have room for whole vectors, of numbers that do not matter.
enum { SCORE_PADDING = 16 };

typedef struct ScoreSimd {
    // The first `seen` scores become exp(score - *maximum), which first becomes the largest of them
    // if it is less, and those from there up to `count` 0; returns their sum. A NaN is passed over
    // in *maximum, and makes the sum NaN.
    float (*weigh)(float *scores, int64_t seen, int64_t count, float *maximum);
    void (*cap)(float *scores, int64_t count, float cap); // cap * tanh(score / cap)
    // sums * ours + more * theirs; factors of 1 change no bits of a number.
    void (*add)(float *sums, float ours, const float *more, float theirs, int64_t count);
} ScoreSimd;
extern const ScoreSimd score_simd_base, score_simd_avx2, score_simd_avx512;

// Some queries' scores of `count` keys, rows `stride` numbers apart. The first sees `seen` keys, if
// there are so many, each of the others `more` than the one before.
typedef struct ScoreRows {
    int64_t rows, count, stride, seen, more;
    double scale;
} ScoreRows;
// Of compute type F32 or F64: scores become the softmax of scores times scale, 0 where not seen.
CPU_DECLARE(void, attention_shares, (CpuCompute compute, const ScoreRows *rows, void *scores));
// slopes = shares * (slopes - sum(shares * slopes)) * scale: from the gradient of a softmax's
// result to that of the scores before they were scaled.
CPU_DECLARE(void, attention_slopes,
            (CpuCompute compute, const ScoreRows *rows, const void *shares, void *slopes));

#endif
