// Subscripts carried out: views where that is enough, else gather and scatter. Assignment copies
// what somebody else can see.
#include "tensor/index.h"

#include <stdlib.h>

#include "base/memory.h"
#include "device/foretell.h"
#include "shape/rules.h"
#include "tensor/compose.h"
#include "tensor/gradient/remake.h"
#include "tensor/gradient/tape_node.h"
#include "tensor/index_plan.h"
#include "tensor/map.h"
#include "tensor/parameter.h"

// Takes a reference when a step made another tensor of it.
static Status step(Tensor **x, Status status, Tensor *next) {
    tensor_release(*x);
    *x = status == STATUS_OK ? next : NULL;
    return status;
}

// The positions as a 1-D tensor next to x.
static Status index_tensor(Device *device, const int64_t *numbers, int64_t count, Tensor **out) {
    Shape shape = {.rank = 1, .dims = {count}};
    SCOPED_TENSOR(result);
    TRY(tensor_new(device, DTYPE_INT64, &shape, &result));
    size_t bytes = (size_t)count * sizeof *numbers;
    if (bytes) TRY(buffer_upload(result->view.buffer, 0, numbers, bytes));
    return compose_give(&result, out);
}

static Status picked_tensor(Device *device, const Picked *picked, Tensor **out) {
    int64_t count = shape_count(&picked->shape);
    Shape line = {.rank = 1, .dims = {count}};
    if (picked->index) return tensor_reshape(picked->index, &line, out);
    return index_tensor(device, picked->positions, count, out);
}

// Moves `count` dimensions that start at `from` so that they start at `to`.
static Status move_block(Tensor **x, int from, int to, int count) {
    if (from == to || count == 0) return STATUS_OK;
    int rank = (*x)->view.rank;
    ASSERT(from >= 0 && from + count <= rank && to >= 0 && to + count <= rank);
    Shape order = {.rank = rank};
    int others = 0;
    for (int i = 0; i < rank; i++) {
        if (i >= to && i < to + count) {
            order.dims[i] = from + i - to;
            continue;
        }
        if (others == from) others += count;
        order.dims[i] = others++;
    }
    Tensor *moved = NULL;
    Status status = tensor_permute(*x, &order, &moved);
    return step(x, status, moved);
}

// Dimension `dim` of *x, whose size is the product of `dims`, is cut into them.
static Status unfold(Tensor **x, int dim, const Shape *dims) {
    const TensorView *view = &(*x)->view;
    ASSERT(dim >= 0 && dim < view->rank);
    if (view->rank - 1 + dims->rank > RANK_MAX)
        return step(x,
                    fail(STATUS_INDEX, "the result of the index would have more than %d dimensions",
                         RANK_MAX),
                    NULL);
    Shape shape = {.rank = 0};
    for (int i = 0; i < view->rank; i++) {
        if (i != dim) shape.dims[shape.rank++] = view->dims[i];
        for (int d = 0; i == dim && d < dims->rank; d++) shape.dims[shape.rank++] = dims->dims[d];
    }
    Tensor *unfolded = NULL;
    Status status = tensor_reshape(*x, &shape, &unfolded);
    return step(x, status, unfolded);
}

// out[.., j, ..] = x[.., positions[j], ..] along dim.
static Status gather(Tensor *x, int dim, Tensor *positions, Tensor **out) {
    TRY(view_refuse_blocks(x, dim));
    const TensorView *view = &x->view;
    ASSERT(dim >= 0 && dim < view->rank && tensor_rank(positions) == 1);
    Shape shape = {.rank = view->rank};
    for (int i = 0; i < view->rank; i++) shape.dims[i] = view->dims[i];
    shape.dims[dim] = tensor_count(positions);
    DType dtype = dtype_is_quant(view->dtype) ? DTYPE_FLOAT32 : view->dtype;
    SCOPED_TENSOR(result);
    TRY(tensor_new(x->device, dtype, &shape, &result));
    KernelCall kernel = {.kernel = KERNEL_GATHER,
                         .n_inputs = 2,
                         .n_outputs = 1,
                         .inputs = {{.view = view}, {.view = &positions->view}},
                         .outputs = {&result->view},
                         .options = {.dim = dim},
                         .op_name = "index"};
    TRY(op_run_kernel(&kernel));
    TapeRecord record = tape_begin(&gradient_gather_slices, (Tensor *const[]){x, positions}, 2);
    tape_keep(&record, &dim, sizeof dim);
    return tape_end(&record, compose_give(&result, out), out);
}

static Status combined_tensor(Device *device, const IndexPlan *plan, const int64_t *strides,
                              Tensor **out) {
    SCOPED_MEMORY int64_t *numbers = index_plan_combine(plan, strides);
    return index_tensor(device, numbers, shape_count(&plan->picked_shape), out);
}

// What the caller wrote.
typedef struct Items {
    const IndexItem *items;
    int count;
} Items;

// The part that the plan's view shows, before index tensors pick from it.
static Status plan_part(Tensor *x, const IndexPlan *plan, const Items *items, Tensor **out) {
    SCOPED_TENSOR(part);
    part = tensor_view_of(x, &plan->view);
    if (!tape_follows(x)) return compose_give(&part, out);
    // The same of a contiguous tensor: what index tensors pick from are whole dimensions.
    IndexItems whole = {.count = 0};
    for (int i = 0; i < items->count; i++) {
        const IndexItem *item = &items->items[i];
        bool picks = item->kind == INDEX_TENSOR;
        bool is_mask = picks && tensor_dtype(item->tensor) == DTYPE_BOOL;
        int dims = is_mask ? tensor_rank(item->tensor) : 1;
        for (int d = 0; d < dims && whole.count < INDEX_ITEMS_MAX; d++)
            whole.items[whole.count++] = picks ? (IndexItem){.kind = INDEX_SLICE} : *item;
    }
    Tensor dense = *x;
    dense.view = tape_dense_view(x);
    IndexPlan dense_plan;
    Status status = index_plan_make(&dense, whole.items, whole.count, &dense_plan);
    if (status == STATUS_OK) tape_record_part(x, &dense_plan.view, part);
    index_plan_free(&dense_plan);
    return status == STATUS_OK ? compose_give(&part, out) : status;
}

// x's view with the picked dimensions first and folded into one.
static Status fold_picked(Tensor *x, const IndexPlan *plan, const Items *items, Tensor **out) {
    bool is_picked[RANK_MAX] = {false};
    Shape order = {.rank = 0}, folded = {.rank = 1, .dims = {1}};
    for (int i = 0; i < plan->picked_count; i++) {
        int dim = plan->picked[i].dim;
        is_picked[dim] = true;
        order.dims[order.rank++] = dim;
        folded.dims[0] *= plan->view.dims[dim];
    }
    for (int i = 0; i < plan->view.rank; i++) {
        if (is_picked[i]) continue;
        order.dims[order.rank++] = i;
        folded.dims[folded.rank++] = plan->view.dims[i];
    }
    ASSERT(order.rank == plan->view.rank);
    Tensor *whole, *permuted = NULL, *result = NULL;
    TRY(plan_part(x, plan, items, &whole));
    Status status = tensor_permute(whole, &order, &permuted);
    TRY(step(&whole, status, permuted));
    status = tensor_reshape(whole, &folded, &result);
    TRY(step(&whole, status, result));
    *out = whole;
    return STATUS_OK;
}

static Status gather_many(Tensor *x, const IndexPlan *plan, const Items *items, Tensor **out) {
    int64_t strides[RANK_MAX], stride = 1;
    for (int i = plan->picked_count - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= plan->view.dims[plan->picked[i].dim];
    }
    if (dtype_is_quant(x->view.dtype)) return op_fail_quantised("indexing by several tensors", x);
    SCOPED_TENSOR(positions);
    SCOPED_TENSOR(folded);
    TRY(combined_tensor(x->device, plan, strides, &positions));
    TRY(fold_picked(x, plan, items, &folded));
    return gather(folded, 0, positions, out);
}

static Status gather_one(Tensor *x, const IndexPlan *plan, const Items *items, Tensor **out) {
    const Picked *picked = &plan->picked[0];
    if (dtype_is_quant(x->view.dtype) && picked->dim != 0)
        return op_fail_quantised("indexing beyond dimension 0", x);
    SCOPED_TENSOR(positions);
    SCOPED_TENSOR(part);
    TRY(picked_tensor(x->device, picked, &positions));
    TRY(plan_part(x, plan, items, &part));
    return gather(part, picked->dim, positions, out);
}

static Status get_planned(Tensor *x, const IndexPlan *plan, const Items *items, Tensor **out) {
    if (plan->picked_count == 0) return plan_part(x, plan, items, out);
    bool one = plan->picked_count == 1;
    int dim = one ? plan->picked[0].dim : 0;
    TRY(one ? gather_one(x, plan, items, out) : gather_many(x, plan, items, out));
    TRY(unfold(out, dim, &plan->picked_shape));
    return move_block(out, dim, plan->place, plan->picked_shape.rank);
}

// Where the only subscript is a mask: no host reads it. It is folded into one dimension, and so are
// the dimensions of x that it picks from.
static Status get_masked(Tensor *x, Tensor *mask, Tensor **out) {
    TRY(index_check_mask(x, 0, mask));
    Shape all = {.rank = 1, .dims = {tensor_count(mask)}}, line = all, folded = all;
    for (int i = mask->view.rank; i < x->view.rank; i++)
        folded.dims[folded.rank++] = x->view.dims[i];
    SCOPED_TENSOR(boolean);
    SCOPED_TENSOR(found);
    SCOPED_TENSOR(positions);
    SCOPED_TENSOR(rows);
    TRY(tensor_reshape(mask, &all, &boolean));
    TRY(op_unary(OP_nonzero, boolean, &found));
    line.dims[0] = tensor_count(found);
    TRY(tensor_reshape(found, &line, &positions));
    TRY(tensor_reshape(x, &folded, &rows));
    return gather(rows, 0, positions, out);
}

// A mask without other subscripts, next to the tensor.
static bool is_mask(const Tensor *x, const IndexItem *items, int count) {
    if (count != 1 || items[0].kind != INDEX_TENSOR) return false;
    const Tensor *mask = items[0].tensor;
    return mask->view.dtype == DTYPE_BOOL && mask->view.rank <= x->view.rank &&
           mask->device == x->device;
}

Status index_get(Tensor *x, const IndexItem *items, int count, Tensor **out) {
    if (is_mask(x, items, count) && items[0].tensor->view.rank > 0 &&
        !dtype_is_quant(x->view.dtype))
        return get_masked(x, items[0].tensor, out);
    IndexPlan plan;
    Status status = index_plan_make(x, items, count, &plan);
    if (status == STATUS_OK) status = get_planned(x, &plan, &(Items){items, count}, out);
    if (status == STATUS_OK && plan.guessed) foretell_forget((*out)->view.buffer);
    if (status == STATUS_OK && plan.bounded) foretell_bound((*out)->view.buffer);
    index_plan_free(&plan);
    return status;
}

// What lies in a mapped file is copied: bytes that are missing there would be found in the middle
// of writing, and leave some of the numbers old and some new.
static Status own_value(Tensor **value) {
    const Buffer *buffer = (*value)->view.buffer;
    Tensor *copy = NULL;
    if (!buffer || !buffer->import.owner) return STATUS_OK;
    Status status = tensor_clone(*value, &copy);
    return step(value, status, copy);
}

// The value as a tensor of the target's dtype, seen with the shape of the part it goes to.
static Status prepare_value(const OpInput *value, const Tensor *target, const Shape *shape,
                            Tensor **out) {
    Tensor *given, *cast = NULL;
    if (value->tensor && value->tensor->device != target->device)
        return op_fail_devices("assignment", target, value->tensor);
    TRY(op_input_tensor(value, target->device, &given));
    Shape own = tensor_shape(given);
    while (own.rank > shape->rank && own.dims[0] == 1) {
        own.rank--;
        for (int i = 0; i < own.rank; i++) own.dims[i] = own.dims[i + 1];
    }
    TensorType type = tensor_type(target), part = tensor_type(given);
    Status status = shape_assign(&type, shape, &part);
    if (status == STATUS_OK) status = tensor_cast(given, target->view.dtype, &cast);
    TRY(step(&given, status, cast));
    TRY(own_value(&given));
    Tensor *reshaped = NULL, *broadcast = NULL;
    status = tensor_reshape(given, &own, &reshaped);
    TRY(step(&given, status, reshaped));
    status = tensor_broadcast_to(given, shape, &broadcast);
    TRY(step(&given, status, broadcast));
    *out = given;
    return STATUS_OK;
}

static Status scatter(const TensorView *view, int dim, const Tensor *positions,
                      const Tensor *source) {
    KernelCall kernel = {
        .kernel = KERNEL_SCATTER, .n_inputs = 2, .n_outputs = 1, .op_name = "assignment"};
    kernel.inputs[0].view = &source->view;
    kernel.inputs[1].view = &positions->view;
    kernel.outputs[0] = view;
    kernel.options.dim = dim;
    kernel.options.integers[0] = 1; // a 1-D index of slices
    return op_run_kernel(&kernel);
}

// value: [rest.., picked.., rest..] as the part is shaped.
static Status scatter_one(Tensor *target, const IndexPlan *plan, Tensor **value) {
    const Picked *picked = &plan->picked[0];
    int64_t count = shape_count(&picked->shape);
    TRY(move_block(value, plan->place, picked->dim, plan->picked_shape.rank));
    Shape folded = {.rank = plan->view.rank};
    for (int i = 0; i < folded.rank; i++)
        folded.dims[i] = i == picked->dim ? count : plan->view.dims[i];
    Tensor *reshaped = NULL;
    SCOPED_TENSOR(positions);
    Status status = tensor_reshape(*value, &folded, &reshaped);
    TRY(step(value, status, reshaped));
    TRY(picked_tensor(target->device, picked, &positions));
    return scatter(&plan->view, picked->dim, positions, *value);
}

// Where every element of the part lies in the target's contiguous storage: picked positions
// outside, the other dimensions inside.
static int64_t *element_positions(const Tensor *target, const IndexPlan *plan, int64_t *count) {
    const TensorView *view = &plan->view;
    bool is_picked[RANK_MAX] = {false};
    int64_t strides[RANK_MAX];
    for (int i = 0; i < plan->picked_count; i++) {
        is_picked[plan->picked[i].dim] = true;
        strides[i] = view->strides[plan->picked[i].dim];
    }
    int64_t outer = shape_count(&plan->picked_shape), inner = 1;
    for (int i = 0; i < view->rank; i++) inner *= is_picked[i] ? 1 : view->dims[i];
    int64_t base =
        ((int64_t)view->offset - (int64_t)target->view.offset) / (int64_t)dtype_size(view->dtype);
    int64_t *starts = index_plan_combine(plan, strides);
    int64_t *positions = memory_allocate_zeroed((size_t)outer, (size_t)inner * sizeof *positions);
    for (int64_t i = 0; i < inner; i++) {
        int64_t rest = i, offset = base;
        for (int d = view->rank - 1; d >= 0; d--) {
            if (is_picked[d]) continue;
            offset += rest % view->dims[d] * view->strides[d];
            rest /= view->dims[d];
        }
        for (int64_t o = 0; o < outer; o++) positions[o * inner + i] = starts[o] + offset;
    }
    free(starts);
    *count = outer * inner;
    return positions;
}

static Status scatter_many(Tensor *target, const IndexPlan *plan, Tensor **value) {
    TRY(move_block(value, plan->place, 0, plan->picked_shape.rank));
    Shape row = {.rank = 1, .dims = {-1}};
    if (tensor_count(*value) == 0) return STATUS_OK;
    Tensor *flat = NULL;
    SCOPED_TENSOR(storage);
    SCOPED_TENSOR(positions);
    Status status = tensor_reshape(*value, &row, &flat);
    TRY(step(value, status, flat));
    int64_t count;
    SCOPED_MEMORY int64_t *numbers = element_positions(target, plan, &count);
    TRY(index_tensor(target->device, numbers, count, &positions));
    TRY(tensor_reshape(target, &row, &storage));
    return scatter(&storage->view, 0, positions, *value);
}

static Status set_planned(Tensor *target, const IndexPlan *plan, const OpInput *value) {
    if (plan->picked_count == 0 && !value->tensor)
        return op_fill_view(&plan->view, value->scalar, "assignment");
    Shape shape;
    TRY(index_plan_shape(plan, &shape));
    SCOPED_TENSOR(prepared);
    TRY(prepare_value(value, target, &shape, &prepared));
    Status status;
    if (plan->picked_count == 0)
        status = op_copy_view(&prepared->view, &plan->view, "assignment");
    else if (plan->picked_count == 1)
        status = scatter_one(target, plan, &prepared);
    else
        status = scatter_many(target, plan, &prepared);
    return status;
}

// target[mask] = one number: one kernel, and nothing is read back.
static Status set_masked(Tensor *target, Tensor *mask, const OpInput *value) {
    TRY(index_check_mask(target, 0, mask));
    TRY(tensor_materialize(mask));
    Shape shape = tensor_shape(target);
    SCOPED_TENSOR(prepared);
    if (value->tensor) TRY(prepare_value(value, target, &shape, &prepared));
    TensorView boolean = mask->view; // dimensions that the mask lacks repeat it
    for (int i = boolean.rank; i < target->view.rank; i++) {
        boolean.dims[i] = target->view.dims[i];
        boolean.strides[i] = 0;
    }
    boolean.rank = target->view.rank;
    KernelCall kernel = {
        .kernel = KERNEL_INDEX_PUT, .n_inputs = 2, .n_outputs = 1, .op_name = "assignment"};
    kernel.inputs[0].view = prepared ? &prepared->view : NULL;
    kernel.inputs[0].scalar = value->scalar;
    kernel.inputs[1].view = &boolean;
    kernel.outputs[0] = &target->view;
    return op_run_kernel(&kernel);
}

static Status set_items(Tensor *target, const IndexItem *items, int count, const OpInput *value) {
    bool one_number = !value->tensor || value->tensor->view.rank == 0;
    if (one_number && is_mask(target, items, count))
        return set_masked(target, items[0].tensor, value);
    IndexPlan plan;
    Status status = index_plan_make(target, items, count, &plan);
    if (status == STATUS_OK) status = set_planned(target, &plan, value);
    if (status == STATUS_OK && plan.guessed) foretell_forget(target->view.buffer);
    index_plan_free(&plan);
    return status;
}

// Nobody else sees the elements: neither another tensor, nor a literal's text, nor a mapped file.
static bool may_write(const Tensor *x, const OpInput *value, bool unique) {
    return unique && x->counted.refs == 1 && !x->host && !x->learnable && x->view.buffer &&
           buffer_is_unique(x->view.buffer) && !x->view.buffer->import.owner &&
           tensor_is_contiguous(x) && value->tensor != x;
}

static Status set_plain(Tensor **target, const IndexItem *items, int count, OpInput value,
                        bool unique) {
    Tensor *x = *target;
    for (int i = 0; i < count;
         i++) // a subscript made of the target itself is read while it changes
        unique = unique && !(items[i].kind == INDEX_TENSOR && items[i].tensor == x);
    if (dtype_is_quant(x->view.dtype)) return op_fail_quantised("assignment", x);
    if (may_write(x, &value, unique)) {
        TRY(set_items(x, items, count, &value));
        x->origin = origin_current;
        return STATUS_OK;
    }
    SCOPED_TENSOR(copy);
    TRY(tensor_clone(x, &copy));
    TRY(set_items(copy, items, count, &value));
    tensor_release(x);
    return compose_give(&copy, target);
}

static void release_items(void *kept) {
    IndexItems *items = kept;
    for (int i = 0; i < items->count; i++) tensor_release(items->items[i].tensor);
}

Status index_set(Tensor **target, const IndexItem *items, int count, OpInput value, bool unique) {
    ASSERT(count >= 0 && count <= INDEX_ITEMS_MAX);
    if (LIKELY(!tape_is_recording())) return set_plain(target, items, count, value, unique);
    TRY(remake_before_change());
    IndexItems kept = {.count = count};
    for (int i = 0; i < count && i < INDEX_ITEMS_MAX; i++) {
        kept.items[i] = items[i];
        bool picks = items[i].kind == INDEX_TENSOR;
        kept.items[i].tensor = picks ? tensor_retain(items[i].tensor) : NULL;
    }
    Tensor *inputs[2] = {*target, value.tensor};
    TapeRecord record = tape_begin(&gradient_assignment, inputs, 2);
    if (record.node)
        tape_keep_copy(&record, &kept, sizeof kept, release_items);
    else
        release_items(&kept);
    return tape_end(&record, set_plain(target, items, count, value, unique), target);
}

Status index_set_parameter(Tensor *parameter, const IndexItem *items, int count, OpInput value) {
    if (dtype_is_quant(parameter->view.dtype)) return op_fail_quantised("assignment", parameter);
    // A view of the numbers as they were, for a value that is the parameter itself.
    Tensor *before = value.tensor == parameter ? tape_alias(parameter) : NULL;
    if (before) value.tensor = before;
    bool enabled = tape_set_enabled(false);
    Status status = tape_parameter_unshare(parameter);
    if (status == STATUS_OK) status = set_items(parameter, items, count, &value);
    tape_set_enabled(enabled);
    tensor_release(before);
    return status;
}
