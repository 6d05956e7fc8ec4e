// Folds of floats, accumulated in doubles.
#include "device/cpu/fold.h"

#include "device/cpu/simd/vector.h"
#include "device/cpu/simd/vector_math.h"

#define IS_FLOAT
#define NAME fold_f32
#define real float
#define wide double
#define WIDE f
#define LOWEST -INFINITY
#define HIGHEST INFINITY
#define NOT_A_NUMBER NAN
#define EXP_LOWEST -87.0f
#define EXP_SMALLEST 1.7e-38f // a little above its exp
#define IS_NAN(v) ((v) != (v))
#define exp(a) expf(a)

#include "device/cpu/simd/fold_rows.h"
