// Folds of doubles, accumulated in doubles.
#include "device/cpu/fold.h"

#include "device/cpu/simd/vector.h"
#include "device/cpu/simd/vector_math.h"

#define IS_FLOAT
#define NAME fold_f64
#define real double
#define wide double
#define WIDE f
#define LOWEST -INFINITY
#define HIGHEST INFINITY
#define NOT_A_NUMBER NAN
#define EXP_LOWEST -708.0
#define EXP_SMALLEST 3.4e-308 // a little above its exp
#define IS_NAN(v) ((v) != (v))

#include "device/cpu/simd/fold_rows.h"
