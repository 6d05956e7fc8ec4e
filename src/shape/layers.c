// Shapes of normalisations, convolutions and pooling.
#include "shape/rules.h"

static Status trailing_differs(const char *op, const TensorType *x, const Shape *trailing,
                               const char *what) {
    SCOPED_TEXT(text);
    shape_describe(trailing, &text);
    return fail(STATUS_SHAPE, "%s: %s is %s, but the trailing dimensions of %s differ", op, what,
                text_get(&text), tensor_type_text(x).text);
}

Status shape_trailing(const char *op, const TensorType *x, const Shape *trailing,
                      const char *what) {
    int rank = x->shape.rank;
    bool fits = trailing->rank >= 1 && trailing->rank <= rank;
    for (int i = 0; fits && i < trailing->rank; i++)
        fits = !sizes_differ(trailing->dims[i], x->shape.dims[rank - trailing->rank + i]);
    return fits ? STATUS_OK : trailing_differs(op, x, trailing, what);
}

Status shape_stretched(const char *op, const TensorType *x, const Shape *trailing,
                       const char *what) {
    int rank = x->shape.rank;
    bool fits = trailing->rank <= rank;
    for (int i = 0; fits && i < trailing->rank; i++)
        fits = trailing->dims[i] == 1 ||
               !sizes_differ(trailing->dims[i], x->shape.dims[rank - trailing->rank + i]);
    return fits ? STATUS_OK : trailing_differs(op, x, trailing, what);
}

Status shape_per_channel(const char *op, const TensorType *x, const TensorType *weight,
                         const char *what) {
    if (weight->shape.rank == 1 && !sizes_differ(weight->shape.dims[0], x->shape.dims[1]))
        return STATUS_OK;
    SCOPED_TEXT(channels);
    size_append(&channels, x->shape.dims[1]);
    return fail(STATUS_SHAPE, "%s: %s is %s, but %s has %s channels", op, what,
                tensor_type_text(weight).text, tensor_type_text(x).text, text_get(&channels));
}

Status shape_groups(const TensorType *x, int64_t groups) {
    bool known = x->shape.rank >= 2 && size_is_known(x->shape.dims[1]);
    if (x->shape.rank >= 2 && groups >= 1 && (!known || x->shape.dims[1] % groups == 0))
        return STATUS_OK;
    return fail(STATUS_SHAPE, "group_norm: %s cannot be split into %lld groups of channels",
                tensor_type_text(x).text, (long long)groups);
}

Status shape_gates(const char *op, const char *name, const TensorType *gates,
                   const TensorType *state, int count) {
    int rank = state->shape.rank;
    bool fits = rank >= 1 && gates->shape.rank == rank;
    for (int i = 0; fits && i < rank; i++) {
        int64_t size = state->shape.dims[i], times = i == rank - 1 ? count : 1;
        if (size_is_known(size)) fits = !sizes_differ(gates->shape.dims[i], times * size);
    }
    if (fits) return STATUS_OK;
    return fail(STATUS_SHAPE,
                "%s: %s must be the state's shape with the last dimension %d times as long, but "
                "they are %s and %s",
                op, name, count, tensor_type_text(gates).text, tensor_type_text(state).text);
}

Status shape_convolution_ranks(const char *op, bool line, const TensorType *x,
                               const TensorType *weight) {
    int rank = line ? 3 : 4;
    if ((x->shape.rank == rank || x->shape.rank == rank - 1) && weight->shape.rank == rank)
        return STATUS_OK;
    const char *window = line ? "length" : "height, width";
    return fail(STATUS_SHAPE,
                "%s: x must be [batch, channels, %s] and the weight [out, in, %s], "
                "but they are %s and %s",
                op, window, window, tensor_type_text(x).text, tensor_type_text(weight).text);
}

static Status check_channels(const char *op, const TensorType *x, const TensorType *weight,
                             const TensorType *bias, int64_t groups) {
    int64_t channels = x->shape.dims[1], outs = weight->shape.dims[0], each = weight->shape.dims[1];
    bool in_fits = !size_is_known(channels) || (groups >= 1 && channels % groups == 0);
    bool out_fits = !size_is_known(outs) || (groups >= 1 && outs % groups == 0);
    if (groups < 1 || !in_fits || !out_fits)
        return fail(STATUS_VALUE,
                    "%s: %lld groups do not divide %lld channels in and %lld out evenly", op,
                    (long long)groups, (long long)channels, (long long)outs);
    bool fits = !size_is_known(channels) || !sizes_differ(each, channels / groups);
    if (!fits && groups == 1)
        return fail(STATUS_SHAPE, "%s: x has %lld channels, but the weight takes %lld", op,
                    (long long)channels, (long long)each);
    if (!fits)
        return fail(STATUS_SHAPE,
                    "%s: x has %lld channels in %lld groups, but the weight takes %lld per group",
                    op, (long long)channels, (long long)groups, (long long)each);
    if (bias && (bias->shape.rank != 1 || sizes_differ(bias->shape.dims[0], outs))) {
        SCOPED_TEXT(count);
        size_append(&count, outs);
        return fail(STATUS_SHAPE, "%s: the bias is %s, but there are %s channels out", op,
                    tensor_type_text(bias).text, text_get(&count));
    }
    return STATUS_OK;
}

// Positions of a window along one dimension; -1 where the window does not fit.
static int64_t positions(int64_t size, int64_t window, int64_t stride, int64_t padding) {
    if (!size_is_known(size) || !size_is_known(window)) return SIZE_UNKNOWN;
    __int128 room = (__int128)size + 2 * (__int128)padding - window;
    __int128 count = room < 0 ? -1 : room / stride + 1;
    return count < INT64_MAX ? (int64_t)count : INT64_MAX; // too large either way
}

static Status fail_window(const char *op, const TensorType *x, int64_t h, int64_t w) {
    return fail(STATUS_SHAPE, "%s: a window of %lld x %lld does not fit into %s with its padding",
                op, (long long)h, (long long)w, tensor_type_text(x).text);
}

// The window as it reaches with its dilation.
static Status dilated(const char *op, int64_t size, int64_t dilation, int64_t *out) {
    *out = SIZE_UNKNOWN;
    if (!size_is_known(size)) return STATUS_OK;
    if (__builtin_mul_overflow(size - 1, dilation, out) || __builtin_add_overflow(*out, 1, out))
        return fail(STATUS_VALUE, "%s: the dilation is too large", op);
    return STATUS_OK;
}

Status shape_convolve(const char *op, const Convolved *operands, const Convolution *options,
                      Shape *out) {
    const TensorType *x = operands->x, *weight = operands->weight;
    TRY(check_channels(op, x, weight, operands->bias, options->groups));
    const int64_t *window = &weight->shape.dims[2];
    int64_t window_h, window_w;
    TRY(dilated(op, window[0], options->dilation.h, &window_h));
    TRY(dilated(op, window[1], options->dilation.w, &window_w));
    int64_t h = positions(x->shape.dims[2], window_h, options->stride.h, options->padding.h);
    int64_t w = positions(x->shape.dims[3], window_w, options->stride.w, options->padding.w);
    bool empty =
        (size_is_known(window[0]) && window[0] < 1) || (size_is_known(window[1]) && window[1] < 1);
    if (empty || h == -1 || w == -1) return fail_window(op, x, window_h, window_w);
    *out = (Shape){.rank = 4, .dims = {x->shape.dims[0], weight->shape.dims[0], h, w}};
    return STATUS_OK;
}

Status shape_pool(const char *op, const TensorType *x, const Pooling *options, Shape *out) {
    Pair size = options->size, stride = options->stride, padding = options->padding;
    int64_t h = positions(x->shape.dims[2], size.h, stride.h, padding.h);
    int64_t w = positions(x->shape.dims[3], size.w, stride.w, padding.w);
    if (h == -1 || w == -1) return fail_window(op, x, size.h, size.w);
    *out = (Shape){.rank = 4, .dims = {x->shape.dims[0], x->shape.dims[1], h, w}};
    return STATUS_OK;
}
