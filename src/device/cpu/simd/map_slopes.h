// The derivatives of maps.def as loops over `real`, after the formulas of map_blocks.h, of which
// they are made; and their table, which the includer names SLOPES.

// What an operation of the derivatives computes. Those of integers are not functions of floats.
#define OP_MAP(id, map, rule, ...) VALUE_##rule(id, map)
#define VALUE_FLOAT(id, map) static __typeof__(value_##map) *const of_##id UNUSED = value_##map;
#define VALUE_ARITHMETIC VALUE_FLOAT
#define VALUE_DIVIDE VALUE_FLOAT
#define VALUE_KEEP VALUE_FLOAT
#define VALUE_COMPARE VALUE_FLOAT
#define VALUE_APPROXIMATE VALUE_FLOAT
#define VALUE_LOGICAL VALUE_FLOAT
#define VALUE_WHERE VALUE_FLOAT
#define VALUE_INTEGER(id, map)
#define OP_RUN(id, ...)
#define OP_OVERLOAD(id, ...)
#include "catalog/ops.def"

#define of(op, ...) of_##op(__VA_ARGS__)
#define number(value) C(value)
#define none C(0) // is never asked for
#include "catalog/derivatives.h"

#define SLOPE(code, operand, derivative)                                                           \
    INLINE real slope_##code##_##operand(real up UNUSED, real x UNUSED, real y UNUSED,             \
                                         real result UNUSED) {                                     \
        return derivative;                                                                         \
    }                                                                                              \
    static void slopes_##code##_##operand(void *to, const void *const *in,                         \
                                          unsigned scalars UNUSED, int64_t count) {                \
        real *out = to;                                                                            \
        const real *a = in[0], *b = in[1], *c = in[2], *d = in[3];                                 \
        EACH(slope_##code##_##operand(AT(a), AT(b), AT(c), AT(d)))                                 \
        static const Formula formula = {slopes_##code##_##operand, SLOPE_OPERANDS};                \
        if (count % BLOCK != 0) run_rest(&formula, out, in, 0, count);                             \
    }
#undef MAP1
#undef MAP2
#undef MAP3
#define MAP1(code, formula, dx) SLOPE(code, 0, dx)
#define MAP2(code, formula, dx, dy) SLOPE(code, 0, dx) SLOPE(code, 1, dy)
#define MAP3 NOTHING
#include "catalog/maps.def"
#undef MAP1
#undef MAP2

#define MAP1(code, ...) [MAP_##code] = {slopes_##code##_0},
#define MAP2(code, ...) [MAP_##code] = {slopes_##code##_0, slopes_##code##_1},
const SlopeTable ISA(SLOPES) = {
#include "catalog/maps.def"
};
