// Vector versions of <math.h>: glibc's libmvec has them, at most 4 ulp off; the declarations let
// gcc find them (clang has -fveclib=libmvec).
#ifndef DEVICE_CPU_SIMD_VECTOR_MATH_H
#define DEVICE_CPU_SIMD_VECTOR_MATH_H

#include <math.h>

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
#define VECTOR_MATH1(name)                                                                         \
    __attribute__((simd("notinbranch"))) extern double name(double);                               \
    __attribute__((simd("notinbranch"))) extern float name##f(float);
#define VECTOR_MATH2(name)                                                                         \
    __attribute__((simd("notinbranch"))) extern double name(double, double);                       \
    __attribute__((simd("notinbranch"))) extern float name##f(float, float);
VECTOR_MATH1(exp)
VECTOR_MATH1(expm1)
VECTOR_MATH1(log)
VECTOR_MATH1(log1p)
VECTOR_MATH1(log10)
VECTOR_MATH1(log2)
VECTOR_MATH1(sin)
VECTOR_MATH1(cos)
VECTOR_MATH1(tan)
VECTOR_MATH1(asin)
VECTOR_MATH1(acos)
VECTOR_MATH1(atan)
VECTOR_MATH1(sinh)
VECTOR_MATH1(cosh)
VECTOR_MATH1(tanh)
VECTOR_MATH1(erf)
VECTOR_MATH1(erfc)
VECTOR_MATH2(pow)
VECTOR_MATH2(atan2)
#endif
#endif

#endif
