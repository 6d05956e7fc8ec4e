// The formulas of maps.def on doubles, for calls whose operands are all plain numbers.
#include <math.h>

#include "tensor/scalar.h"

#define INLINE static inline
#define real double
#define C(v) ((double)(v))
#define abs(a) fabs(a)
#define round(a) rint(a)
#include "device/cpu/simd/map_float.h"

#define FORMULA(code, formula)                                                                     \
    static double map_##code(double x, double y, double z) {                                       \
        (void)x, (void)y, (void)z;                                                                 \
        return formula;                                                                            \
    }
#define MAP1(code, formula, ...) FORMULA(code, formula)
#define MAP2(code, formula, ...) FORMULA(code, formula)
#define MAP3(code, formula, ...) FORMULA(code, formula)
#define MAP1F MAP1
#define MAP2F MAP2
#define MAP1I(code, formula, ...)
#define MAP2I(code, formula, ...)
#include "catalog/maps.def"
#undef MAP1
#undef MAP2
#undef MAP3

#define MAP1(code, formula, ...) [MAP_##code] = map_##code,
#define MAP2(code, formula, ...) [MAP_##code] = map_##code,
#define MAP3(code, formula, ...) [MAP_##code] = map_##code,
const FloatFormula scalar_float_formulas[MAP_COUNT] = {
#include "catalog/maps.def"
};
