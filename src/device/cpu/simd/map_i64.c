// Elementwise formulas on int64s, which wrap: this file is compiled with -fwrapv.
#include "device/cpu/map.h"

#include "device/cpu/simd/vector.h"

#define NAME map_i64
#define real int64_t
#define unsigned_real uint64_t
#define ONES _mm512_set1_epi64(1)

INLINE int64_t divided(int64_t a, int64_t b) {
    return a / b;
}

#include "device/cpu/simd/map_integer.h"
