// The formulas of maps.def on doubles, for calls whose operands are all plain numbers.
#include <math.h>

#include "tensor/scalar.h"

#define INLINE static inline
#define real double
#define C(v) ((double)(v))
#define abs(a) fabs(a)
#define round(a) rint(a)
#include "device/cpu/simd/map_float.h"

#define TABLE const FloatFormula scalar_float_formulas[MAP_COUNT]
#define MAP1F MAP1
#define MAP2F MAP2
#define MAP1I(code, formula, ...)
#define MAP2I(code, formula, ...)
#include "tensor/scalar_formulas.h"
