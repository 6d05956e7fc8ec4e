// Folds of int64s, which wrap: this file is compiled with -fwrapv.
#include "device/cpu/fold.h"

#include "device/cpu/simd/vector.h"

#define NAME fold_i64
#define real int64_t
#define wide int64_t
#define WIDE i
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#define NOT_A_NUMBER 0
#define IS_NAN(v) false

#include "device/cpu/simd/fold_rows.h"
