// The column of gradients of the table of operations.
#include "tensor/gradient/rules.h"

// What the derivatives of maps.def and reductions.def read, as bits: an expression reads what its
// operands read.
#define of(op, ...) OPERAND_BITS(__VA_ARGS__, 0, 0)
#define OPERAND_BITS(a, b, c, ...) ((a) | (b) | (c))
#include "catalog/derivatives.h"
#define number(value) 0
#define up 0
#define x SAVE_X
#define y SAVE_Y
#define z SAVE_Z
#define result SAVE_RESULT
#define none GIVES_NONE
enum {
#define MAP1(code, formula, dx)                                                                    \
    READS_##code##_X = (dx), READS_##code##_Y = GIVES_NONE, READS_##code##_Z = GIVES_NONE,
#define MAP2(code, formula, dx, dy)                                                                \
    READS_##code##_X = (dx), READS_##code##_Y = (dy), READS_##code##_Z = GIVES_NONE,
#define MAP3(code, formula, dx, dy, dz)                                                            \
    READS_##code##_X = (dx), READS_##code##_Y = (dy), READS_##code##_Z = (dz),
#include "catalog/maps.def"
#define mean SAVE_X
#define REDUCTION(code, first, second, integers, finish, derivative)                               \
    READS_REDUCE_##code = (derivative),
#include "catalog/reductions.def"
#undef mean
};
#undef MAP1
#undef MAP2
#undef MAP3
#undef x
#undef y
#undef z

// Every operand says GIVES_NONE.
#define MAP_IS_CONSTANT(map)                                                                       \
    (((int)READS_##map##_X & (int)READS_##map##_Y & (int)READS_##map##_Z & GIVES_NONE) != 0)
#define X SAVE_X
#define Y SAVE_Y
#define Z SAVE_Z
#define R SAVE_RESULT
#define N GIVES_NONE
#define RULE(function, a, b, c)                                                                    \
    .kind = GRADIENT_RULE, .rule = rule_##function, .saves = {(a), (b), (c)}
#define DERIVED(reduction)                                                                         \
    .kind = (int)READS_REDUCE_##reduction == GIVES_NONE ? GRADIENT_CONSTANT : GRADIENT_RULE,       \
    .rule = rule_reduction, .saves = {READS_REDUCE_##reduction}
#define COMPOSED .kind = GRADIENT_COMPOSED
#define CONSTANT .kind = GRADIENT_CONSTANT
#define NO_GRADIENT .kind = GRADIENT_MISSING
const GradientInfo gradient_table[OP_COUNT] = {
#define OP_MAP(id, map, ...)                                                                       \
    {.name = #id,                                                                                  \
     .kind = MAP_IS_CONSTANT(map) ? GRADIENT_CONSTANT : GRADIENT_RULE,                             \
     .rule = rule_map,                                                                             \
     .saves = {READS_##map##_X, READS_##map##_Y, READS_##map##_Z}},
#define OP_RUN(id, outputs, shape, gradient, ...) {.name = #id, gradient},
#define OP_OVERLOAD(id, user_name, outputs, shape, gradient, ...) {.name = #id, gradient},
#define OP_REDUCE(id, user_name, reduction, kind_of_result, gradient, ...) {.name = #id, gradient},
#include "catalog/ops.def"
};
