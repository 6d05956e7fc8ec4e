// What convolution and pooling do to rows of images, for each type of numbers.
#include "device/cpu/windows.h"

#include <math.h>
#include <string.h>

#include "device/cpu/simd/lanes.h"

#define Real float
#define LOWEST (-INFINITY)
#define IS_NAN(x) isnan(x)
#define LOOP(name) name##_narrow
#include "device/cpu/simd/windows_loops.h"
#undef Real
#undef LOWEST
#undef IS_NAN
#undef LOOP

#define Real double
#define LOWEST (-(double)INFINITY)
#define IS_NAN(x) isnan(x)
#define LOOP(name) name##_wide
#include "device/cpu/simd/windows_loops.h"
#undef Real
#undef LOWEST
#undef IS_NAN
#undef LOOP

#define Real int64_t
#define LOWEST INT64_MIN
#define IS_NAN(x) false
#define LOOP(name) name##_whole
#include "device/cpu/simd/windows_loops.h"

const WindowRows *ISA(window_rows)(CpuCompute compute) {
    static const WindowRows *const tables[COMPUTE_COUNT] = {
        [COMPUTE_F32] = &rows_narrow, [COMPUTE_F64] = &rows_wide, [COMPUTE_I64] = &rows_whole};
    return tables[compute];
}
