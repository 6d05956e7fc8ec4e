// Shapes of views and joins: the same numbers in another arrangement.
#include <inttypes.h>
#include <stdio.h>

#include "shape/rules.h"

static Status fail_reshape(const TensorType *x, const Shape *shape, const char *why) {
    SCOPED_TEXT(words);
    SCOPED_TEXT(count);
    shape_describe(shape, &words);
    size_append(&count, shape_count(&x->shape));
    fail(STATUS_SHAPE, "cannot reshape %s (%s elements) to %s%s", tensor_type_text(x).text,
         text_get(&count), text_get(&words), why);
    return STATUS_SHAPE;
}

Status shape_reshape(const TensorType *x, const Shape *shape, Shape *out) {
    int64_t known = 1, count = shape_count(&x->shape);
    int rest = -1;
    bool certain = true;
    *out = *shape;
    for (int i = 0; i < shape->rank; i++) {
        int64_t size = shape->dims[i];
        if (size == -1 && rest >= 0) return fail_reshape(x, shape, ": only one size may be -1");
        if (size < -1 && size_is_known(size))
            return fail_reshape(x, shape, ": a size cannot be negative");
        if (size == -1)
            rest = i;
        else if (!size_is_known(size))
            certain = false;
        else if (__builtin_mul_overflow(known, size, &known))
            return fail_reshape(x, shape, ", which has more elements");
    }
    if (!certain || !size_is_known(count)) {
        if (rest >= 0) out->dims[rest] = SIZE_UNKNOWN;
        return STATUS_OK;
    }
    char why[96];
    if (rest < 0 && known != count) {
        snprintf(why, sizeof why, ", which has %" PRId64, known);
        return fail_reshape(x, shape, why);
    }
    if (rest < 0) return STATUS_OK;
    if (known == 0)
        return fail_reshape(x, shape, ": next to a size of 0 the rest could be anything");
    if (count % known != 0) {
        snprintf(why, sizeof why, ": %" PRId64 " is not a multiple of %" PRId64, count, known);
        return fail_reshape(x, shape, why);
    }
    out->dims[rest] = count / known;
    return STATUS_OK;
}

Status shape_permute(const TensorType *x, const Shape *dims, Shape *order) {
    bool seen[RANK_MAX] = {false}, valid = dims->rank == x->shape.rank;
    *order = (Shape){.rank = dims->rank};
    for (int i = 0; i < dims->rank && valid; i++) {
        int64_t dim = dims->dims[i] < 0 ? dims->dims[i] + dims->rank : dims->dims[i];
        valid = dim >= 0 && dim < dims->rank && !seen[dim];
        if (!valid) break;
        seen[dim] = true;
        order->dims[i] = dim;
    }
    if (valid) return STATUS_OK;
    SCOPED_TEXT(words);
    shape_describe(dims, &words);
    fail(STATUS_SHAPE, "permute needs each of the %d dimensions of %s once, but got %s",
         x->shape.rank, tensor_type_text(x).text, text_get(&words));
    return STATUS_SHAPE;
}

static Status fail_broadcast_to(const TensorType *x, const Shape *shape) {
    SCOPED_TEXT(words);
    shape_describe(shape, &words);
    fail(STATUS_SHAPE, "cannot broadcast %s to %s", tensor_type_text(x).text, text_get(&words));
    return fail_help("from the last dimension on, sizes must be equal or 1 in the tensor");
}

Status shape_broadcast_to(const TensorType *x, const Shape *wanted, Shape *out) {
    int missing = wanted->rank - x->shape.rank;
    *out = *wanted;
    if (missing < 0) return fail_broadcast_to(x, wanted);
    int64_t elements = 1;
    for (int i = 0; i < wanted->rank; i++) {
        int64_t own = i < missing ? 1 : x->shape.dims[i - missing], size = wanted->dims[i];
        if (size == -1 && i >= missing) size = own;
        out->dims[i] = size;
        if (!size_is_known(size)) continue;
        if (size < 0 || (own != 1 && sizes_differ(own, size))) return fail_broadcast_to(x, wanted);
        // The view costs nothing, but its elements must be countable.
        if (__builtin_mul_overflow(elements, size ? size : 1, &elements) ||
            elements > INT64_MAX / 8)
            return fail_broadcast_to(x, wanted);
    }
    return STATUS_OK;
}

Status shape_unsqueeze(const TensorType *x, int64_t dim, int *at) {
    int rank = x->shape.rank;
    *at = 0;
    if (rank == RANK_MAX)
        return fail(STATUS_SHAPE, "%s has %d dimensions already, the most there can be",
                    tensor_type_text(x).text, RANK_MAX);
    if (dim < -rank - 1 || dim > rank)
        return fail(STATUS_INDEX, "dim %" PRId64 " is out of range for %s: it may be %d to %d", dim,
                    tensor_type_text(x).text, -rank - 1, rank);
    *at = (int)(dim < 0 ? dim + rank + 1 : dim);
    return STATUS_OK;
}

Status shape_select(const TensorType *x, int dim, int64_t index) {
    ASSERT(dim >= 0 && dim < x->shape.rank);
    int64_t size = x->shape.dims[dim];
    if (!size_is_known(size) || (index >= -size && index < size)) return STATUS_OK;
    return fail(STATUS_INDEX,
                "index %" PRId64 " is out of range for dimension %d of %s, which has size %" PRId64,
                index, dim, tensor_type_text(x).text, size);
}

Status shape_concat(const TensorType *first, const TensorType *x, int dim) {
    if (x->shape.rank != first->shape.rank)
        return fail(STATUS_SHAPE, "cannot concat %s and %s: they have %d and %d dimensions",
                    tensor_type_text(first).text, tensor_type_text(x).text, first->shape.rank,
                    x->shape.rank);
    for (int d = 0; d < x->shape.rank; d++)
        if (d != dim && sizes_differ(x->shape.dims[d], first->shape.dims[d]))
            return fail(STATUS_SHAPE,
                        "cannot concat %s and %s along dimension %d: dimension %d is %" PRId64
                        " here and %" PRId64 " there",
                        tensor_type_text(first).text, tensor_type_text(x).text, dim, d,
                        first->shape.dims[d], x->shape.dims[d]);
    return STATUS_OK;
}

Status shape_stack(const TensorType *first, const TensorType *x) {
    if (!shapes_differ(&first->shape, &x->shape)) return STATUS_OK;
    return fail(STATUS_SHAPE, "cannot stack %s and %s: all shapes must be equal",
                tensor_type_text(first).text, tensor_type_text(x).text);
}

Status shape_split(const TensorType *x, int dim, const int64_t *sizes, size_t count) {
    ASSERT(dim >= 0 && dim < x->shape.rank);
    int64_t total = 0;
    bool valid = true;
    for (size_t i = 0; i < count && valid; i++)
        valid = sizes[i] >= 0 && !__builtin_add_overflow(total, sizes[i], &total);
    if (valid && !sizes_differ(total, x->shape.dims[dim])) return STATUS_OK;
    SCOPED_TEXT(words);
    SCOPED_TEXT(size);
    for (size_t i = 0; i < count && i < 16; i++)
        text_format(&words, "%s%" PRId64, i ? ", " : "", sizes[i]);
    size_append(&size, x->shape.dims[dim]);
    fail(STATUS_SHAPE, "split sizes [%s%s] must add up to %s, the size of dimension %d of %s",
         text_get(&words), count > 16 ? ", ..." : "", text_get(&size), dim,
         tensor_type_text(x).text);
    return STATUS_SHAPE;
}

Status shape_slice_row(const TensorType *x) {
    if (x->shape.rank == 2) return STATUS_OK;
    fail(STATUS_SHAPE, "slice(x, row, start, stop) cuts a row of a matrix, but x is %s",
         tensor_type_text(x).text);
    return fail_help("name the dimension to cut another: slice(x, dim: 0, start: a, stop: b)");
}
