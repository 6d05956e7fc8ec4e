// The table of operations and op_apply, the one place where they are run. What a map does is in
// map.c; the other rows have a function each.
#include "tensor/op.h"

#include <stdlib.h>
#include <string.h>

#include "device/foretell.h"
#include "device/walk.h"
#include "device/work.h"
#include "tensor/dtype.h"
#include "tensor/gradient/backward.h"
#include "tensor/gradient/record.h"
#include "tensor/map.h"
#include "tensor/precision.h"
#include "tensor/reduce.h"
#include "tensor/scalar.h"
#include "tensor/state.h"
#include "tensor/view.h"

enum { PLAIN = false, BLOCKS = true };
const OpRow op_rows[OP_COUNT] = {
#define OP_MAP(id, map_code, map_rule, computed, signature, section, doc)                          \
    {.name = #id,                                                                                  \
     .map = MAP_##map_code,                                                                        \
     .rule = MAP_RULE_##map_rule,                                                                  \
     .outputs = 1,                                                                                 \
     .precision = PRECISION_##computed},
#define OP_RUN(id, n_outputs, shape, gradient, weights, computed, ...)                             \
    OP_OVERLOAD(id, id, n_outputs, shape, gradient, weights, computed, __VA_ARGS__)
#define OP_OVERLOAD(id, user_name, n_outputs, shape, gradient, weights, computed, ...)             \
    {.name = #user_name,                                                                           \
     .run = op_run_##id,                                                                           \
     .outputs = n_outputs,                                                                         \
     .takes_blocks = weights,                                                                      \
     .precision = PRECISION_##computed},
#define OP_REDUCE(id, user_name, reduction_code, result_kind, gradient, computed, ...)             \
    {.name = #user_name,                                                                           \
     .run = op_run_reduction,                                                                      \
     .outputs = 1,                                                                                 \
     .reduction = REDUCE_##reduction_code,                                                         \
     .result = RESULT_##result_kind,                                                               \
     .precision = PRECISION_##computed},
#include "catalog/ops.def"
};

const AttributeInfo attribute_table[ATTRIBUTE_COUNT] = {
#define ATTRIBUTE(name, kind) {#name, ATTRIBUTE_KIND_##kind, offsetof(OpAttributes, name)},
#include "tensor/attributes.def"
#undef ATTRIBUTE
};

AttributeId attribute_find(const char *name) {
    for (int i = 0; i < ATTRIBUTE_COUNT; i++)
        if (strcmp(attribute_table[i].name, name) == 0) return (AttributeId)i;
    return ATTRIBUTE_COUNT;
}

Status op_fail_quantised(const char *op_name, const Tensor *x) {
    fail(STATUS_DTYPE, "%s cannot take %s: quantised tensors are read-only weights", op_name,
         tensor_type_name(x).text);
    return fail_help("linear, matmul, @ and embedding take it as it is; `x as float32` makes it an "
                     "ordinary tensor");
}

Status op_fail_devices(const char *op_name, const Tensor *x, const Tensor *y) {
    fail(STATUS_DEVICE, "%s: %s is on %s and %s is on %s", op_name, tensor_type_name(x).text,
         x->device->name, tensor_type_name(y).text, y->device->name);
    return fail_help("move one of them: x.to(\"%s\")", x->device->name);
}

// What holds for every tensor that an operation is given. `first` is the first one seen.
static Status check_input(const OpRow *op, Tensor *tensor, const Tensor **first) {
    if (UNLIKELY(dtype_is_quant(tensor->view.dtype)) && !op->takes_blocks)
        return op_fail_quantised(op->name, tensor);
    if (!*first) *first = tensor;
    if (UNLIKELY((*first)->device != tensor->device))
        return op_fail_devices(op->name, *first, tensor);
    return tensor_materialize(tensor);
}

Device *op_device(const OpCall *call) {
    for (int i = 0; i < call->n_inputs; i++)
        if (call->inputs[i].tensor) return call->inputs[i].tensor->device;
    for (int i = 0; i < call->n_many; i++)
        if (call->many[i].tensor) return call->many[i].tensor->device;
    return NULL;
}

static Status number_tensor(Scalar scalar, Tensor **out) {
    ASSERT(scalar.dtype != DTYPE_COUNT); // an input that was not given has no tensor
    Shape shape = {.rank = 0};
    if (scalar.dtype == DTYPE_FLOAT64)
        TRY(tensor_from_floats(&scalar.as.f, &shape, DTYPE_FLOAT32, out));
    else
        TRY(tensor_from_integers(&scalar.as.i, &shape, scalar.dtype, out));
    return STATUS_OK;
}

Status op_input_tensor(const OpInput *input, Device *device, Tensor **out) {
    if (input->tensor) {
        TRY(tensor_materialize(input->tensor));
        *out = tensor_retain(input->tensor);
        return STATUS_OK;
    }
    TRY(number_tensor(input->scalar, out));
    if (device) (*out)->device = device;
    Status status = tensor_materialize(*out);
    if (status != STATUS_OK) tensor_release_of(out);
    return status;
}

// Runs a row whose call has plain numbers among its inputs: they become rank-0 tensors.
static Status run_with_numbers(const OpCall *call, Tensor **outputs) {
    OpCall converted = {.op = call->op,
                        .attributes = call->attributes,
                        .many = call->many,
                        .n_many = call->n_many,
                        .n_inputs = call->n_inputs};
    Tensor *made[OP_INPUTS_MAX];
    Device *device = op_device(call);
    int n_made = 0;
    Status status = STATUS_OK;
    for (int i = 0; i < call->n_inputs && status == STATUS_OK; i++) {
        converted.inputs[i] = call->inputs[i];
        if (call->inputs[i].tensor || op_is_absent(&call->inputs[i])) continue;
        status = op_input_tensor(&call->inputs[i], device, &made[n_made]);
        if (status == STATUS_OK) converted.inputs[i] = op_tensor(made[n_made++]);
    }
    if (status == STATUS_OK) status = call->op->run(&converted, outputs);
    while (n_made > 0) tensor_release(made[--n_made]);
    return status;
}

static bool is_bounded(const Tensor *tensor) {
    if (!tensor || !foretell_is_bounded(tensor->view.buffer)) return false;
    foretell_shape_checked(tensor->view.buffer);
    return true;
}

// What is made like something that may be smaller in a run may be smaller, too.
static void carry_bounds(const OpCall *call, Tensor **outputs) {
    bool bounded = false;
    for (int i = 0; i < call->n_inputs; i++) bounded |= is_bounded(call->inputs[i].tensor);
    for (int i = 0; i < call->n_many; i++) bounded |= is_bounded(call->many[i].tensor);
    for (int i = 0; i < call->op->outputs && bounded; i++) {
        const TensorView *view = &outputs[i]->view;
        if (view->rank > 0 && view->buffer->device->foretold) foretell_bound(view->buffer);
    }
}

static Status apply_plain(const OpCall *call, Tensor **outputs) {
    const OpRow *op = call->op;
    if (LIKELY(op->run == NULL)) return map_apply(op, call->inputs, call->n_inputs, outputs);
    const Tensor *first = NULL;
    bool has_numbers = false;
    for (int i = 0; i < call->n_inputs; i++) {
        if (call->inputs[i].tensor)
            TRY(check_input(op, call->inputs[i].tensor, &first));
        else
            has_numbers = has_numbers || !op_is_absent(&call->inputs[i]);
    }
    for (int i = 0; i < call->n_many; i++)
        if (call->many[i].tensor) TRY(check_input(op, call->many[i].tensor, &first));
    TRY(has_numbers ? run_with_numbers(call, outputs) : op->run(call, outputs));
    if (UNLIKELY(foretelling())) carry_bounds(call, outputs);
    return STATUS_OK;
}

// Recorded by what it is made of; a result that would lose its gradient on the way must not pass
// for one that has none.
static Status apply_composed(const OpCall *call, Tensor **outputs) {
    TRY(apply_plain(call, outputs));
    for (int i = 0; i < call->op->outputs; i++) {
        if (outputs[i]->node || !dtype_is_float(tensor_dtype(outputs[i]))) continue;
        if (tape_call_needs_gradient(call)) tape_record_missing(call, &outputs[i]);
    }
    return STATUS_OK;
}

static Status apply_recorded(const OpCall *call, Tensor **outputs) {
    ASSERT(call->op >= op_rows && call->op < op_rows + OP_COUNT);
    const GradientInfo *info = &gradient_table[call->op - op_rows];
    if (!tape_call_needs_gradient(call)) return apply_plain(call, outputs);
    if (info->kind == GRADIENT_COMPOSED) return apply_composed(call, outputs);
    TapeRecord record = tape_begin_call(info, call);
    return tape_end_node(&record, apply_plain(call, outputs), outputs, call->op->outputs);
}

void op_set_watch(void (*watch)(const OpCall *call, Tensor *const *outputs)) {
    tensors_state()->op_watch = watch;
}

static Status apply_watched(const OpCall *call, Tensor **outputs) {
    TRY(precision_apply(call, outputs, apply_recorded));
    if (UNLIKELY(tensors_state()->op_watch != NULL)) tensors_state()->op_watch(call, outputs);
    return STATUS_OK;
}

Status op_apply(const OpCall *call, Tensor **outputs) {
    if (UNLIKELY(tape_is_recording())) return apply_watched(call, outputs);
    return apply_plain(call, outputs);
}

static Status apply_inputs(OpId op, const OpInput *inputs, int n_inputs, Tensor **out) {
    if (LIKELY(op_rows[op].run == NULL && !tape_is_recording()))
        return map_apply(&op_rows[op], inputs, n_inputs, out);
    OpCall call = {.op = &op_rows[op], .n_inputs = n_inputs};
    for (int i = 0; i < n_inputs; i++) call.inputs[i] = inputs[i];
    return op_apply(&call, out);
}

Status op_unary(OpId op, Tensor *x, Tensor **out) {
    OpInput inputs[] = {op_tensor(x)};
    return apply_inputs(op, inputs, 1, out);
}

Status op_binary(OpId op, OpInput x, OpInput y, Tensor **out) {
    OpInput inputs[] = {x, y};
    return apply_inputs(op, inputs, 2, out);
}

Status op_ternary(OpId op, OpInput x, OpInput y, OpInput z, Tensor **out) {
    OpInput inputs[] = {x, y, z};
    return apply_inputs(op, inputs, 3, out);
}

Status op_with(OpId op, Tensor *const *inputs, int n_inputs, const OpAttributes *attributes,
               Tensor **outputs) {
    ASSERT(n_inputs <= OP_INPUTS_MAX);
    OpCall call;
    call.op = &op_rows[op];
    call.attributes = attributes;
    call.many = NULL;
    call.n_many = 0;
    call.n_inputs = n_inputs;
    for (int i = 0; i < n_inputs; i++)
        call.inputs[i] = inputs[i] ? op_tensor(inputs[i]) : op_absent();
    return op_apply(&call, outputs);
}

Status op_run_kernel(const KernelCall *kernel) {
    return device_run(kernel);
}

Status op_fill_view(const TensorView *view, Scalar value, const char *op_name) {
    return op_run_kernel(&(KernelCall){.kernel = KERNEL_FILL,
                                       .n_inputs = 1,
                                       .n_outputs = 1,
                                       .inputs = {{.scalar = value}},
                                       .outputs = {view},
                                       .op_name = op_name});
}

Status op_copy_view(const TensorView *from, const TensorView *to, const char *op_name) {
    return op_run_kernel(&(KernelCall){.kernel = KERNEL_COPY,
                                       .n_inputs = 1,
                                       .n_outputs = 1,
                                       .inputs = {{.view = from}},
                                       .outputs = {to},
                                       .op_name = op_name});
}

Status op_add_view(const TensorView *x, const TensorView *to, const char *op_name) {
    KernelCall kernel = {.kernel = KERNEL_MAP,
                         .n_inputs = 2,
                         .n_outputs = 1,
                         .inputs = {{.view = to}, {.view = x}},
                         .outputs = {to},
                         .op_name = op_name};
    kernel.options.n_steps = 1;
    kernel.options.compute = dtype_compute(to->dtype);
    kernel.options.steps[0] = (MapStep){.op = (uint16_t)op_rows[OP_add].map, .a = 0, .b = 1};
    return op_run_kernel(&kernel);
}

Status op_copy(Tensor *x, Tensor *out) {
    ASSERT(x->device == out->device && out->view.buffer != NULL);
    TRY(tensor_materialize(x));
    TensorView source;
    view_broadcast(&x->view, &out->view, &source);
    return op_copy_view(&source, &out->view, "copy");
}

// A contiguous copy of x in another dtype, or the same.
static Status copy_as(Tensor *x, DType dtype, Tensor **out) {
    Shape shape = tensor_shape(x);
    Tensor *copy;
    TRY(tensor_new(x->device, dtype, &shape, &copy));
    Status status = op_copy(x, copy);
    if (status != STATUS_OK) {
        tensor_release(copy);
        return status;
    }
    *out = copy;
    return STATUS_OK;
}

Status tensor_cast(Tensor *x, DType dtype, Tensor **out) {
    if (x->view.dtype == dtype) {
        *out = tensor_same(x);
        return STATUS_OK;
    }
    if (dtype_is_quant(dtype)) {
        fail(STATUS_DTYPE, "cannot convert %s to %s", tensor_type_name(x).text, dtype_name(dtype));
        return fail_help("quantised types are only read from model files");
    }
    // A literal still has its numbers exactly: they are rounded once.
    if (x->host) return tensor_from_host(x, dtype, out);
    TRY(copy_as(x, dtype, out));
    if (tape_follows(x)) tape_record_cast(x, *out);
    if (!dtype_is_float(dtype)) tape_note_read(dtype_name(dtype), x);
    return STATUS_OK;
}

Status tensor_contiguous(Tensor *x, Tensor **out) {
    if (tensor_is_contiguous(x)) {
        TRY(tensor_materialize(x));
        *out = tensor_same(x);
        return STATUS_OK;
    }
    return tensor_clone(x, out);
}

Status tensor_clone(Tensor *x, Tensor **out) {
    if (dtype_is_quant(x->view.dtype)) return op_fail_quantised("copying", x);
    TRY(copy_as(x, x->view.dtype, out));
    if (tape_follows(x)) tape_record_cast(x, *out);
    return STATUS_OK;
}
