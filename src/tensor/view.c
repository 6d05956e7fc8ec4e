// Other shapes and strides over the same buffer. Nothing here computes or copies numbers, except a
// reshape that strides do not allow.
#include "tensor/view.h"

#include <inttypes.h>
#include <string.h>

#include "shape/rules.h"
#include "tensor/gradient/record.h"

Tensor *tensor_same(Tensor *x) {
    if (!x->learnable || !x->view.buffer) return tensor_retain(x);
    Tensor *same = tensor_view_of(x, &x->view);
    if (tape_follows(x)) tape_record_reshape(x, same);
    return same;
}

// x's numbers in another shape, as `view` says.
static Status give_reshaped(Tensor *x, const TensorView *view, Tensor **out) {
    *out = tensor_view_of(x, view);
    if (tape_follows(x)) tape_record_reshape(x, *out);
    return STATUS_OK;
}

// Moves the first element by a number of elements of the buffer.
static void advance(TensorView *view, int64_t elements) {
    const DTypeInfo *info = &dtype_info[view->dtype];
    ASSERT(elements % info->block_elements == 0);
    int64_t bytes = elements / info->block_elements * info->block_bytes;
    ASSERT(bytes >= 0 || (size_t)-bytes <= view->offset);
    view->offset = (size_t)((int64_t)view->offset + bytes);
}

Status view_refuse_blocks(const Tensor *x, int dim) {
    if (!dtype_is_quant(x->view.dtype) || x->view.strides[dim] != 1) return STATUS_OK;
    fail(STATUS_DTYPE, "cannot cut %s along dimension %d: its blocks of %d elements lie there",
         tensor_type_name(x).text, dim, dtype_info[x->view.dtype].block_elements);
    return fail_help("take whole rows, or convert it first: `x as float32`");
}

static Status fail_blocks(const Tensor *x, const Shape *shape) {
    SCOPED_TEXT(words);
    shape_describe(shape, &words);
    fail(STATUS_SHAPE,
         "cannot reshape %s (%" PRId64 " elements) to %s: rows of blocks must stay whole",
         tensor_type_name(x).text, tensor_count(x), text_get(&words));
    return fail_help("convert it first: `x as float32`");
}

static void lay_out(TensorView *view, const Shape *shape) {
    int64_t stride = 1;
    view->rank = shape->rank;
    for (int i = shape->rank - 1; i >= 0; i--) {
        view->dims[i] = shape->dims[i];
        view->strides[i] = stride;
        stride *= shape->dims[i] ? shape->dims[i] : 1;
    }
}

// Gives `view` the new shape if strides can express it: runs of old dimensions that lie densely one
// inside the other are cut anew, from the last to the first.
static bool restride(const TensorView *old, const Shape *shape, TensorView *view) {
    int at = shape->rank - 1;
    int64_t run = 1, cut = 1, inner = old->rank ? old->strides[old->rank - 1] : 1;
    view->rank = shape->rank;
    for (int i = old->rank - 1; i >= 0; i--) {
        run *= old->dims[i];
        bool ends = i == 0 || (old->dims[i - 1] != 1 && old->strides[i - 1] != run * inner);
        if (!ends) continue;
        while (at >= 0 && (cut < run || shape->dims[at] == 1)) {
            view->dims[at] = shape->dims[at];
            view->strides[at] = cut * inner;
            cut *= shape->dims[at--];
        }
        if (cut != run) return false;
        if (i == 0) break;
        inner = old->strides[i - 1];
        run = cut = 1;
    }
    for (; at >= 0; at--) {
        if (shape->dims[at] != 1) return false;
        view->dims[at] = 1;
        view->strides[at] = 1;
    }
    return true;
}

static Status reshape_quantised(Tensor *x, const Shape *shape, Tensor **out) {
    int rank = x->view.rank;
    bool rows_stay =
        shape->rank > 0 && rank > 0 && shape->dims[shape->rank - 1] == x->view.dims[rank - 1];
    if (!rows_stay || !tensor_is_contiguous(x)) return fail_blocks(x, shape);
    TensorView view = x->view;
    lay_out(&view, shape);
    *out = tensor_view_of(x, &view);
    return STATUS_OK;
}

Status tensor_reshape(Tensor *x, const Shape *wanted, Tensor **out) {
    Shape shape;
    TensorType type = tensor_type(x);
    TRY(shape_reshape(&type, wanted, &shape));
    TRY(tensor_materialize(x));
    if (dtype_is_quant(x->view.dtype)) return reshape_quantised(x, &shape, out);
    TensorView view = x->view;
    if (tensor_is_contiguous(x)) {
        lay_out(&view, &shape);
        return give_reshaped(x, &view, out);
    }
    if (tensor_count(x) > 0 && restride(&x->view, &shape, &view))
        return give_reshaped(x, &view, out);
    Tensor *copy;
    TRY(tensor_clone(x, &copy));
    if (copy->node) tape_forget(copy);
    lay_out(&copy->view, &shape);
    if (tape_follows(x)) tape_record_reshape(x, copy);
    *out = copy;
    return STATUS_OK;
}

Status tensor_permute(Tensor *x, const Shape *dims, Tensor **out) {
    TensorView view = x->view;
    TensorType type = tensor_type(x);
    Shape order;
    TRY(shape_permute(&type, dims, &order));
    for (int i = 0; i < dims->rank; i++) {
        view.dims[i] = x->view.dims[order.dims[i]];
        view.strides[i] = x->view.strides[order.dims[i]];
    }
    TRY(tensor_materialize(x));
    *out = tensor_view_of(x, &view);
    if (tape_follows(x)) tape_record_permute(x, &order, *out);
    return STATUS_OK;
}

Status tensor_transpose(Tensor *x, int64_t d0, int64_t d1, Tensor **out) {
    int a, b;
    TRY(op_dim(x, d0, &a));
    TRY(op_dim(x, d1, &b));
    Shape order = {.rank = x->view.rank};
    for (int i = 0; i < order.rank; i++) order.dims[i] = i == a ? b : (i == b ? a : i);
    return tensor_permute(x, &order, out);
}

Status tensor_reverse_dims(Tensor *x, Tensor **out) {
    Shape order = {.rank = x->view.rank};
    for (int i = 0; i < order.rank; i++) order.dims[i] = order.rank - 1 - i;
    return tensor_permute(x, &order, out);
}

Status tensor_move_dim(Tensor *x, int64_t from, int64_t to, Tensor **out) {
    int source, target;
    TRY(op_dim(x, from, &source));
    TRY(op_dim(x, to, &target));
    Shape order = {.rank = x->view.rank};
    int next = 0;
    for (int i = 0; i < order.rank; i++) {
        if (next == source) next++;
        order.dims[i] = i == target ? source : next++;
    }
    return tensor_permute(x, &order, out);
}

Status tensor_move_dim_last(Tensor *x, int64_t dim, Tensor **out) {
    return tensor_move_dim(x, dim, -1, out);
}

Status tensor_broadcast_to(Tensor *x, const Shape *wanted, Tensor **out) {
    TensorType type = tensor_type(x);
    Shape shape;
    TRY(shape_broadcast_to(&type, wanted, &shape));
    TensorView view = x->view;
    int missing = shape.rank - view.rank;
    ASSERT(missing >= 0);
    view.rank = shape.rank;
    for (int i = 0; i < shape.rank; i++) {
        bool own = i >= missing && x->view.dims[i - missing] == shape.dims[i];
        view.dims[i] = shape.dims[i];
        view.strides[i] = own ? x->view.strides[i - missing] : 0;
    }
    TRY(tensor_materialize(x));
    *out = tensor_view_of(x, &view);
    if (tape_follows(x)) tape_record_broadcast(x, *out);
    return STATUS_OK;
}

static void remove_dim(TensorView *view, int dim) {
    ASSERT(dim >= 0 && dim < view->rank);
    for (int i = dim; i + 1 < view->rank; i++) {
        view->dims[i] = view->dims[i + 1];
        view->strides[i] = view->strides[i + 1];
    }
    view->rank--;
}

Status tensor_squeeze(Tensor *x, int64_t dim, Tensor **out) {
    int at;
    TRY(op_dim(x, dim, &at));
    TRY(tensor_materialize(x));
    TensorView view = x->view;
    if (view.dims[at] == 1) remove_dim(&view, at);
    return give_reshaped(x, &view, out);
}

Status tensor_squeeze_all(Tensor *x, Tensor **out) {
    TRY(tensor_materialize(x));
    TensorView view = x->view;
    for (int i = view.rank - 1; i >= 0; i--)
        if (view.dims[i] == 1) remove_dim(&view, i);
    return give_reshaped(x, &view, out);
}

Status tensor_unsqueeze(Tensor *x, int64_t dim, Tensor **out) {
    TensorType type = tensor_type(x);
    int at, rank = x->view.rank;
    TRY(shape_unsqueeze(&type, dim, &at));
    TRY(tensor_materialize(x));
    ASSERT(rank < RANK_MAX && at >= 0 && at <= rank);
    TensorView view = x->view;
    for (int i = rank; i > at; i--) {
        view.dims[i] = view.dims[i - 1];
        view.strides[i] = view.strides[i - 1];
    }
    view.dims[at] = 1;
    // Never 1 for quantised types, where that marks the dimension of the blocks.
    view.strides[at] =
        at < rank ? x->view.strides[at] * x->view.dims[at] : dtype_info[view.dtype].block_elements;
    view.rank++;
    return give_reshaped(x, &view, out);
}

Status tensor_flatten(Tensor *x, int64_t start, int64_t stop, Tensor **out) {
    Shape shape = {.rank = 1, .dims = {1}};
    if (x->view.rank == 0) return tensor_reshape(x, &shape, out);
    int first, last;
    TRY(op_dim(x, start, &first));
    TRY(op_dim(x, stop, &last));
    if (first > last)
        return fail(STATUS_INDEX, "flatten: dimension %d comes after dimension %d", first, last);
    shape.rank = 0;
    for (int i = 0; i < x->view.rank; i++) {
        if (i > first && i <= last)
            shape.dims[shape.rank - 1] *= x->view.dims[i];
        else
            shape.dims[shape.rank++] = x->view.dims[i];
    }
    return tensor_reshape(x, &shape, out);
}

static int64_t clamp_bound(int64_t bound, int64_t size, int64_t low, int64_t high) {
    if (bound < 0) bound = bound < -size ? low : bound + size;
    return bound < low ? low : (bound > high ? high : bound);
}

Status slice_resolve(const SliceBounds *bounds, int64_t size, ResolvedSlice *out) {
    int64_t step = bounds->has_step ? bounds->step : 1;
    if (step == 0) return fail(STATUS_INDEX, "the step of a slice cannot be 0");
    // Steps beyond the size all take one element; small ones cannot overflow.
    int64_t longest = size > 0 ? size : 1;
    step = step > longest ? longest : (step < -longest ? -longest : step);
    bool forward = step > 0;
    int64_t low = forward ? 0 : -1, high = forward ? size : size - 1;
    int64_t start =
        bounds->has_start ? clamp_bound(bounds->start, size, low, high) : (forward ? 0 : size - 1);
    int64_t stop =
        bounds->has_stop ? clamp_bound(bounds->stop, size, low, high) : (forward ? size : -1);
    int64_t distance = forward ? stop - start : start - stop, stride = forward ? step : -step;
    out->start = start;
    out->step = step;
    out->count = distance > 0 ? (distance + stride - 1) / stride : 0;
    ASSERT(out->count <= size && (out->count == 0 || (start >= 0 && start < size)));
    return STATUS_OK;
}

Status view_slice(Tensor *x, int source, TensorView *view, int dim, const ResolvedSlice *slice) {
    if (slice->count == view->dims[dim] && slice->step == 1) return STATUS_OK;
    TRY(view_refuse_blocks(x, source));
    if (slice->count > 0) advance(view, slice->start * view->strides[dim]);
    view->dims[dim] = slice->count;
    view->strides[dim] *= slice->step;
    return STATUS_OK;
}

Status tensor_slice_by(Tensor *x, int64_t dim, const SliceBounds *bounds, Tensor **out) {
    int at;
    TRY(op_dim(x, dim, &at));
    TRY(tensor_materialize(x));
    ResolvedSlice slice;
    TRY(slice_resolve(bounds, x->view.dims[at], &slice));
    TensorView view = x->view;
    TRY(view_slice(x, at, &view, at, &slice));
    *out = tensor_view_of(x, &view);
    if (!tape_follows(x)) return STATUS_OK;
    TensorView part = tape_dense_view(x);
    TRY(view_slice(x, at, &part, at, &slice));
    tape_record_part(x, &part, *out);
    return STATUS_OK;
}

Status tensor_slice(Tensor *x, int64_t dim, int64_t start, int64_t stop, Tensor **out) {
    SliceBounds bounds = {.has_start = true, .has_stop = true, .start = start, .stop = stop};
    return tensor_slice_by(x, dim, &bounds, out);
}

Status view_select(Tensor *x, int source, TensorView *view, int dim, int64_t index) {
    int64_t size = view->dims[dim];
    if (index < -size || index >= size) {
        TensorType type = tensor_type(x);
        return shape_select(&type, source, index);
    }
    TRY(view_refuse_blocks(x, source));
    advance(view, (index < 0 ? index + size : index) * view->strides[dim]);
    remove_dim(view, dim);
    return STATUS_OK;
}

Status tensor_select(Tensor *x, int64_t dim, int64_t index, Tensor **out) {
    int at;
    TRY(op_dim(x, dim, &at));
    TRY(tensor_materialize(x));
    TensorView view = x->view;
    TRY(view_select(x, at, &view, at, index));
    *out = tensor_view_of(x, &view);
    if (!tape_follows(x)) return STATUS_OK;
    TensorView part = tape_dense_view(x);
    TRY(view_select(x, at, &part, at, index));
    tape_record_part(x, &part, *out);
    return STATUS_OK;
}

static void view_diagonal(TensorView *view, int a, int b) {
    ASSERT(a != b && view->rank >= 2);
    int64_t size = view->dims[a] < view->dims[b] ? view->dims[a] : view->dims[b];
    int64_t stride = view->strides[a] + view->strides[b];
    remove_dim(view, a > b ? a : b);
    remove_dim(view, a > b ? b : a);
    view->dims[view->rank] = size;
    view->strides[view->rank++] = stride;
}

Status tensor_diagonal(Tensor *x, int64_t d0, int64_t d1, Tensor **out) {
    int a, b;
    TRY(op_dim(x, d0, &a));
    TRY(op_dim(x, d1, &b));
    if (a == b)
        return fail(STATUS_INDEX, "a diagonal needs two different dimensions, but both are %d", a);
    TRY(view_refuse_blocks(x, a));
    TRY(view_refuse_blocks(x, b));
    TRY(tensor_materialize(x));
    TensorView view = x->view;
    view_diagonal(&view, a, b);
    *out = tensor_view_of(x, &view);
    if (!tape_follows(x)) return STATUS_OK;
    TensorView part = tape_dense_view(x);
    view_diagonal(&part, a, b);
    tape_record_part(x, &part, *out);
    return STATUS_OK;
}

static void view_flip(TensorView *view, int dim) {
    if (view->dims[dim] > 1) advance(view, (view->dims[dim] - 1) * view->strides[dim]);
    view->strides[dim] = -view->strides[dim];
}

Status tensor_flip(Tensor *x, int64_t dim, Tensor **out) {
    int at;
    TRY(op_dim(x, dim, &at));
    TRY(view_refuse_blocks(x, at));
    TRY(tensor_materialize(x));
    TensorView view = x->view;
    view_flip(&view, at);
    *out = tensor_view_of(x, &view);
    if (!tape_follows(x)) return STATUS_OK;
    TensorView part = tape_dense_view(x);
    view_flip(&part, at);
    tape_record_part(x, &part, *out);
    return STATUS_OK;
}
