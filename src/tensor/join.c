// Tensors joined, cut into pieces, repeated, shifted and padded: views of a result are filled by
// copies.
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "device/foretell.h"
#include "shape/rules.h"
#include "tensor/compose.h"
#include "tensor/gradient/gradient.h"
#include "tensor/join.h"
#include "tensor/map.h"
#include "tensor/scalar.h"

enum { PIECES_MAX = 1 << 28 };

// Copies x into the part of `out` that starts at `start` along dim and is as long as x.
static Status copy_into(Tensor *x, Tensor *out, int dim, int64_t start) {
    ASSERT(start >= 0 && x->view.dims[dim] <= out->view.dims[dim] - start); // a slice is clamped
    SCOPED_TENSOR(part);
    TRY(tensor_slice(out, dim, start, start + x->view.dims[dim], &part));
    return op_copy(x, part);
}

// The type of the result: shapes equal but for dim, dtypes promoted.
static Status concat_type(Tensor *const *tensors, size_t count, int dim, TensorType *out) {
    const Tensor *first = tensors[0];
    *out = tensor_type(first);
    for (size_t i = 0; i < count; i++) {
        const Tensor *x = tensors[i];
        if (dtype_is_quant(x->view.dtype)) return op_fail_quantised("concat", x);
        if (x->device != first->device) return op_fail_devices("concat", first, x);
        if (i == 0) continue;
        TensorType first_type = tensor_type(first), type = tensor_type(x);
        TRY(shape_concat(&first_type, &type, dim));
        out->dtype = dtype_promote(out->dtype, x->view.dtype);
        if (__builtin_add_overflow(out->shape.dims[dim], x->view.dims[dim], &out->shape.dims[dim]))
            return fail(STATUS_SHAPE,
                        "concat: the sizes along dimension %d add up to more than 64 bits", dim);
    }
    return STATUS_OK;
}

// The result filled piece by piece.
static Status concat_pieces(Tensor *const *tensors, size_t count, int dim, Tensor *result) {
    int64_t start = 0;
    for (size_t i = 0; i < count; i++) {
        TRY(copy_into(tensors[i], result, dim, start));
        start += tensors[i]->view.dims[dim];
    }
    ASSERT(start == result->view.dims[dim]);
    return STATUS_OK;
}

Status tensor_concat(Tensor *const *tensors, size_t count, int64_t dim, Tensor **out) {
    if (count == 0) return fail(STATUS_VALUE, "concat needs at least one tensor");
    int at;
    if (tensors[0]->view.rank == 0) {
        fail(STATUS_SHAPE, "cannot concat tensors of rank 0");
        return fail_help("stack(...) makes a vector of them");
    }
    TRY(op_dim(tensors[0], dim, &at));
    TensorType type;
    TRY(concat_type(tensors, count, at, &type));
    SCOPED_TENSOR(result);
    TRY(tensor_new(tensors[0]->device, type.dtype, &type.shape, &result));
    TRY(concat_pieces(tensors, count, at, result));
    TapeRecord record = tape_begin(&gradient_concat, tensors, (int)count);
    tape_keep(&record, &at, sizeof at);
    return tape_end(&record, compose_give(&result, out), out);
}

Status tensor_stack(Tensor *const *tensors, size_t count, int64_t dim, Tensor **out) {
    if (count == 0) return fail(STATUS_VALUE, "stack needs at least one tensor");
    Status status = STATUS_OK;
    SCOPED_MEMORY Tensor **raised = memory_allocate(count * sizeof *raised);
    size_t made = 0;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        TensorType first = tensor_type(tensors[0]), type = tensor_type(tensors[i]);
        status = shape_stack(&first, &type);
        if (status == STATUS_OK) status = tensor_unsqueeze(tensors[i], dim, &raised[made]);
        if (status == STATUS_OK) made++;
    }
    int64_t along = dim < 0 ? dim + tensors[0]->view.rank + 1 : dim;
    if (status == STATUS_OK) status = tensor_concat(raised, made, along, out);
    while (made > 0) tensor_release(raised[--made]);
    return status;
}

void tensor_array_release(TensorArray *array) {
    for (size_t i = 0; i < array->count; i++) tensor_release(array->items[i]);
    free(array->items);
    *array = (TensorArray){0};
}

// Cuts dim into `count` pieces, piece i from starts[i] up to starts[i + 1].
static Status cut_pieces(Tensor *x, int dim, const int64_t *starts, size_t count,
                         TensorArray *out) {
    TensorArray array = {.items = memory_allocate(count * sizeof *array.items)};
    for (size_t i = 0; i < count; i++) {
        ASSERT(starts[i] <= starts[i + 1]);
        Status status = tensor_slice(x, dim, starts[i], starts[i + 1], &array.items[i]);
        if (status != STATUS_OK) {
            tensor_array_release(&array);
            return status;
        }
        array.count++;
    }
    *out = array;
    return STATUS_OK;
}

static Status split_evenly(Tensor *x, int dim, int64_t size, TensorArray *out) {
    int64_t total = x->view.dims[dim];
    if (size <= 0)
        return fail(STATUS_VALUE, "split: the size of a piece must be positive, not %" PRId64,
                    size);
    size_t count = total == 0 ? 1 : (size_t)((total - 1) / size + 1);
    if (count > PIECES_MAX)
        return fail(STATUS_VALUE, "split: %zu pieces are more than %d", count, PIECES_MAX);
    SCOPED_MEMORY int64_t *starts = memory_allocate((count + 1) * sizeof *starts);
    for (size_t i = 0; i < count; i++) starts[i] = (int64_t)i * size;
    starts[count] = total;
    return cut_pieces(x, dim, starts, count, out);
}

Status tensor_split(Tensor *x, const int64_t *sizes, size_t count, int64_t dim, TensorArray *out) {
    int at;
    TRY(op_dim(x, dim, &at));
    if (count == 1) return split_evenly(x, at, sizes[0], out);
    TensorType type = tensor_type(x);
    TRY(shape_split(&type, at, sizes, count));
    SCOPED_MEMORY int64_t *starts = memory_allocate((count + 1) * sizeof *starts);
    starts[0] = 0;
    for (size_t i = 0; i < count; i++) starts[i + 1] = starts[i] + sizes[i];
    return cut_pieces(x, at, starts, count, out);
}

Status tensor_chunk(Tensor *x, int64_t n, int64_t dim, TensorArray *out) {
    int at;
    TRY(op_dim(x, dim, &at));
    if (n <= 0)
        return fail(STATUS_VALUE, "chunk: the number of pieces must be positive, not %" PRId64, n);
    int64_t total = x->view.dims[at], size = total == 0 ? 1 : (total - 1) / n + 1;
    return split_evenly(x, at, size, out);
}

// Of the greatest rank: dimensions before and after dim each become one.
static Status repeat_joined(Tensor *x, int dim, int64_t times, bool each, Tensor **out) {
    Shape shape = tensor_shape(x), joined = {.rank = 3, .dims = {1, shape.dims[dim], 1}};
    for (int i = 0; i < shape.rank; i++)
        if (i != dim) joined.dims[i < dim ? 0 : 2] *= shape.dims[i];
    SCOPED_TENSOR(flat);
    SCOPED_TENSOR(repeated);
    TRY(tensor_reshape(x, &joined, &flat));
    TRY(tensor_repeat_dim(flat, 1, times, each, &repeated));
    shape.dims[dim] = repeated->view.dims[1];
    return tensor_reshape(repeated, &shape, out);
}

Status tensor_repeat_dim(Tensor *x, int dim, int64_t times, bool each, Tensor **out) {
    if (x->view.rank == RANK_MAX) return repeat_joined(x, dim, times, each, out);
    if (times < 0) return fail(STATUS_VALUE, "repeat: a count cannot be negative: %" PRId64, times);
    Shape shape = tensor_shape(x);
    if (__builtin_mul_overflow(shape.dims[dim], times, &shape.dims[dim]))
        return fail(STATUS_SHAPE,
                    "cannot repeat %s %" PRId64 " times: its size does not fit in 64 bits",
                    tensor_type_name(x).text, times);
    // Both sides get a dimension for the repetition, along which x is broadcast.
    SCOPED_TENSOR(raised);
    SCOPED_TENSOR(result);
    SCOPED_TENSOR(view);
    TRY(tensor_unsqueeze(x, each ? dim + 1 : dim, &raised));
    TRY(tensor_new(x->device, x->view.dtype, &shape, &result));
    Shape target = tensor_shape(raised);
    target.dims[each ? dim + 1 : dim] = times;
    TRY(tensor_reshape(result, &target, &view));
    TRY(op_copy(raised, view));
    TapeRecord record = tape_begin(&gradient_repeat, &x, 1);
    tape_keep(&record, (int64_t[]){dim, times, each}, 3 * sizeof(int64_t));
    return tape_end(&record, compose_give(&result, out), out);
}

Status tensor_roll_dim(Tensor *x, int dim, int64_t shift, Tensor **out) {
    Shape shape = tensor_shape(x);
    int64_t size = shape.dims[dim];
    int64_t start = size ? ((-(shift % size)) % size + size) % size : 0; // what becomes the first
    ASSERT(start >= 0 && start <= size);
    SCOPED_TENSOR(tail);
    SCOPED_TENSOR(head);
    TRY(tensor_slice(x, dim, start, size, &tail));
    TRY(tensor_slice(x, dim, 0, start, &head));
    return tensor_concat((Tensor *const[]){tail, head}, 2, dim, out);
}

static Status copy_inside(Tensor *x, Tensor *out, const int64_t *before) {
    TensorView view = out->view;
    for (int i = 0; i < x->view.rank; i++) {
        ASSERT(before[i] >= 0 && x->view.dims[i] <= out->view.dims[i] - before[i]);
        ResolvedSlice slice = {before[i], 1, x->view.dims[i]};
        TRY(view_slice(out, i, &view, i, &slice));
    }
    SCOPED_TENSOR(inside);
    inside = tensor_view_of(out, &view);
    TRY(op_copy(x, inside));
    if (tape_follows(x)) tape_record_place(x, &view, out);
    return STATUS_OK;
}

Status tensor_pad(Tensor *x, const int64_t *before, const int64_t *after, Scalar value,
                  Tensor **out) {
    Shape shape = tensor_shape(x);
    for (int i = 0; i < shape.rank; i++) {
        if (before[i] < 0 || after[i] < 0)
            return fail(STATUS_VALUE, "pad: a border cannot be negative: %" PRId64,
                        before[i] < 0 ? before[i] : after[i]);
        if (__builtin_add_overflow(shape.dims[i], before[i], &shape.dims[i]) ||
            __builtin_add_overflow(shape.dims[i], after[i], &shape.dims[i]))
            return fail(STATUS_SHAPE, "cannot pad %s: its size would not fit in 64 bits",
                        tensor_type_name(x).text);
    }
    SCOPED_TENSOR(result);
    TRY(tensor_new(x->device, x->view.dtype, &shape, &result));
    TRY(op_fill_view(&result->view, value, "pad"));
    TRY(copy_inside(x, result, before));
    return compose_give(&result, out);
}

static Status copy_across(const Tensor *source, const Tensor *copy) {
    Buffer *from = source->view.buffer, *into = copy->view.buffer;
    if (into->bytes == 0) return STATUS_OK;
    if (!foretell_knows(from)) {
        foretell_forget(into);
        return STATUS_OK;
    }
    SCOPED_MEMORY void *host = memory_allocate(into->bytes);
    TRY(buffer_download(from, source->view.offset, host, into->bytes));
    return buffer_upload(into, 0, host, into->bytes);
}

Status tensor_to_device(Tensor *x, Device *device, Tensor **out) {
    if (x->device == device) {
        *out = tensor_same(x);
        return STATUS_OK;
    }
    SCOPED_TENSOR(source);
    SCOPED_TENSOR(copy);
    TRY(tensor_contiguous(x, &source));
    Shape shape = tensor_shape(source);
    TRY(tensor_new(device, source->view.dtype, &shape, &copy));
    TRY(copy_across(source, copy));
    TapeRecord record = tape_begin(&gradient_device, &x, 1);
    tape_keep(&record, &x->device, sizeof(Device *));
    return tape_end(&record, compose_give(&copy, out), out);
}
