// The rows of ops.def about shapes: from attributes to the functions of view.h.
#include <math.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "shape/rules.h"
#include "tensor/compose.h"
#include "tensor/join.h"
#include "tensor/map.h"
#include "tensor/scalar.h"
#include "tensor/view.h"

static Tensor *first_input(const OpCall *call) {
    return call->inputs[0].tensor;
}

// As the nearest of multiples of 10^-digits; integers stay as they are, and so do numbers that have
// no digits so far behind the point that they would overflow.
Status op_run_round_digits(const OpCall *call, Tensor **results) {
    Tensor *x = call->inputs[0].tensor;
    double unit = pow(10, (double)call->attributes->digits);
    double least = tensor_dtype(x) == DTYPE_FLOAT64 ? 1e-307 : 1e-37;
    SCOPED_TENSOR(scaled);
    SCOPED_TENSOR(rounded);
    SCOPED_TENSOR(result);
    SCOPED_TENSOR(finite);
    if (!dtype_is_float(tensor_dtype(x))) {
        *results = tensor_retain(x);
        return STATUS_OK;
    }
    TRY(compose_with_number(OP_mul, x, unit, &scaled));
    TRY(op_unary(OP_round, scaled, &rounded));
    TRY(compose_with_number(OP_div, rounded, unit < least ? 1 : unit, &result));
    TRY(op_unary(OP_isfinite, result, &finite));
    return op_ternary(OP_where, op_tensor(finite), op_tensor(result), op_tensor(x), results);
}

Status op_run_gelu_choice(const OpCall *call, Tensor **results) {
    static const OpRow exact = {
        .name = "gelu", .map = MAP_GELU_EXACT, .rule = MAP_RULE_FLOAT, .outputs = 1};
    const OpRow *row = call->attributes->exact ? &exact : &op_rows[OP_gelu];
    return map_apply(row, call->inputs, 1, results);
}

Status op_run_reshape(const OpCall *call, Tensor **results) {
    return tensor_reshape(first_input(call), &call->attributes->shape, results);
}

Status op_run_reshape_dims(const OpCall *call, Tensor **results) {
    return tensor_reshape(first_input(call), &call->attributes->dims, results);
}

Status op_run_flatten(const OpCall *call, Tensor **results) {
    const OpAttributes *attributes = call->attributes;
    return tensor_flatten(first_input(call), scalar_integer(attributes->start),
                          scalar_integer(attributes->stop), results);
}

Status op_run_squeeze(const OpCall *call, Tensor **results) {
    if (!op_has(call, ATTRIBUTE_dim)) return tensor_squeeze_all(first_input(call), results);
    return tensor_squeeze(first_input(call), call->attributes->dim, results);
}

Status op_run_unsqueeze(const OpCall *call, Tensor **results) {
    return tensor_unsqueeze(first_input(call), call->attributes->dim, results);
}

Status op_run_transpose(const OpCall *call, Tensor **results) {
    Tensor *x = first_input(call);
    int64_t d0 = op_has(call, ATTRIBUTE_d0) ? call->attributes->d0 : -2;
    int64_t d1 = op_has(call, ATTRIBUTE_d1) ? call->attributes->d1 : -1;
    if (x->view.rank < 2 && d0 == -2 && d1 == -1) {
        *results = tensor_same(x);
        return STATUS_OK;
    }
    return tensor_transpose(x, d0, d1, results);
}

Status op_run_permute(const OpCall *call, Tensor **results) {
    return tensor_permute(first_input(call), &call->attributes->dims, results);
}

Status op_run_broadcast_to(const OpCall *call, Tensor **results) {
    return tensor_broadcast_to(first_input(call), &call->attributes->shape, results);
}

typedef Status (*Join)(Tensor *const *tensors, size_t count, int64_t dim, Tensor **out);

// The tensors of `many`; where the caller wrote them one by one, a last plain number is dim.
static Status join_many(const OpCall *call, Join join, bool one_by_one, Tensor **results) {
    int64_t dim = op_has(call, ATTRIBUTE_dim) ? call->attributes->dim : 0;
    int count = call->n_many;
    bool last_is_dim =
        one_by_one && count > 1 && !call->many[count - 1].tensor && !op_has(call, ATTRIBUTE_dim);
    if (last_is_dim) {
        Scalar last = call->many[--count].scalar;
        dim = scalar_integer(last);
        if (last.dtype == DTYPE_FLOAT64 && (double)dim != last.as.f)
            return fail(STATUS_VALUE, "%s: dim must be an integer, not %g", call->op->name,
                        last.as.f);
    }
    SCOPED_MEMORY Tensor **tensors = memory_allocate((size_t)count * sizeof *tensors);
    Status status = STATUS_OK;
    int made = 0;
    for (; made < count && status == STATUS_OK; made++)
        status = op_input_tensor(&call->many[made], op_device(call), &tensors[made]);
    if (status != STATUS_OK) made--;
    if (status == STATUS_OK) status = join(tensors, (size_t)count, dim, results);
    while (made > 0) tensor_release(tensors[--made]);
    return status;
}

Status op_run_concat(const OpCall *call, Tensor **results) {
    return join_many(call, tensor_concat, false, results);
}

// Whether one tensor of at least that rank was given where several are written one by one.
static bool is_one(const OpCall *call, int rank) {
    const Tensor *first = call->n_many > 0 ? call->many[0].tensor : NULL;
    bool dim_is_last = call->n_many == 2 && !call->many[1].tensor && !op_has(call, ATTRIBUTE_dim);
    return first && first->view.rank >= rank && (call->n_many == 1 || dim_is_last);
}

// Dimension 0 at the place of another, those before it one further to the left.
static Shape order_of_rows(const Tensor *x, int at) {
    Shape order = {.rank = x->view.rank};
    for (int i = 0; i < order.rank; i++) order.dims[i] = i < at ? i + 1 : i == at ? 0 : i;
    return order;
}

// One tensor is a list of its rows, as the literal that it was written as.
static Status concat_one(Tensor *const *tensors, size_t count, int64_t dim, Tensor **out) {
    (void)count;
    Tensor *x = tensors[0];
    TensorType row = tensor_type(x);
    ASSERT(row.shape.rank > 1);
    row.shape.rank--;
    for (int i = 0; i < row.shape.rank; i++) row.shape.dims[i] = x->view.dims[i + 1];
    int at;
    TRY(shape_dim(&row, dim, &at));
    Shape order = order_of_rows(x, at);
    SCOPED_TENSOR(turned);
    TRY(tensor_permute(x, &order, &turned));
    row.shape.dims[at] *= x->view.dims[0];
    return tensor_reshape(turned, &row.shape, out);
}

Status op_run_concat_each(const OpCall *call, Tensor **results) {
    return join_many(call, is_one(call, 2) ? concat_one : tensor_concat, true, results);
}

Status op_run_stack(const OpCall *call, Tensor **results) {
    return join_many(call, tensor_stack, false, results);
}

static Status stack_one(Tensor *const *tensors, size_t count, int64_t dim, Tensor **out) {
    (void)count;
    Tensor *x = tensors[0];
    int at;
    TRY(op_dim(x, dim, &at));
    Shape order = order_of_rows(x, at);
    return tensor_permute(x, &order, out);
}

Status op_run_stack_each(const OpCall *call, Tensor **results) {
    return join_many(call, is_one(call, 1) ? stack_one : tensor_stack, true, results);
}

// Replaces *x by the next step's result.
static void advance_to(Tensor **x, Tensor *next) {
    tensor_release(*x);
    *x = next;
}

// repeats[i] belongs to dimension i of the result, lined up at the last.
static Status tile(Tensor *x, const IntList *repeats, Tensor **out) {
    Shape shape = {.rank = x->view.rank};
    if (repeats->count > RANK_MAX)
        return fail(STATUS_SHAPE, "repeat: %zu counts are more than the %d dimensions there can be",
                    repeats->count, RANK_MAX);
    int count = (int)repeats->count;
    if (count > shape.rank) shape.rank = count;
    for (int i = 0; i < shape.rank; i++) {
        int own = i - (shape.rank - x->view.rank);
        shape.dims[i] = own < 0 ? 1 : x->view.dims[own];
    }
    SCOPED_TENSOR(result);
    TRY(tensor_reshape(x, &shape, &result));
    for (int i = 0; i < count; i++) {
        if (repeats->items[i] == 1) continue;
        Tensor *next;
        TRY(tensor_repeat_dim(result, shape.rank - count + i, repeats->items[i], false, &next));
        advance_to(&result, next);
    }
    return compose_give(&result, out);
}

Status op_run_repeat(const OpCall *call, Tensor **results) {
    Tensor *x = first_input(call);
    const IntList *repeats = &call->attributes->repeats;
    if (!op_has(call, ATTRIBUTE_dim)) return tile(x, repeats, results);
    int dim;
    TRY(op_dim(x, call->attributes->dim, &dim));
    if (repeats->count != 1)
        return fail(STATUS_VALUE, "repeat: with dim there is one count, not %zu", repeats->count);
    return tensor_repeat_dim(x, dim, repeats->items[0], true, results);
}

Status op_run_tile(const OpCall *call, Tensor **results) {
    return tile(first_input(call), &call->attributes->repeats, results);
}

Status op_run_flip(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(result);
    result = tensor_same(first_input(call));
    int rank = result->view.rank;
    bool all = !op_has(call, ATTRIBUTE_dims);
    int count = all ? rank : call->attributes->dims.rank;
    for (int i = 0; i < count; i++) {
        Tensor *next;
        TRY(tensor_flip(result, all ? i : call->attributes->dims.dims[i], &next));
        advance_to(&result, next);
    }
    return compose_give(&result, results);
}

// Without dims the elements are rolled as one row.
static Status roll_flat(Tensor *x, const IntList *shifts, Tensor **out) {
    if (shifts->count != 1)
        return fail(STATUS_VALUE, "roll: without dims there is one shift, not %zu", shifts->count);
    Shape shape = tensor_shape(x), flat = {.rank = 1, .dims = {-1}};
    if (tensor_count(x) == 0) {
        *out = tensor_same(x);
        return STATUS_OK;
    }
    SCOPED_TENSOR(row);
    SCOPED_TENSOR(rolled);
    TRY(tensor_reshape(x, &flat, &row));
    TRY(tensor_roll_dim(row, 0, shifts->items[0], &rolled));
    return tensor_reshape(rolled, &shape, out);
}

Status op_run_roll(const OpCall *call, Tensor **results) {
    const IntList *shifts = &call->attributes->shifts;
    Tensor *x = first_input(call);
    if (!op_has(call, ATTRIBUTE_dims)) return roll_flat(x, shifts, results);
    const Shape *dims = &call->attributes->dims;
    if ((size_t)dims->rank != shifts->count)
        return fail(STATUS_VALUE, "roll: there are %zu shifts for %d dims", shifts->count,
                    dims->rank);
    SCOPED_TENSOR(result);
    result = tensor_same(x);
    for (int i = 0; i < dims->rank; i++) {
        int dim;
        Tensor *next;
        TRY(op_dim(x, dims->dims[i], &dim));
        TRY(tensor_roll_dim(result, dim, shifts->items[i], &next));
        advance_to(&result, next);
    }
    return compose_give(&result, results);
}

Status op_run_slice(const OpCall *call, Tensor **results) {
    Tensor *x = first_input(call);
    SCOPED_TENSOR(row);
    const OpAttributes *attributes = call->attributes;
    TensorType type = tensor_type(x);
    TRY(shape_slice_row(&type));
    TRY(tensor_select(x, 0, attributes->row, &row));
    return tensor_slice(row, 0, scalar_integer(attributes->start), scalar_integer(attributes->stop),
                        results);
}

Status op_run_slice_first(const OpCall *call, Tensor **results) {
    return tensor_slice(first_input(call), 0, scalar_integer(call->attributes->start),
                        scalar_integer(call->attributes->stop), results);
}

Status op_run_slice_along(const OpCall *call, Tensor **results) {
    const OpAttributes *attributes = call->attributes;
    int64_t step = op_has(call, ATTRIBUTE_step) ? scalar_integer(attributes->step) : 1;
    return tensor_slice_by(first_input(call), attributes->dim,
                           &(SliceBounds){true, true, true, scalar_integer(attributes->start),
                                          scalar_integer(attributes->stop), step},
                           results);
}

Status op_run_slice_last(const OpCall *call, Tensor **results) {
    return tensor_select(first_input(call), op_has(call, ATTRIBUTE_dim) ? call->attributes->dim : 0,
                         -1, results);
}

Status op_run_pad(const OpCall *call, Tensor **results) {
    Tensor *x = first_input(call);
    const IntList *padding = &call->attributes->padding;
    int rank = x->view.rank;
    int64_t before[RANK_MAX] = {0}, after[RANK_MAX] = {0};
    if (padding->count == 1) {
        for (int i = 0; i < rank; i++) before[i] = after[i] = padding->items[0];
    } else if (padding->count % 2 == 0 && padding->count <= 2 * (size_t)rank) {
        int first = rank - (int)(padding->count / 2);
        for (int i = first; i < rank; i++) {
            before[i] = padding->items[2 * (i - first)];
            after[i] = padding->items[2 * (i - first) + 1];
        }
    } else {
        fail(STATUS_VALUE, "pad: %zu numbers do not fit %s", padding->count,
             tensor_type_name(x).text);
        return fail_help(
            "give one number, or a pair (before, after) for each of the last dimensions");
    }
    Scalar zero = {.dtype = DTYPE_INT64, .as.i = 0};
    return tensor_pad(x, before, after,
                      op_has(call, ATTRIBUTE_value) ? call->attributes->value : zero, results);
}

Status op_run_contiguous(const OpCall *call, Tensor **results) {
    return tensor_contiguous(first_input(call), results);
}

Status op_run_to(const OpCall *call, Tensor **results) {
    return tensor_to_device(first_input(call), call->attributes->device, results);
}

Status op_run_to_dtype(const OpCall *call, Tensor **results) {
    return tensor_cast(first_input(call), call->attributes->dtype, results);
}
