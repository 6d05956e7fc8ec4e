// Gradient rules of reductions, running sums and products, and sorting.
#include <math.h>

#include "tensor/gradient/rules.h"

#define RULE(name) Status rule_##name(Gradient *g)

static bool given(const Gradient *g, AttributeId attribute) {
    return g->attributes && (g->attributes->given >> attribute & 1u);
}

static int plain_dim(const Gradient *g, int64_t dim) {
    return (int)(dim < 0 ? dim + gradient_shape(g, 0).rank : dim);
}

ReducedDims gradient_reduced(const Gradient *g) {
    ReducedDims r = {.kept = gradient_shape(g, 0), .count = 1};
    bool some = given(g, ATTRIBUTE_dims);
    for (int i = 0; some && i < g->attributes->dims.rank; i++)
        if (r.kept.rank > 0) r.gone[plain_dim(g, g->attributes->dims.dims[i])] = true;
    if (!some && given(g, ATTRIBUTE_dim)) {
        some = true;
        if (r.kept.rank > 0) r.gone[plain_dim(g, g->attributes->dim)] = true;
    }
    for (int i = 0; i < r.kept.rank; i++) {
        if (!some) r.gone[i] = true;
        if (!r.gone[i]) continue;
        r.count *= (double)r.kept.dims[i];
        r.kept.dims[i] = 1;
    }
    return r;
}

static Term up_kept(Gradient *g, const ReducedDims *r) {
    return term_reshape(g, gradient_up(g), &r->kept);
}
static Term result_kept(Gradient *g, const ReducedDims *r) {
    return term_reshape(g, gradient_result(g), &r->kept);
}
static Status give(Gradient *g, Term term) {
    gradient_give(g, 0, term);
    return g->status;
}

static Term centred(Gradient *g, const ReducedDims *r, Term x) {
    return term_sub(g, x,
                    term_scaled(g, term_sum_kept(g, x, r->gone), r->count > 0 ? 1 / r->count : 0));
}

static double freedom(const Gradient *g, const ReducedDims *r) {
    return r->count - (given(g, ATTRIBUTE_correction) ? (double)g->attributes->correction : 0);
}

// Where all elements are equal the slope counts as 0.
RULE(std) {
    ReducedDims r = gradient_reduced(g);
    Term deviation = result_kept(g, &r), distance = centred(g, &r, gradient_input(g, 0));
    Term share = term_div(g, up_kept(g, &r), term_scaled(g, deviation, freedom(g, &r)));
    Term is_zero = term_binary(g, OP_eq, deviation, term_number(g, 0));
    return give(g, term_where(g, is_zero, term_number(g, 0), term_mul(g, share, distance)));
}

// Equal extremes share evenly where all elements are reduced.
static Term share_extreme(Gradient *g, const ReducedDims *r, Term x, Term extreme) {
    Term is_extreme = term_binary(g, OP_eq, x, extreme);
    Term ones = term_where(g, is_extreme, term_filled(g, 0, 1), term_number(g, 0));
    return term_div(g, ones, term_sum_kept(g, ones, r->gone));
}

// The first of equal ones along a dimension takes all.
static Status first_extreme(Gradient *g, const ReducedDims *r, int dim) {
    ASSERT(dim >= 0 && dim < RANK_MAX);
    bool is_max = g->info == &gradient_table[OP_max_along];
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(dim) | ATTRIBUTE_BIT(keepdim);
    attributes.dim = dim;
    attributes.keepdim = true;
    Term x = gradient_input(g, 0);
    Term index = term_op(g, is_max ? OP_argmax : OP_argmin, &x, 1, &attributes);
    Term inputs[3] = {term_filled(g, 0, 0), index, up_kept(g, r)};
    return give(g, term_op(g, OP_scatter_add, inputs, 3, &attributes));
}

RULE(extreme) {
    ReducedDims r = gradient_reduced(g);
    if (given(g, ATTRIBUTE_dim) && r.kept.rank > 0)
        return first_extreme(g, &r, plain_dim(g, g->attributes->dim));
    if (given(g, ATTRIBUTE_dim)) { // of two numbers, of which the other is a plain one
        Term is_chosen = term_binary(g, OP_eq, gradient_input(g, 0), gradient_result(g));
        return give(g, term_where(g, is_chosen, gradient_up(g), term_number(g, 0)));
    }
    Term share = share_extreme(g, &r, gradient_input(g, 0), result_kept(g, &r));
    return give(g, term_mul(g, up_kept(g, &r), share));
}

// |x|^(p-1) sign(x) / norm^(p-1); where the norm is 0 its slope counts as 0.
static Term norm_slope(Gradient *g, const ReducedDims *r, double p) {
    Term x = gradient_input(g, 0), norm = result_kept(g, r), zero = term_number(g, 0);
    Term is_zero = term_binary(g, OP_eq, norm, zero), sign = term_unary(g, OP_sign, x);
    if (p == 1) return sign;
    if (p == 2) return term_where(g, is_zero, zero, term_div(g, x, norm));
    Term magnitude = term_unary(g, OP_abs, x);
    if (isinf(p)) return term_mul(g, sign, share_extreme(g, r, magnitude, norm));
    Term power = term_binary(g, OP_pow, term_div(g, magnitude, norm), term_number(g, p - 1));
    Term outside = term_binary(g, OP_logical_or, is_zero, term_binary(g, OP_eq, x, zero));
    return term_where(g, outside, zero, term_mul(g, sign, power));
}

RULE(norm) {
    ReducedDims r = gradient_reduced(g);
    double p = given(g, ATTRIBUTE_p) ? g->attributes->p : 2;
    if (p == 0) return give(g, term_filled(g, 0, 0)); // counts: constant almost everywhere
    return give(g, term_mul(g, up_kept(g, &r), norm_slope(g, &r, p)));
}

// --- products and running sums: rows are [outer, n] with the elements that belong together last

typedef struct Rows {
    Shape order, moved, rows; // the permutation, the shape after it, and that shape folded
} Rows;

static Rows rows_of(const Shape *shape, const bool *gone) {
    Rows rows = {.order = {.rank = shape->rank},
                 .moved = {.rank = shape->rank},
                 .rows = {.rank = 2, .dims = {1, 1}}};
    int at = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < shape->rank; i++) {
            if (gone[i] != (pass == 1)) continue;
            rows.order.dims[at] = i;
            rows.moved.dims[at++] = shape->dims[i];
            rows.rows.dims[pass] *= shape->dims[i];
        }
    return rows;
}

static Term to_rows(Gradient *g, const Rows *rows, Term x) {
    return term_reshape(g, term_permute(g, x, &rows->order), &rows->rows);
}

static Term from_rows(Gradient *g, const Rows *rows, Term x) {
    Shape inverse = {.rank = rows->order.rank};
    for (int i = 0; i < inverse.rank; i++) inverse.dims[rows->order.dims[i]] = i;
    return term_permute(g, term_reshape(g, x, &rows->moved), &inverse);
}

static bool has_zero(Gradient *g, Term x) {
    Term tests[1] = {term_binary(g, OP_eq, x, term_number(g, 0))};
    Tensor *any = term_tensor(g, term_op(g, OP_any, tests, 1, NULL));
    uint8_t boolean = 0;
    if (any) gradient_fail(g, tensor_read_bools(any, &boolean));
    return boolean;
}

// [outer, n, n]: copy k of each row has 1 in place of its element k.
static Term rows_without_one(Gradient *g, Term rows) {
    Shape shape = term_shape(g, rows), wide = {.rank = 3};
    wide.dims[0] = shape.dims[0];
    wide.dims[1] = 1;
    wide.dims[2] = shape.dims[1];
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(n) | ATTRIBUTE_BIT(dtype) | ATTRIBUTE_BIT(device);
    attributes.n = shape.dims[1];
    attributes.dtype = DTYPE_BOOL;
    attributes.device = g->incoming[0]->device;
    Term diagonal = term_op(g, OP_eye, NULL, 0, &attributes);
    return term_where(g, diagonal, term_number(g, 1), term_reshape(g, rows, &wide));
}

static Term along_last(Gradient *g, OpId op, Term x) {
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(dim);
    attributes.dim = -1;
    return term_op(g, op, &x, 1, &attributes);
}

// up * product / x; where something is 0, the products of all the others.
RULE(prod) {
    ReducedDims r = gradient_reduced(g);
    Term x = gradient_input(g, 0), up = up_kept(g, &r);
    if (!has_zero(g, x)) return give(g, term_mul(g, up, term_div(g, result_kept(g, &r), x)));
    Rows rows = rows_of(&g->inputs[0].shape, r.gone);
    Term others = along_last(g, OP_prod, rows_without_one(g, to_rows(g, &rows, x)));
    return give(g, term_mul(g, up, from_rows(g, &rows, others)));
}

static Term reversed(Gradient *g, Term x) {
    Tensor *tensor = term_tensor(g, x), *result = NULL;
    if (!tensor) return (Term){0};
    return term_take(g, tensor_flip(tensor, -1, &result), &result);
}

static Term sum_from_here(Gradient *g, Term x) {
    return reversed(g, along_last(g, OP_cumsum, reversed(g, x)));
}

// What a scan ran along: one dimension, or all elements in a row.
static Rows scanned_rows(const Gradient *g, Shape *shape) {
    bool gone[RANK_MAX] = {false};
    *shape = gradient_shape(g, 0);
    if (!given(g, ATTRIBUTE_dim) || shape->rank == 0) {
        int64_t count = 1;
        for (int i = 0; i < shape->rank; i++) count *= shape->dims[i];
        *shape = (Shape){.rank = 1, .dims = {count}};
        gone[0] = true;
    } else {
        gone[plain_dim(g, g->attributes->dim)] = true;
    }
    return rows_of(shape, gone);
}

static Status give_scanned(Gradient *g, const Rows *rows, Term term) {
    return give(g, term_reshape(g, from_rows(g, rows, term), &g->inputs[0].shape));
}

static Term scan_rows(Gradient *g, const Rows *rows, const Shape *shape, Term x) {
    return to_rows(g, rows, term_reshape(g, x, shape));
}

RULE(cumsum) {
    Shape shape;
    Rows rows = scanned_rows(g, &shape);
    return give_scanned(g, &rows, sum_from_here(g, scan_rows(g, &rows, &shape, gradient_up(g))));
}

// For each element k the sum over j >= k of up_j times the product up to j without k.
static Term cumprod_with_zeros(Gradient *g, Term x, Term up) {
    Term products = along_last(g, OP_cumprod, rows_without_one(g, x));
    Shape shape = term_shape(g, up), wide = {.rank = 3};
    wide.dims[0] = shape.dims[0];
    wide.dims[1] = 1;
    wide.dims[2] = shape.dims[1];
    Term weighed = term_mul(g, products, term_reshape(g, up, &wide));
    return along_last(g, OP_sum, term_op(g, OP_triu, &weighed, 1, NULL));
}

RULE(cumprod) {
    Shape shape;
    Rows rows = scanned_rows(g, &shape);
    Term x = scan_rows(g, &rows, &shape, gradient_input(g, 0));
    Term up = scan_rows(g, &rows, &shape, gradient_up(g));
    if (has_zero(g, x)) return give_scanned(g, &rows, cumprod_with_zeros(g, x, up));
    Term result = scan_rows(g, &rows, &shape, gradient_result(g));
    return give_scanned(g, &rows, term_div(g, sum_from_here(g, term_mul(g, up, result)), x));
}

// Results: values and where they were; kept: the dimension.
static Status rule_sort(Gradient *g) {
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(dim);
    attributes.dim = *(const int *)g->kept;
    Term inputs[3] = {term_filled(g, 0, 0), gradient_saved_output(g, 1), gradient_up(g)};
    return give(g, term_op(g, OP_scatter_add, inputs, 3, &attributes));
}
const GradientInfo gradient_sort = {
    .name = "sort", .rule = rule_sort, .saves = {SAVE_RESULT, 0, 0}};
