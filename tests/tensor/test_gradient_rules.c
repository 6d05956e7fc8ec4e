// Gradient rules of elementwise operations, reductions, scans and sorting.
#include "gradients.h"

#define UNARY(id, from, to)                                                                        \
    { .name = #id, .op = OP_##id, .n_inputs = 1, .shapes = {S(2, 3)}, .low = from, .high = to }
#define BINARY(id, from, to)                                                                       \
    {                                                                                              \
        .name = #id, .op = OP_##id, .n_inputs = 2, .shapes = {S(2, 3), S(2, 3)}, .low = from,      \
        .high = to                                                                                 \
    }
#define BINARY_BROADCAST(id, from, to)                                                             \
    {                                                                                              \
        .name = #id " broadcast", .op = OP_##id, .n_inputs = 2, .shapes = {S(2, 1, 3), S(4, 1)},   \
        .low = from, .high = to                                                                    \
    }

static void exact(OpAttributes *a) {
    a->given = ATTRIBUTE_BIT(exact);
    a->exact = true;
}

static const double ternary_mask[] = {1, 0, 0, 1, 1, 0};

static const Case maps[] = {
    BINARY(add, -2, 2),
    BINARY_BROADCAST(add, -2, 2),
    BINARY(sub, -2, 2),
    BINARY_BROADCAST(sub, -2, 2),
    BINARY(mul, -2, 2),
    BINARY_BROADCAST(mul, -2, 2),
    BINARY(div, 0.5, 2),
    BINARY_BROADCAST(div, 0.5, 2),
    BINARY(rem, 0.5, 3),
    BINARY(mod, 0.5, 3),
    BINARY(pow, 0.5, 2),
    BINARY_BROADCAST(pow, 0.5, 2),
    UNARY(neg, -2, 2),
    UNARY(abs, -2, 2),
    UNARY(square, -2, 2),
    UNARY(exp, -2, 2),
    UNARY(expm1, -2, 2),
    UNARY(log, 0.5, 2),
    UNARY(log1p, -0.5, 2),
    UNARY(log10, 0.5, 2),
    UNARY(log2, 0.5, 2),
    UNARY(sqrt, 0.5, 2),
    UNARY(rsqrt, 0.5, 2),
    UNARY(sin, -2, 2),
    UNARY(cos, -2, 2),
    UNARY(tan, -1, 1),
    UNARY(asin, -0.8, 0.8),
    UNARY(acos, -0.8, 0.8),
    UNARY(atan, -2, 2),
    BINARY(atan2, 0.3, 2),
    UNARY(sinh, -2, 2),
    UNARY(cosh, -2, 2),
    UNARY(tanh, -2, 2),
    UNARY(erf, -2, 2),
    BINARY(minimum, -2, 2),
    BINARY(maximum, -2, 2),
    BINARY(min, -2, 2),
    BINARY(max, -2, 2),
    UNARY(relu, -2, 2),
    BINARY(leaky_relu, -2, 2),
    BINARY(elu, -2, 2),
    UNARY(gelu, -2, 2),
    UNARY(sigmoid, -2, 2),
    UNARY(log_sigmoid, -2, 2),
    UNARY(silu, -2, 2),
    UNARY(softplus, -2, 2),
    UNARY(mish, -2, 2),
    UNARY(hardswish, -5, 5),
    BINARY(swiglu, -2, 2),
    BINARY(fused_add_relu, -2, 2),
    BINARY(fused_mul_relu, -2, 2),
    {.name = "fused_affine",
     .op = OP_fused_affine,
     .n_inputs = 3,
     .shapes = {S(2, 3), S(3), {.rank = 0}},
     .low = -2,
     .high = 2},
    {.name = "clamp",
     .op = OP_clamp,
     .n_inputs = 3,
     .shapes = {S(2, 3), S(2, 3), S(2, 3)},
     .low = -2,
     .high = 2},
    {.name = "where",
     .op = OP_where,
     .n_inputs = 3,
     .shapes = {S(2, 3), S(2, 3), S(3)},
     .low = -2,
     .high = 2,
     .fixed = 1,
     .numbers = {ternary_mask},
     .dtypes = {DTYPE_BOOL}},
    {.name = "gelu exact",
     .op = OP_gelu_choice,
     .n_inputs = 1,
     .shapes = {S(2, 3)},
     .low = -2,
     .high = 2,
     .set = exact},
    {.name = "mul of rank 0",
     .op = OP_mul,
     .n_inputs = 2,
     .shapes = {{.rank = 0}, {.rank = 0}},
     .low = -2,
     .high = 2},
    {.name = "mul of nothing",
     .op = OP_mul,
     .n_inputs = 2,
     .shapes = {S(0, 3), S(1, 3)},
     .low = -2,
     .high = 2},
};

static void dim_0(OpAttributes *a) {
    a->given = ATTRIBUTE_BIT(dim) | ATTRIBUTE_BIT(k);
    a->dim = 0;
    a->k = 2;
}
static void dim_last(OpAttributes *a) {
    a->given =
        ATTRIBUTE_BIT(dim) | ATTRIBUTE_BIT(keepdim) | ATTRIBUTE_BIT(correction) | ATTRIBUTE_BIT(k);
    a->dim = -1;
    a->keepdim = true;
    a->correction = 1;
    a->k = 1;
}
static void dims_0_2(OpAttributes *a) {
    a->given = ATTRIBUTE_BIT(dims);
    a->dims = (Shape){.rank = 2, .dims = {0, 2}};
}
static void p_1(OpAttributes *a) {
    a->given = ATTRIBUTE_BIT(p);
    a->p = 1;
}
static void p_3(OpAttributes *a) {
    a->given = ATTRIBUTE_BIT(p) | ATTRIBUTE_BIT(dim);
    a->p = 3;
    a->dim = 1;
}
static void p_inf(OpAttributes *a) {
    a->given = ATTRIBUTE_BIT(p);
    a->p = INFINITY;
}

#define REDUCED(id)                                                                                \
    {.name = #id, .op = OP_##id, ONE(S(2, 3, 2)), .low = -2, .high = 2},                           \
        {.name = #id " dim 0",                                                                     \
         .op = OP_##id,                                                                            \
         ONE(S(2, 3, 2)),                                                                          \
         .low = -2,                                                                                \
         .high = 2,                                                                                \
         .set = dim_0},                                                                            \
    {                                                                                              \
        .name = #id " kept", .op = OP_##id, ONE(S(2, 3, 2)), .low = -2, .high = 2, .set = dim_last \
    }
#define REDUCED_DIMS(id)                                                                           \
    { .name = #id, .op = OP_##id, ONE(S(2, 3, 2)), .low = -2, .high = 2, .set = dims_0_2 }

static const Case reductions[] = {
    REDUCED(sum),
    REDUCED_DIMS(sum_dims),
    REDUCED(mean),
    REDUCED_DIMS(mean_dims),
    REDUCED(prod),
    REDUCED_DIMS(prod_dims),
    REDUCED(max_along),
    REDUCED(min_along),
    REDUCED(var),
    REDUCED_DIMS(var_dims),
    REDUCED(std),
    REDUCED_DIMS(std_dims),
    REDUCED(logsumexp),
    REDUCED(cumsum),
    REDUCED(cumprod),
    REDUCED(median),
    REDUCED(norm),
    {.name = "norm 1", .op = OP_norm, ONE(S(2, 3)), .low = -2, .high = 2, .set = p_1},
    {.name = "norm 3", .op = OP_norm, ONE(S(2, 3)), .low = -2, .high = 2, .set = p_3},
    {.name = "norm inf", .op = OP_norm, ONE(S(2, 3)), .low = -2, .high = 2, .set = p_inf},
    {.name = "sort", .op = OP_sort, ONE(S(3, 4)), .low = -2, .high = 2, .set = dim_0},
    {.name = "topk", .op = OP_topk, ONE(S(3, 4)), .low = -2, .high = 2, .set = dim_0},
    {.name = "softmax", .op = OP_softmax, ONE(S(2, 3)), .low = -2, .high = 2},
    {.name = "softmax dim 0", .op = OP_softmax, ONE(S(2, 3)), .low = -2, .high = 2, .set = dim_0},
    {.name = "log_softmax", .op = OP_log_softmax, ONE(S(2, 3)), .low = -2, .high = 2},
};

TABLE(maps)
TABLE(reductions)

// Each row once more with numbers and with nothing in place of its inputs.
static void check_small(const Case *cases, size_t count, const Shape *shape) {
    for (size_t i = 0; i < count; i++) {
        Case small = cases[i];
        for (int j = 0; j < small.n_inputs; j++) small.shapes[j] = *shape;
        check_case(&small);
    }
}

// Reductions of one number and of none that have a slope there.
static const Case whole_reductions[] = {
#define WHOLE(id)                                                                                  \
    { .name = #id, .op = OP_##id, ONE(S(1)), .low = 0.5, .high = 2 }
    WHOLE(sum),    WHOLE(mean),    WHOLE(prod),    WHOLE(logsumexp),   WHOLE(norm),
    WHOLE(cumsum), WHOLE(cumprod), WHOLE(softmax), WHOLE(log_softmax),
};
static const Case of_numbers[] = {WHOLE(max_along), WHOLE(min_along), WHOLE(median)};

static void test_small(void **state) {
    (void)state;
    const Shape number = {.rank = 0}, nothing = {.rank = 2, .dims = {0, 3}};
    check_small(maps, sizeof maps / sizeof *maps, &number);
    check_small(maps, sizeof maps / sizeof *maps, &nothing);
    check_small(whole_reductions, sizeof whole_reductions / sizeof *whole_reductions, &number);
    check_small(whole_reductions, sizeof whole_reductions / sizeof *whole_reductions, &nothing);
    check_small(of_numbers, sizeof of_numbers / sizeof *of_numbers, &number);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_maps),
                                       cmocka_unit_test(test_reductions),
                                       cmocka_unit_test(test_small)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
