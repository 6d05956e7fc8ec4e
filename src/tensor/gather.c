// Selecting and placing elements by index tensors and masks.
#include "device/foretell.h"
#include "shape/rules.h"
#include "tensor/gradient/gradient.h"
#include "tensor/index.h"

// Rows of a table by integers: index [n] along dim.
static Status gather_kernel(const OpCall *call, Tensor *x, int dim, Tensor *index, Tensor **out) {
    ASSERT(dim >= 0 && dim < tensor_rank(x));
    TRY(view_refuse_blocks(x, dim));
    TRY(compose_check_indexes(index, x, dim));
    Shape shape = tensor_shape(x);
    shape.dims[dim] = tensor_count(index);
    DType dtype = dtype_is_quant(tensor_dtype(x)) ? DTYPE_FLOAT32 : tensor_dtype(x);
    SCOPED_TENSOR(result);
    TRY(tensor_new(x->device, dtype, &shape, &result));
    KernelOptions options = {.op = 0, .dim = dim};
    Tensor *inputs[2] = {x, index};
    TRY(compose_kernel(call, KERNEL_GATHER, &options, (TensorSpan){inputs, 2}, result));
    return compose_give(&result, out);
}

static Status gather_slices(const OpCall *call, Tensor *x, int dim, Tensor *index, Tensor **out) {
    TapeRecord record = tape_begin(&gradient_gather_slices, (Tensor *const[]){x, index}, 2);
    ASSERT(dim >= 0 && dim < tensor_rank(x));
    tape_keep(&record, &dim, sizeof dim);
    return tape_end(&record, gather_kernel(call, x, dim, index, out), out);
}

// The same for an index of any rank, whose dimensions stand in place of dim. A line is taken as it
// is: of a literal the host knows the numbers.
static Status gather_shaped(const OpCall *call, Tensor *x, int dim, Tensor *index, Tensor **out) {
    ASSERT(dim >= 0 && dim < tensor_rank(x));
    if (tensor_rank(index) == 1) return gather_slices(call, x, dim, index, out);
    SCOPED_TENSOR(flat);
    SCOPED_TENSOR(slices);
    Shape line = {.rank = 1, .dims = {tensor_count(index)}}, shape = {0};
    TRY(tensor_reshape(index, &line, &flat));
    TRY(gather_slices(call, x, dim, flat, &slices));
    TensorType type = tensor_type(x), index_type = tensor_type(index);
    TRY(shape_gather_rank(call->op->name, &type, &index_type));
    for (int i = 0; i < tensor_rank(x); i++) {
        if (i != dim) shape.dims[shape.rank++] = x->view.dims[i];
        for (int j = 0; i == dim && j < tensor_rank(index); j++)
            shape.dims[shape.rank++] = index->view.dims[j];
    }
    return tensor_reshape(slices, &shape, out);
}

// PyTorch's rule: an index of x's rank is at most as large as x but along dim.
static Status check_elementwise(const OpCall *call, const Tensor *x, int dim, const Tensor *index) {
    TensorType type = tensor_type(x), index_type = tensor_type(index);
    return shape_gather(call->op->name, &type, dim, &index_type);
}

Status op_run_gather(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(index);
    SCOPED_TENSOR(result);
    int dim;
    TRY(compose_whole(call, call->inputs[1].tensor, "index", &index));
    TRY(compose_dim(call->inputs[0].tensor, call->attributes->dim, &dim));
    TRY(compose_at_least_1d(call->inputs[0].tensor, &x));
    if (tensor_rank(index) == 1) return gather_slices(call, x, dim, index, results);
    TRY(check_elementwise(call, x, dim, index));
    TRY(compose_check_indexes(index, x, dim));
    Shape shape = tensor_shape(index);
    TRY(tensor_new(x->device, tensor_dtype(x), &shape, &result));
    KernelOptions options = {.op = 1, .dim = dim};
    Tensor *inputs[2] = {x, index};
    TRY(compose_kernel(call, KERNEL_GATHER, &options, (TensorSpan){inputs, 2}, result));
    return compose_give(&result, results);
}

Status op_run_index_select(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(index);
    SCOPED_TENSOR(line);
    int dim;
    TRY(compose_whole(call, call->inputs[1].tensor, "index", &index));
    TRY(compose_dim(call->inputs[0].tensor, call->attributes->dim, &dim));
    TRY(compose_at_least_1d(call->inputs[0].tensor, &x));
    TRY(compose_at_least_1d(index, &line));
    TensorType type = tensor_type(index);
    TRY(shape_index_line(&type));
    return gather_slices(call, x, dim, line, results);
}

Status op_run_take(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(index);
    int dim = 0;
    TRY(compose_whole(call, call->inputs[1].tensor, "index", &index));
    if (op_has(call, ATTRIBUTE_dim)) {
        TRY(compose_dim(call->inputs[0].tensor, call->attributes->dim, &dim));
        TRY(compose_at_least_1d(call->inputs[0].tensor, &x));
    } else {
        Shape flat = {.rank = 1, .dims = {tensor_count(call->inputs[0].tensor)}};
        TRY(tensor_reshape(call->inputs[0].tensor, &flat, &x));
    }
    return gather_shaped(call, x, dim, index, results);
}

Status op_run_embedding(const OpCall *call, Tensor **results) {
    Tensor *table = call->inputs[0].tensor;
    SCOPED_TENSOR(ids);
    TensorType type = tensor_type(table);
    TRY(shape_embedding(&type));
    TRY(compose_whole(call, call->inputs[1].tensor, "ids", &ids));
    return gather_shaped(call, table, 0, ids, results);
}

// The order of arguments that older scripts use.
Status op_run_cndl_embedding(const OpCall *call, Tensor **results) {
    Tensor *swapped[2] = {call->inputs[1].tensor, call->inputs[0].tensor};
    return op_with(OP_embedding, swapped, 2, NULL, results);
}

// What scatter needs: the copy it writes to, whole indexes, and a source of their size.
typedef struct ScatterPlan {
    bool slices; // a 1-D index of whole slices, else one index per element
    int dim;
    Shape source;
} ScatterPlan;

static Status plan_scatter(const OpCall *call, const Tensor *x, const Tensor *index,
                           ScatterPlan *plan) {
    TRY(compose_dim(x, call->attributes->dim, &plan->dim));
    plan->slices = tensor_rank(index) == 1;
    if (!plan->slices) TRY(check_elementwise(call, x, plan->dim, index));
    TRY(compose_check_indexes(index, x, plan->dim));
    plan->source = tensor_shape(plan->slices ? x : index);
    if (plan->slices) plan->source.dims[plan->dim] = index->view.dims[0];
    return STATUS_OK;
}

static Status broadcast_source(const OpCall *call, Tensor *source, const Shape *shape, DType dtype,
                               Tensor **out) {
    SCOPED_TENSOR(same);
    TRY(tensor_cast(source, dtype, &same));
    TensorType given = tensor_type(source), target = {.dtype = dtype};
    TRY(shape_scatter_source(call->op->name, &given, &target, shape));
    return tensor_broadcast_to(same, shape, out);
}

static Status scatter(const OpCall *call, int op, Tensor **out) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(index);
    SCOPED_TENSOR(source);
    SCOPED_TENSOR(result);
    ScatterPlan plan;
    TRY(compose_at_least_1d(call->inputs[0].tensor, &x));
    TRY(compose_whole(call, call->inputs[1].tensor, "index", &index));
    TRY(plan_scatter(call, x, index, &plan));
    TRY(broadcast_source(call, call->inputs[2].tensor, &plan.source, tensor_dtype(x), &source));
    TRY(tensor_clone(x, &result));
    KernelOptions options = {.op = op, .dim = plan.dim, .integers = {plan.slices}};
    Tensor *inputs[2] = {source, index};
    TRY(compose_kernel(call, KERNEL_SCATTER, &options, (TensorSpan){inputs, 2}, result));
    if (tensor_rank(call->inputs[0].tensor) > 0) return compose_give(&result, out);
    return tensor_squeeze(result, 0, out);
}

Status op_run_scatter(const OpCall *call, Tensor **results) {
    return scatter(call, 0, results);
}
Status op_run_scatter_add(const OpCall *call, Tensor **results) {
    return scatter(call, 1, results);
}

// x and mask (as bool) in their common shape.
static Status with_mask(const OpCall *call, Tensor **x, Tensor **mask) {
    Tensor *given = call->inputs[1].tensor;
    SCOPED_TENSOR(boolean);
    Shape shape;
    TensorType left = tensor_type(call->inputs[0].tensor), right = tensor_type(given);
    TRY(shape_broadcast(call->op->name, &left, &right, &shape));
    TRY(tensor_cast(given, DTYPE_BOOL, &boolean));
    TRY(tensor_broadcast_to(call->inputs[0].tensor, &shape, x));
    return tensor_broadcast_to(boolean, &shape, mask);
}

Status op_run_masked_select(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(mask);
    SCOPED_TENSOR(line);
    TRY(with_mask(call, &x, &mask));
    SCOPED_TENSOR(mask_line);
    TRY(compose_at_least_1d(x, &line));
    TRY(compose_at_least_1d(mask, &mask_line));
    IndexItem item = {.kind = INDEX_TENSOR, .tensor = mask_line};
    return index_get(line, &item, 1, results);
}

Status op_run_masked_fill(const OpCall *call, Tensor **results) {
    Tensor *value = call->inputs[2].tensor;
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(mask);
    SCOPED_TENSOR(result);
    if (tensor_rank(value) != 0)
        return fail(STATUS_SHAPE, "masked_fill: value must be one number, but it is %s",
                    tensor_type_name(value).text);
    TRY(with_mask(call, &x, &mask));
    TRY(op_ternary(OP_where, op_tensor(mask), op_tensor(value), op_tensor(x), &result));
    return tensor_cast(result, tensor_dtype(x), results);
}

Status op_run_nonzero(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(given);
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(number);
    SCOPED_TENSOR(result);
    TRY(compose_at_least_1d(call->inputs[0].tensor, &given));
    // What is counted must not change before it is listed, and a mapped file may.
    TRY(tensor_cast(given, DTYPE_BOOL, &x));
    TRY(op_unary(OP_count_nonzero, x, &number));
    int64_t count;
    bool ignored = foretell_ignore_reads(true);
    TRY(tensor_read_integers(number, &count));
    foretell_ignore_reads(ignored);
    bool bounded = foretell_most(number->view.buffer, tensor_count(x), &count);
    ASSERT(count >= 0 && count <= tensor_count(x));
    Shape shape = {.rank = 2, .dims = {count, tensor_rank(x)}};
    TRY(tensor_new(x->device, DTYPE_INT64, &shape, &result));
    if (bounded) foretell_bound(result->view.buffer);
    KernelOptions options = {0};
    TRY(compose_kernel(call, KERNEL_NONZERO, &options, (TensorSpan){&x, 1}, result));
    return compose_give(&result, results);
}
