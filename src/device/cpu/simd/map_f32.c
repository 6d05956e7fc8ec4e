// Elementwise formulas on floats.
#include "device/cpu/map.h"

#include "device/cpu/simd/vector.h"
#include "device/cpu/simd/vector_math.h"

#define IS_FLOAT
#define NAME map_f32
#define SLOPES slopes_f32
#define real float
#define C(v) ((float)(v))
#define ONES (__m512i) _mm512_set1_ps(1.0f)
#define exp(a) expf(a)
#define expm1(a) expm1f(a)
#define log(a) logf(a)
#define log1p(a) log1pf(a)
#define log10(a) log10f(a)
#define log2(a) log2f(a)
#define sin(a) sinf(a)
#define cos(a) cosf(a)
#define tan(a) tanf(a)
#define asin(a) asinf(a)
#define acos(a) acosf(a)
#define atan(a) atanf(a)
#define sinh(a) sinhf(a)
#define cosh(a) coshf(a)
#define tanh(a) tanhf(a)
#define erf(a) erff(a)
#define erfc(a) erfcf(a)
#define sqrt(a) sqrtf(a)
#define floor(a) floorf(a)
#define ceil(a) ceilf(a)
#define trunc(a) truncf(a)
#define rint(a) rintf(a)
#define pow(a, b) powf(a, b)
#define atan2(a, b) atan2f(a, b)
#define fmod(a, b) fmodf(a, b)
#define copysign(a, b) copysignf(a, b)
#define abs(a) fabsf(a)
#define round(a) rintf(a)

#include "device/cpu/simd/map_float.h"

#include "device/cpu/simd/map_blocks.h"

#include "device/cpu/simd/map_slopes.h"
