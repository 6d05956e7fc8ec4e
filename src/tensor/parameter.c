// Parameters: tensors with identity, their gradients and the ways in which their contents change.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/foretell.h"
#include "tensor/gradient/remake.h"
#include "tensor/gradient/tape_node.h"
#include "tensor/join.h"
#include "tensor/parameter.h"

Status tape_parameter_new(Tensor *x, Tensor **out) {
    if (x->learnable) {
        *out = tensor_retain(x);
        return STATUS_OK;
    }
    if (!dtype_is_float(tensor_dtype(x))) {
        (void)fail(STATUS_DTYPE, "only floats can be learned, but this is %s",
                   tensor_type_name(x).text);
        return fail_help("`x as float32` makes floats of it");
    }
    TRY(tensor_materialize(x));
    bool enabled = tape_set_enabled(false);
    Status status = STATUS_OK;
    Tensor *parameter = NULL;
    if (tensor_is_contiguous(x))
        parameter = tape_alias(x);
    else
        status = tensor_clone(x, &parameter);
    tape_set_enabled(enabled);
    TRY(status);
    TapeNode *leaf = tape_leaf_new();
    tape_set_parameter(leaf, parameter);
    buffer_note_purpose(parameter->view.buffer, PURPOSE_PARAMETER);
    tape_attach(parameter, leaf, 0);
    parameter->learnable = true;
    parameter->origin = origin_current;
    *out = parameter;
    return STATUS_OK;
}

static TapeNode *leaf_of(const Tensor *parameter) {
    ASSERT(parameter->learnable && parameter->node && !parameter->node->info);
    return parameter->node;
}

void tape_parameters(TensorArray *out) {
    size_t count = 0;
    for (TapeNode *leaf = tape_newest_parameter(); leaf; leaf = leaf->older) count++;
    out->items = memory_allocate(count * sizeof *out->items);
    out->count = count;
    for (TapeNode *leaf = tape_newest_parameter(); leaf; leaf = leaf->older)
        out->items[--count] = tensor_retain(leaf->parameter);
    ASSERT(count == 0);
}

uint64_t tape_parameter_number(const Tensor *parameter) {
    return leaf_of(parameter)->number;
}

bool tape_parameter_reached(const Tensor *parameter) {
    return leaf_of(parameter)->reached;
}

Tensor *tape_gradient(const Tensor *parameter) {
    return leaf_of(parameter)->gradient;
}

void tape_set_gradient(Tensor *parameter, Tensor *gradient) {
    TapeNode *leaf = leaf_of(parameter);
    Tensor *before = leaf->gradient;
    leaf->gradient = gradient;
    tensor_release(before);
}

void tape_zero_gradients(void) {
    TensorArray parameters;
    tape_parameters(&parameters);
    for (size_t i = 0; i < parameters.count; i++) tape_set_gradient(parameters.items[i], NULL);
    tensor_array_release(&parameters);
}

// The parameter sees `contents`; its own go with that tensor.
static void exchange_contents(Tensor *parameter, Tensor *contents) {
    ASSERT(parameter->view.dtype == contents->view.dtype);
    ASSERT(tensor_count(parameter) == tensor_count(contents));
    TensorView view = parameter->view;
    parameter->view = contents->view;
    contents->view = view;
    buffer_note_purpose(view.buffer, PURPOSE_RESULT);
    buffer_note_purpose(parameter->view.buffer, PURPOSE_PARAMETER);
}

Status tape_parameter_unshare(Tensor *parameter) {
    Buffer *buffer = parameter->view.buffer;
    ASSERT(buffer != NULL);
    TRY(remake_before_change());
    if (buffer_is_unique(buffer) && !buffer->import.owner && tensor_is_contiguous(parameter))
        return STATUS_OK;
    bool enabled = tape_set_enabled(false);
    SCOPED_TENSOR(copy);
    Status status = tensor_clone(parameter, &copy);
    tape_set_enabled(enabled);
    TRY(status);
    exchange_contents(parameter, copy);
    return STATUS_OK;
}

static Status as_contents(Tensor *parameter, Tensor *value, Tensor **out) {
    SCOPED_TENSOR(same);
    SCOPED_TENSOR(dense);
    TRY(tensor_cast(value, tensor_dtype(parameter), &same));
    TRY(tensor_contiguous(same, &dense));
    *out = tape_alias(dense);
    return STATUS_OK;
}

Status tape_parameter_assign(Tensor *parameter, Tensor *value) {
    Shape have = tensor_shape(value), need = tensor_shape(parameter);
    bool same = have.rank == need.rank;
    for (int i = 0; same && i < have.rank; i++) same = have.dims[i] == need.dims[i];
    if (!same) {
        (void)fail(STATUS_SHAPE, "a parameter is %s and cannot become %s",
                   tensor_type_name(parameter).text, tensor_type_name(value).text);
        return fail_help("learnable(...) makes a new parameter of another shape");
    }
    TRY(remake_before_change());
    bool enabled = tape_set_enabled(false);
    SCOPED_TENSOR(contents);
    Status status = as_contents(parameter, value, &contents);
    tape_set_enabled(enabled);
    TRY(status);
    exchange_contents(parameter, contents);
    return STATUS_OK;
}

// The parameter itself holds its leaf once, every node that reads it once more.
bool tape_parameter_held(const Tensor *parameter) {
    return leaf_of(parameter)->counted.refs > 1;
}

static Status queue_norms(Tensor *const *parameters, size_t count, TensorArray *norms) {
    Shape one = {.rank = 1, .dims = {1}};
    for (size_t i = 0; i < count; i++) {
        SCOPED_TENSOR(norm);
        if (!tape_gradient(parameters[i])) continue;
        TRY(op_unary(OP_norm, tape_gradient(parameters[i]), &norm));
        TRY(tensor_reshape(norm, &one, &norms->items[norms->count]));
        norms->count++;
    }
    return STATUS_OK;
}

// Where to read is to wait, all are read at once.
static Status read_norms(const TensorArray *norms, double *lengths) {
    SCOPED_TENSOR(joined);
    bool alike = norms->count > 1;
    for (size_t i = 0; i < norms->count && alike; i++)
        alike = device_runs_ahead(norms->items[i]->device) &&
                norms->items[i]->device == norms->items[0]->device &&
                tensor_dtype(norms->items[i]) == tensor_dtype(norms->items[0]);
    if (alike) {
        TRY(tensor_concat(norms->items, norms->count, 0, &joined));
        return tensor_read_floats(joined, lengths);
    }
    for (size_t i = 0; i < norms->count; i++) TRY(tensor_read_floats(norms->items[i], &lengths[i]));
    return STATUS_OK;
}

Status tape_gradient_norm(Tensor *const *parameters, size_t count, double *norm) {
    TensorArray norms = {memory_allocate((count + 1) * sizeof(Tensor *)), 0};
    double sum = 0, *lengths = memory_allocate((count + 1) * sizeof *lengths);
    bool enabled = tape_set_enabled(false);
    Status status = queue_norms(parameters, count, &norms);
    if (status == STATUS_OK) status = read_norms(&norms, lengths);
    tape_set_enabled(enabled);
    for (size_t i = 0; i < norms.count && status == STATUS_OK; i++) sum += lengths[i] * lengths[i];
    free(lengths);
    tensor_array_release(&norms);
    *norm = sqrt(sum);
    return status;
}

// Whether nobody but the tape holds a gradient: then it is clipped where it is.
static bool is_alone(const Tensor *gradient) {
    return gradient->counted.refs == 1;
}

// *unknown: only a run knows it.
static Status read_norm(Tensor *const *parameters, size_t count, double *norm, bool *unknown) {
    uint64_t reads = foretelling() ? foretell_reads() : 0;
    bool before = foretell_ignore_reads(true);
    Status status = tape_gradient_norm(parameters, count, norm);
    foretell_ignore_reads(before);
    *unknown = foretelling() && foretell_reads() != reads;
    return status;
}

// Clipping where gradients are takes no memory, so that it need not be known whether a run does;
// others may be clipped more often than in a run.
static void note_clipping(Tensor *const *parameters, size_t count) {
    bool alone = true;
    for (size_t i = 0; i < count; i++) {
        const Tensor *gradient = tape_gradient(parameters[i]);
        alone = alone && (!gradient || is_alone(gradient));
    }
    if (!alone) foretell_at_most(origin_current.at);
}

Status tape_clip_gradient_norm(Tensor *const *parameters, size_t count, double limit,
                               double *norm) {
    bool unknown;
    TRY(read_norm(parameters, count, norm, &unknown));
    // As PyTorch: the tiny term keeps a norm near 0 from making the factor too large.
    OpInput factor = op_float(limit / (*norm + 1e-6));
    factor.scalar.unknown = unknown;
    if (unknown) note_clipping(parameters, count);
    if (!unknown && !(*norm > limit)) return STATUS_OK;
    bool enabled = tape_set_enabled(false);
    Status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        Tensor *gradient = tape_gradient(parameters[i]), *clipped = NULL;
        if (!gradient) continue;
        OpInput whole = op_tensor(gradient);
        whole.donate = is_alone(gradient);
        status = op_binary(OP_mul, whole, factor, &clipped);
        if (status == STATUS_OK) tape_set_gradient(parameters[i], clipped);
    }
    tape_set_enabled(enabled);
    return status;
}

Status tape_clip_gradient_value(Tensor *const *parameters, size_t count, double limit) {
    bool enabled = tape_set_enabled(false);
    Status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        Tensor *gradient = tape_gradient(parameters[i]), *clipped = NULL;
        if (!gradient) continue;
        status =
            op_ternary(OP_clamp, op_tensor(gradient), op_float(-limit), op_float(limit), &clipped);
        if (status == STATUS_OK) tape_set_gradient(parameters[i], clipped);
    }
    tape_set_enabled(enabled);
    return status;
}

Status tape_watch(Tensor *x, Tensor **out) {
    TRY(tensor_materialize(x));
    Tensor *watched = tape_alias(x);
    if (tape_follows(x))
        tape_record_reshape(x, watched);
    else
        tape_attach(watched, tape_leaf_new(), 0);
    *out = watched;
    return STATUS_OK;
}

Status tape_detach(Tensor *x, Tensor **out) {
    if (!x->node && !x->learnable) {
        *out = tensor_retain(x);
        return STATUS_OK;
    }
    TRY(tensor_materialize(x));
    *out = tape_alias(x);
    return STATUS_OK;
}
