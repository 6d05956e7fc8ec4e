// Elementwise formulas on doubles.
#include "device/cpu/map.h"

#include "device/cpu/simd/vector.h"
#include "device/cpu/simd/vector_math.h"

#define IS_FLOAT
#define NAME map_f64
#define SLOPES slopes_f64
#define real double
#define C(v) ((double)(v))
#define ONES (__m512i) _mm512_set1_pd(1.0)
#define abs(a) fabs(a)
#define round(a) rint(a)

#include "device/cpu/simd/map_float.h"

#include "device/cpu/simd/map_blocks.h"

#include "device/cpu/simd/map_slopes.h"
