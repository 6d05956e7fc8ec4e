// Gradient rules of convolution and pooling over images [batch, channels, height, width].
#include <math.h>

#include "shape/rules.h"
#include "tensor/gradient/rules.h"
#include "tensor/join.h"

static Term convolve(Gradient *g, Term x, Term weight, const Convolution *c) {
    int64_t numbers[6] = {c->stride.h,  c->stride.w,   c->padding.h,
                          c->padding.w, c->dilation.h, c->dilation.w};
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(stride) | ATTRIBUTE_BIT(padding) | ATTRIBUTE_BIT(dilation) |
                       ATTRIBUTE_BIT(groups);
    attributes.stride = (IntList){&numbers[0], 2};
    attributes.padding = (IntList){&numbers[2], 2};
    attributes.dilation = (IntList){&numbers[4], 2};
    attributes.groups = c->groups;
    Term inputs[2] = {x, weight};
    return term_op(g, OP_conv2d, inputs, 2, &attributes);
}

static Term padded(Gradient *g, Term x, Pair before, Pair after, double value) {
    int64_t first[RANK_MAX] = {0, 0, before.h, before.w}, last[RANK_MAX] = {0, 0, after.h, after.w};
    Tensor *tensor = term_tensor(g, x), *result = NULL;
    if (!tensor) return (Term){0};
    Scalar number = {.dtype = DTYPE_FLOAT64, .as.f = value};
    return term_take(g, tensor_pad(tensor, first, last, number, &result), &result);
}

static Term cut_by(Gradient *g, Term x, int dim, ResolvedSlice slice) {
    Tensor *tensor = term_tensor(g, x), *result = NULL;
    if (!tensor) return (Term){0};
    int64_t reach = slice.count > 0 ? (slice.count - 1) * slice.step + 1 : 0;
    SliceBounds bounds = {true, true, true, slice.start, slice.start + reach, slice.step};
    return term_take(g, tensor_slice_by(tensor, dim, &bounds, &result), &result);
}

static Term cut(Gradient *g, Term x, int dim, int64_t start, int64_t count) {
    return cut_by(g, x, dim, (ResolvedSlice){start, 1, count});
}

static Term folded(Gradient *g, Term x, int dim) {
    Shape shape = term_shape(g, x), narrow = {.rank = shape.rank - 1};
    for (int i = 0; i < narrow.rank; i++) narrow.dims[i] = shape.dims[i <= dim ? i : i + 1];
    if (shape.rank > 0) narrow.dims[dim] *= shape.dims[dim + 1];
    return term_reshape(g, x, &narrow);
}

// A weight [groups out, in, h, w] as [groups in, out, h, w].
static Term exchanged(Gradient *g, Term weight, int64_t groups) {
    Shape shape = term_shape(g, weight), order = {.rank = 5, .dims = {0, 2, 1, 3, 4}};
    Shape wide = {
        .rank = 5,
        .dims = {groups, shape.dims[0] / groups, shape.dims[1], shape.dims[2], shape.dims[3]}};
    if (shape.rank != 4) return (Term){0};
    return folded(g, term_permute(g, term_reshape(g, weight, &wide), &order), 0);
}

// Zeros between the elements, as a stride skipped them.
static Term spread(Gradient *g, Term x, Pair stride) {
    Shape shape = term_shape(g, x), wide = shape;
    if (shape.rank < 4 || (stride.h == 1 && stride.w == 1)) return x;
    wide.dims[2] = (shape.dims[2] - 1) * stride.h + 1;
    wide.dims[3] = (shape.dims[3] - 1) * stride.w + 1;
    // Each element is the first of a block as large as the stride; the last ones lose their rest.
    Shape column = {.rank = 6,
                    .dims = {shape.dims[0], shape.dims[1], shape.dims[2], 1, shape.dims[3], 1}};
    int64_t before[RANK_MAX] = {0}, after[RANK_MAX] = {0, 0, 0, stride.h - 1, 0, stride.w - 1};
    Tensor *blocks = term_tensor(g, term_reshape(g, x, &column)), *result = NULL;
    if (!blocks) return (Term){0};
    Scalar zero = {.dtype = DTYPE_FLOAT64};
    Term all = term_take(g, tensor_pad(blocks, before, after, zero, &result), &result);
    Shape flat = shape;
    flat.dims[2] *= stride.h;
    flat.dims[3] *= stride.w;
    all = term_reshape(g, all, &flat);
    return cut(g, cut(g, all, 2, 0, wide.dims[2]), 3, 0, wide.dims[3]);
}

static Term flipped(Gradient *g, Term x) {
    for (int dim = 2; dim < 4; dim++) {
        Tensor *tensor = term_tensor(g, x), *result = NULL;
        if (!tensor) return (Term){0};
        x = term_take(g, tensor_flip(tensor, dim, &result), &result);
    }
    return x;
}

// The image of every window position: up spread by the stride, convolved with the weight turned
// around and its channels exchanged. What padding was cut off or no window reached is put right
// at the border.
static Term image_gradient(Gradient *g, const Convolution *c) {
    Shape shape = gradient_shape(g, 0), window = gradient_shape(g, 1);
    Pair reach = {(window.dims[2] - 1) * c->dilation.h, (window.dims[3] - 1) * c->dilation.w};
    Term turned = exchanged(g, flipped(g, gradient_input(g, 1)), c->groups);
    Term up = spread(g, gradient_up(g), c->stride);
    Shape have = term_shape(g, up);
    Pair after = {shape.dims[2] + 2 * c->padding.h - have.dims[2],
                  shape.dims[3] + 2 * c->padding.w - have.dims[3]};
    Convolution reverse = {.stride = {1, 1}, .dilation = c->dilation, .groups = c->groups};
    Term whole = convolve(g, padded(g, up, reach, after, 0), turned, &reverse);
    Term rows = cut(g, whole, 2, c->padding.h, shape.dims[2]);
    return cut(g, rows, 3, c->padding.w, shape.dims[3]);
}

// The image convolved with up: batch and channels change places, stride and dilation as well.
static Term window_gradient(Gradient *g, const Convolution *c) {
    Shape window = gradient_shape(g, 1), exchange = {.rank = 4, .dims = {1, 0, 2, 3}};
    Term x = gradient_input(g, 0), up = gradient_up(g);
    // [n, groups, each, ..] -> [each, groups, n, ..] -> [each, groups n, ..]
    Shape image_order = {.rank = 5, .dims = {2, 1, 0, 3, 4}};
    Shape shape = term_shape(g, x), wide = {.rank = 5};
    if (shape.rank != 4) return (Term){0};
    wide.dims[0] = shape.dims[0];
    wide.dims[1] = c->groups;
    wide.dims[2] = shape.dims[1] / c->groups;
    wide.dims[3] = shape.dims[2];
    wide.dims[4] = shape.dims[3];
    Term images = folded(g, term_permute(g, term_reshape(g, x, &wide), &image_order), 1);
    Term windows = term_permute(g, up, &exchange); // [out, n, ..]
    Convolution exchanged_steps = {c->dilation, c->padding, c->stride, c->groups};
    Term all = convolve(g, images, windows, &exchanged_steps);
    Term fitting = cut(g, cut(g, all, 2, 0, window.dims[2]), 3, 0, window.dims[3]);
    return term_permute(g, fitting, &exchange); // [out, each, ..]
}

// The kernels that do the same at once, where nothing is recorded.
static Term convolve_fused(Gradient *g, KernelId kernel, const Convolution *c, int input,
                           const Term *terms) {
    KernelOptions options = {.integers = {c->stride.h, c->stride.w, c->padding.h, c->padding.w,
                                          c->dilation.h, c->dilation.w, c->groups}};
    return term_fused(g, (FusedCall){kernel, &options, terms, .n_inputs = 2, .first = input});
}

static void give_image(Gradient *g, const Convolution *c) {
    if (!gradient_has(g, KERNEL_CONV2D_IMAGE)) {
        gradient_give(g, 0, image_gradient(g, c));
        return;
    }
    Term terms[2] = {gradient_up(g), gradient_input(g, 1)};
    gradient_give(g, 0, convolve_fused(g, KERNEL_CONV2D_IMAGE, c, 0, terms));
}

static void give_window(Gradient *g, const Convolution *c) {
    if (!gradient_has(g, KERNEL_CONV2D_WINDOW)) {
        gradient_give(g, 1, window_gradient(g, c));
        return;
    }
    Term terms[2] = {gradient_input(g, 0), gradient_up(g)};
    gradient_give(g, 1, convolve_fused(g, KERNEL_CONV2D_WINDOW, c, 1, terms));
}

static Status rule_convolve(Gradient *g) {
    const Convolution *c = g->kept;
    if (gradient_wants(g, 0)) give_image(g, c);
    if (gradient_wants(g, 1)) give_window(g, c);
    if (gradient_wants(g, 2)) {
        bool gone[RANK_MAX] = {true, false, true, true};
        Shape shape = gradient_shape(g, 2);
        gradient_give(g, 2, term_reshape(g, term_sum_kept(g, gradient_up(g), gone), &shape));
    }
    return g->status;
}
const GradientInfo gradient_convolve = {
    .name = "conv2d", .rule = rule_convolve, .saves = {SAVE_Y, SAVE_X, 0}};

// --- pooling: one step for every place in the window, the others being out of sight

typedef struct Windows {
    const Pooling *pooling;
    Shape image, result; // [batch, channels, height, width]
    Pair covered;        // the padded image up to the end of the last window
    Pair after;          // the border behind, which may be negative where no window reaches
} Windows;

static Windows windows_of(Gradient *g) {
    const Pooling *p = g->kept;
    Windows w = {.pooling = p, .image = gradient_shape(g, 0)};
    w.result = tensor_shape(g->incoming[0]);
    w.covered = (Pair){(w.result.dims[2] - 1) * p->stride.h + p->size.h,
                       (w.result.dims[3] - 1) * p->stride.w + p->size.w};
    w.after = (Pair){w.covered.h - p->padding.h - w.image.dims[2],
                     w.covered.w - p->padding.w - w.image.dims[3]};
    return w;
}

static int64_t not_negative(int64_t value) {
    return value > 0 ? value : 0;
}

// The image as far as windows cover it, with a border.
static Term covered_image(Gradient *g, const Windows *w, Term x, double border) {
    Pair before = w->pooling->padding;
    Pair after = {not_negative(w->after.h), not_negative(w->after.w)};
    Term wide = padded(g, x, before, after, border);
    return cut(g, cut(g, wide, 2, 0, w->covered.h), 3, 0, w->covered.w);
}

// What each window sees at its place (i, j).
static Term seen_at(Gradient *g, const Windows *w, Term covered, int64_t i, int64_t j) {
    const Pooling *p = w->pooling;
    Term rows = cut_by(g, covered, 2, (ResolvedSlice){i, p->stride.h, w->result.dims[2]});
    return cut_by(g, rows, 3, (ResolvedSlice){j, p->stride.w, w->result.dims[3]});
}

// The reverse: an image that has x at the places (i, j) of its windows.
static Term put_at(Gradient *g, const Windows *w, Term x, int64_t i, int64_t j) {
    const Pooling *p = w->pooling;
    Term wide = spread(g, x, p->stride);
    Shape shape = term_shape(g, wide);
    Pair before = {i, j},
         after = {w->covered.h - i - shape.dims[2], w->covered.w - j - shape.dims[3]};
    Term covered = padded(g, wide, before, after, 0);
    Pair rest = {not_negative(-w->after.h), not_negative(-w->after.w)};
    Term whole = padded(g, covered, (Pair){0, 0}, rest, 0);
    Term rows = cut(g, whole, 2, p->padding.h, w->image.dims[2]);
    return cut(g, rows, 3, p->padding.w, w->image.dims[3]);
}

// Keeps the rule's terms from growing with the window: only the sum stays.
static Term accumulate(Gradient *g, int mark, Term sum, Term more) {
    Tensor *total = term_tensor(g, sum.slot ? term_add(g, sum, more) : more);
    if (!total) return (Term){0};
    (void)tensor_retain(total);
    for (int i = mark; i < g->n_terms; i++) tensor_release(g->terms[i].tensor);
    g->n_terms = mark;
    return term_own(g, total);
}

static Status pool_fused(Gradient *g, int op, const Term *terms, int count) {
    const Pooling *p = g->kept;
    KernelOptions options = {
        .op = op,
        .integers = {p->size.h, p->size.w, p->stride.h, p->stride.w, p->padding.h, p->padding.w}};
    FusedCall call = {KERNEL_POOL2D_IMAGE, &options, terms, .n_inputs = count};
    gradient_give(g, 0, term_fused(g, call));
    return g->status;
}

// The first of equal maxima takes all.
static Status rule_max_pool(Gradient *g) {
    if (gradient_has(g, KERNEL_POOL2D_IMAGE))
        return pool_fused(g, 0, (Term[]){gradient_up(g), gradient_input(g, 0)}, 2);
    Windows w = windows_of(g);
    Term up = gradient_up(g), best = gradient_result(g);
    Term image = covered_image(g, &w, gradient_input(g, 0), -INFINITY);
    Tensor *taken = NULL; // where an earlier place was the maximum
    Term sum = {0};
    int mark = g->n_terms;
    for (int64_t i = 0; i < w.pooling->size.h; i++)
        for (int64_t j = 0; j < w.pooling->size.w; j++) {
            Term hit = term_binary(g, OP_eq, seen_at(g, &w, image, i, j), best);
            if (taken) {
                Term before = term_own(g, tensor_retain(taken));
                hit = term_binary(g, OP_gt, hit, before);
            }
            Tensor *now = term_tensor(g, hit), *next = NULL;
            if (now && taken)
                gradient_fail(g, op_binary(OP_logical_or, op_tensor(now), op_tensor(taken), &next));
            else if (now)
                next = tensor_retain(now);
            tensor_release(taken);
            taken = next;
            Term share = term_where(g, hit, up, term_number(g, 0));
            sum = accumulate(g, mark, sum, put_at(g, &w, share, i, j));
        }
    tensor_release(taken);
    gradient_give(g, 0, sum);
    return g->status;
}
const GradientInfo gradient_max_pool = {
    .name = "max_pool2d", .rule = rule_max_pool, .saves = {SAVE_X | SAVE_RESULT, 0, 0}};

// How many elements of the image each window holds.
static Term window_counts(Gradient *g, const Windows *w) {
    Term ones = covered_image(g, w, term_filled(g, 0, 1), 0), sum = {0};
    int mark = g->n_terms;
    for (int64_t i = 0; i < w->pooling->size.h; i++)
        for (int64_t j = 0; j < w->pooling->size.w; j++)
            sum = accumulate(g, mark, sum, seen_at(g, w, ones, i, j));
    return sum;
}

static Status rule_average_pool(Gradient *g) {
    if (gradient_has(g, KERNEL_POOL2D_IMAGE)) return pool_fused(g, 1, (Term[]){gradient_up(g)}, 1);
    Windows w = windows_of(g);
    Term share = term_div(g, gradient_up(g), window_counts(g, &w)), sum = {0};
    (void)term_tensor(g, share);
    int mark = g->n_terms;
    for (int64_t i = 0; i < w.pooling->size.h; i++)
        for (int64_t j = 0; j < w.pooling->size.w; j++)
            sum = accumulate(g, mark, sum, put_at(g, &w, share, i, j));
    gradient_give(g, 0, sum);
    return g->status;
}
const GradientInfo gradient_average_pool = {.name = "avg_pool2d", .rule = rule_average_pool};
