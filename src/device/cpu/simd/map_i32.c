// Elementwise formulas on int32s, which wrap: this file is compiled with -fwrapv.
#include "device/cpu/map.h"

#include "device/cpu/simd/vector.h"

#define NAME map_i32
#define real int32_t
#define unsigned_real uint32_t
#define ONES _mm512_set1_epi32(1)

// Exact: doubles round by less than what separates a quotient from the next integer.
INLINE int32_t divided(int32_t a, int32_t b) {
    return (int32_t)((double)a / (double)b);
}

#include "device/cpu/simd/map_integer.h"
