// Elementwise operations on tensors: which dtype, which shape, where the result goes, and one
// kernel.
#include "tensor/map.h"

#include <string.h>

#include "device/walk.h"
#include "device/work.h"
#include "tensor/dtype.h"
#include "tensor/gradient/record.h"
#include "tensor/scalar.h"
#include "tensor/state.h"

void op_set_broadcast_warning(void (*warn)(const char *op_name, const Shape *x, const Shape *y)) {
    tensors_state()->broadcast_warning = warn;
}

typedef struct MapTypes {
    DType result, compute;
} MapTypes;

// Comparing integers beyond 2^24 with floats is exact in float64 only.
static DType compare_type(DType promoted, const OpInput *inputs, int n) {
    DType compute = dtype_compute(promoted);
    if (compute != DTYPE_FLOAT32) return compute;
    for (int i = 0; i < n; i++) {
        const Tensor *tensor = inputs[i].tensor;
        if (tensor && (tensor->view.dtype == DTYPE_INT32 || tensor->view.dtype == DTYPE_INT64))
            return DTYPE_FLOAT64;
    }
    return compute;
}

static Status fail_not_integer(const OpRow *op, const OpInput *inputs, int n) {
    for (int i = 0; i < n; i++) {
        const Tensor *tensor = inputs[i].tensor;
        if (tensor && !dtype_is_float(tensor->view.dtype)) continue;
        if (tensor)
            return fail(STATUS_DTYPE, "%s works on integers, but an operand is %s", op->name,
                        tensor_type_name(tensor).text);
        if (dtype_is_float(inputs[i].scalar.dtype))
            return fail(STATUS_DTYPE, "%s works on integers, but an operand is the float %g",
                        op->name, inputs[i].scalar.as.f);
    }
    return fail(STATUS_DTYPE, "%s works on integers", op->name);
}

static Status map_types(const OpRow *op, const OpInput *inputs, int n, MapTypes *out) {
    DType type;
    const Tensor *x = inputs[0].tensor, *y = n == 2 ? inputs[1].tensor : NULL;
    if (op->rule == MAP_RULE_WHERE)
        type = op_promote(inputs + 1, n - 1);
    else if (LIKELY(x && y && x->view.dtype == y->view.dtype))
        type = x->view.dtype;
    else
        type = op_promote(inputs, n);
    DType result = dtype_of_map(op->rule, type), compute = dtype_compute(result);
    if (result == DTYPE_COUNT) return fail_not_integer(op, inputs, n);
    if (op->rule == MAP_RULE_COMPARE || op->rule == MAP_RULE_LOGICAL)
        compute = compare_type(type, inputs, n);
    if (op->rule == MAP_RULE_APPROXIMATE) compute = compare_type(dtype_floating(type), inputs, n);
    *out = (MapTypes){result, compute};
    return STATUS_OK;
}

static bool same_dims(const TensorView *x, const TensorView *y) {
    if (x->rank != y->rank) return false;
    for (int i = 0; i < x->rank; i++)
        if (x->dims[i] != y->dims[i]) return false;
    return true;
}

// [.., n] next to a longer [.., n, 1] with a result larger than both: likely a column taken for a
// row.
static void warn_broadcast(const char *op_name, const Shape *x, const Shape *y,
                           const Shape *result) {
    const Shape *row = x->rank < y->rank ? x : y, *column = row == x ? y : x;
    void (*warn)(const char *, const Shape *, const Shape *) = tensors_state()->broadcast_warning;
    if (!warn || row->rank == 0 || column->rank <= row->rank) return;
    bool is_column = column->dims[column->rank - 1] == 1 &&
                     column->dims[column->rank - 2] == row->dims[row->rank - 1];
    if (!is_column) return;
    int64_t elements = shape_count(result);
    if (elements > shape_count(x) && elements > shape_count(y)) warn(op_name, x, y);
}

// The shape that all tensors among the inputs broadcast to.
static Status broadcast_inputs(const OpRow *op, const OpInput *inputs, int n, Shape *out) {
    TensorType result = {.dtype = DTYPE_COUNT};
    for (int i = 0; i < n; i++) {
        if (!inputs[i].tensor) continue;
        TensorType type = tensor_type(inputs[i].tensor);
        if (result.dtype == DTYPE_COUNT) {
            result = type;
            continue;
        }
        Shape joint;
        TRY(shape_broadcast(op->name, &result, &type, &joint));
        warn_broadcast(op->name, &result.shape, &type.shape, &joint);
        result.shape = joint;
    }
    ASSERT(result.dtype != DTYPE_COUNT); // one of them at least is a tensor
    *out = result.shape;
    return STATUS_OK;
}

// An input whose reference is the last one on a buffer of exactly the result's size.
static Tensor *find_donated(const OpInput *inputs, int n, const Shape *shape, DType dtype) {
    for (int i = 0; i < n; i++) {
        Tensor *tensor = inputs[i].tensor;
        if (!inputs[i].donate || !tensor || tensor->counted.refs != 1) continue;
        const TensorView *view = &tensor->view;
        if (tensor->host || tensor->learnable || dtype_size(view->dtype) != dtype_size(dtype))
            continue;
        if (view->rank != shape->rank ||
            memcmp(view->dims, shape->dims, (size_t)shape->rank * sizeof *shape->dims) != 0)
            continue;
        const Buffer *buffer = view->buffer;
        if (!buffer_is_unique(buffer) || buffer->import.owner || !tensor_is_contiguous(tensor))
            continue;
        if (buffer->bytes == (size_t)tensor_count(tensor) * dtype_size(dtype)) return tensor;
    }
    return NULL;
}

// A small power is a product: faster than the general formula, and rounded less.
static void write_power(KernelCall *kernel, double exponent) {
    MapStep *steps = kernel->options.steps;
    if (exponent == 1) {
        steps[0].op = MAP_MUL; // by the exponent
    } else if (exponent == 2 || exponent == 3 || exponent == 4) {
        kernel->n_inputs = 1;
        kernel->options.n_steps = exponent == 2 ? 1 : 2;
        steps[0] = (MapStep){.op = MAP_SQUARE, .a = 0};
        steps[1] = exponent == 3 ? (MapStep){.op = MAP_MUL, .a = 0, .b = 1}
                                 : (MapStep){.op = MAP_SQUARE, .a = 1};
    }
}

static Status run_map_kernel(const OpRow *op, const OpInput *inputs, int n, DType compute,
                             const TensorView *out) {
    KernelCall kernel; // only what a map reads is set: this is the hottest path there is
    TensorView broadcast[KERNEL_INPUTS_MAX];
    kernel.kernel = KERNEL_MAP;
    kernel.n_inputs = n;
    kernel.n_outputs = 1;
    kernel.outputs[0] = out;
    kernel.op_name = op->name;
    kernel.options.n_steps = 1;
    kernel.options.compute = compute;
    kernel.options.steps[0] = (MapStep){.op = (uint16_t)op->map, .a = 0, .b = 1, .c = 2};
    for (int i = 0; i < n; i++) {
        const Tensor *tensor = inputs[i].tensor;
        kernel.inputs[i].view = NULL;
        if (!tensor) {
            kernel.inputs[i].scalar = inputs[i].scalar;
        } else if (LIKELY(same_dims(&tensor->view, out))) {
            kernel.inputs[i].view = &tensor->view;
        } else {
            view_broadcast(&tensor->view, out, &broadcast[i]);
            kernel.inputs[i].view = &broadcast[i];
        }
    }
    if (UNLIKELY(op->map == MAP_POW) && !inputs[1].tensor && !inputs[1].scalar.unknown)
        write_power(&kernel, scalar_double(inputs[1].scalar));
    return device_run(&kernel);
}

typedef struct MapResult {
    Shape shape;
    Device *device;
} MapResult;

// Everything is known but where the result goes.
static Status map_into(const OpRow *op, const OpInput *inputs, int n, const MapResult *type,
                       Tensor **out) {
    MapTypes types = {DTYPE_COUNT, DTYPE_COUNT};
    TRY(map_types(op, inputs, n, &types));
    Tensor *result = find_donated(inputs, n, &type->shape, types.result);
    if (result) {
        TensorView target = result->view;
        target.dtype = types.result;
        TRY(run_map_kernel(op, inputs, n, types.compute, &target));
        result->view.dtype = types.result;
        result->view.buffer->label.dtype = types.result;
        result->origin = origin_current;
        if (UNLIKELY(result->node != NULL)) tape_forget(result);
        *out = tensor_retain(result);
        return STATUS_OK;
    }
    TRY(tensor_new(type->device, types.result, &type->shape, &result));
    Status status = run_map_kernel(op, inputs, n, types.compute, &result->view);
    if (UNLIKELY(status != STATUS_OK)) {
        tensor_release(result);
        return status;
    }
    *out = result;
    return STATUS_OK;
}

// The condition of `where` as 0 or 1, so that it may be read in any compute type.
static Status where_apply(const OpRow *op, const OpInput *inputs, const MapResult *type,
                          Tensor **out) {
    OpInput converted[3] = {inputs[0], inputs[1], inputs[2]};
    SCOPED_TENSOR(condition);
    if (inputs[0].tensor) {
        TRY(tensor_cast(inputs[0].tensor, DTYPE_BOOL, &condition));
        TRY(tensor_materialize(condition));
        converted[0] = op_tensor(condition);
    } else {
        converted[0] = op_int(scalar_double(inputs[0].scalar) != 0);
        converted[0].scalar.unknown = inputs[0].scalar.unknown;
    }
    return map_into(op, converted, 3, type, out);
}

Status map_apply(const OpRow *op, const OpInput *inputs, int n, Tensor **out) {
    const Tensor *first = NULL;
    bool same = true;
    for (int i = 0; i < n; i++) {
        Tensor *tensor = inputs[i].tensor;
        if (!tensor) continue;
        if (UNLIKELY(tensor->view.buffer == NULL)) TRY(tensor_materialize(tensor));
        if (UNLIKELY(dtype_is_quant(tensor->view.dtype)))
            return op_fail_quantised(op->name, tensor);
        if (!first) {
            first = tensor;
            continue;
        }
        if (UNLIKELY(tensor->device != first->device))
            return op_fail_devices(op->name, first, tensor);
        same = same && same_dims(&first->view, &tensor->view);
    }
    MapResult type;
    type.shape.rank = 0;
    if (LIKELY(first != NULL)) {
        type.device = first->device;
        if (LIKELY(same)) {
            type.shape.rank = first->view.rank;
            for (int i = 0; i < type.shape.rank; i++) type.shape.dims[i] = first->view.dims[i];
        } else {
            TRY(broadcast_inputs(op, inputs, n, &type.shape));
        }
    } else {
        TRY(device_default(&type.device));
    }
    // The opposite of a bool is the other one, not the complement of its bits.
    if (UNLIKELY(op->map == MAP_BIT_NOT) && first && first->view.dtype == DTYPE_BOOL)
        op = &op_rows[OP_logical_not];
    if (UNLIKELY(op->rule == MAP_RULE_WHERE)) return where_apply(op, inputs, &type, out);
    return map_into(op, inputs, n, &type, out);
}
