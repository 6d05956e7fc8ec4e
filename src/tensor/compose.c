// Helpers of the composed operations: conversions, index checks, views for kernels.
#include "tensor/compose.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"
#include "device/foretell.h"

Status compose_floating(Tensor *x, Tensor **out) {
    return tensor_cast(x, dtype_floating(tensor_dtype(x)), out);
}

Status compose_stored_float(Tensor *x, DType dtype, Tensor **out) {
    return tensor_cast(x, dtype_is_float(tensor_dtype(x)) ? tensor_dtype(x) : dtype, out);
}

Status compose_wide(Tensor *x, Tensor **out) {
    DType dtype = tensor_dtype(x) == DTYPE_FLOAT64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    return tensor_cast(x, dtype, out);
}

static Status check_whole(const OpCall *call, Tensor *x, const char *what) {
    int64_t count = tensor_count(x);
    SCOPED_MEMORY double *values = memory_allocate_zeroed((size_t)count + 1, sizeof *values);
    bool before = foretell_ignore_checks();
    Status status = tensor_read_floats(x, values);
    foretell_ignore_reads(before);
    for (int64_t i = 0; status == STATUS_OK && i < count; i++)
        if (!(values[i] == floor(values[i])) || fabs(values[i]) > 9.0e18)
            status = fail(STATUS_VALUE, "%s: %s must hold integers, but number %lld is %g",
                          call->op->name, what, (long long)i, number_shown(values[i]));
    return status;
}

Status compose_whole(const OpCall *call, Tensor *x, const char *what, Tensor **out) {
    DTypeKind kind = dtype_kind(tensor_dtype(x));
    if (kind == DTYPE_KIND_BOOL || kind == DTYPE_KIND_QUANT)
        return fail(STATUS_DTYPE, "%s: %s must hold integers, but it is %s", call->op->name, what,
                    tensor_type_name(x).text);
    if (kind == DTYPE_KIND_FLOAT) TRY(check_whole(call, x, what));
    return tensor_cast(x, DTYPE_INT64, out);
}

// The smallest (or largest) number of an int64 tensor that is not empty, to number `at` of `out`.
static Status put_extreme(const Tensor *index, ReduceOp op, const Tensor *out, size_t at) {
    TensorView view = {.buffer = out->view.buffer,
                       .offset = out->view.offset + at * sizeof(int64_t),
                       .dtype = DTYPE_INT64};
    KernelCall kernel = {.kernel = KERNEL_REDUCE,
                         .n_inputs = 1,
                         .n_outputs = 1,
                         .inputs = {compose_operand(index)},
                         .outputs = {&view},
                         .options = {.op = (int)op, .count = tensor_rank(index)},
                         .op_name = "index"};
    return op_run_kernel(&kernel);
}

static void find_extremes(const int64_t *numbers, int64_t count, int64_t extremes[2]) {
    ASSERT(count > 0);
    extremes[0] = extremes[1] = numbers[0];
    for (int64_t i = 1; i < count; i++) {
        if (numbers[i] < extremes[0]) extremes[0] = numbers[i];
        if (numbers[i] > extremes[1]) extremes[1] = numbers[i];
    }
}

static Status read_extremes(const Tensor *index, Tensor *both, int64_t extremes[2]) {
    TRY(put_extreme(index, REDUCE_MIN, both, 0));
    TRY(put_extreme(index, REDUCE_MAX, both, 1));
    bool before = foretell_ignore_checks();
    Status status = tensor_read_integers(both, extremes);
    foretell_ignore_reads(before);
    return status;
}

// Room for the extremes is taken whether or not the device knows: memory is foretold, and what a
// device knows in a run is not.
Status compose_within(const Tensor *index, int64_t least, int64_t most, int64_t *outside) {
    int64_t extremes[2] = {least, most};
    *outside = least;
    if (tensor_count(index) == 0) return STATUS_OK;
    if (index->host && !index->host->is_float) { // a literal, which the host knows
        find_extremes(index->host->as.integers, tensor_count(index), extremes);
    } else {
        const DeviceBackend *backend = index->device->backend;
        SCOPED_TENSOR(both);
        Shape shape = {.rank = 1, .dims = {2}};
        TRY(tensor_new(index->device, DTYPE_INT64, &shape, &both));
        if (backend->integers_within && backend->integers_within(&index->view, least, most))
            return STATUS_OK;
        TRY(read_extremes(index, both, extremes));
        bool inside = extremes[0] >= least && extremes[1] <= most, known = !index->device->foretold;
        if (backend->integers_lie && inside)
            backend->integers_lie(&index->view, known ? extremes[0] : least,
                                  known ? extremes[1] : most);
    }
    *outside = extremes[extremes[0] >= least];
    return STATUS_OK;
}

Status compose_know(Tensor *x) {
    int64_t any;
    if (!device_runs_ahead(x->device) || tensor_dtype(x) != DTYPE_INT64) return STATUS_OK;
    TRY(tensor_materialize(x));
    return compose_within(x, INT64_MIN, INT64_MAX, &any);
}

Status compose_check_indexes(const Tensor *index, const Tensor *x, int dim) {
    ASSERT(dim >= 0 && dim < tensor_rank(x));
    int64_t size = x->view.dims[dim], wrong;
    if (tensor_count(index) == 0) return STATUS_OK;
    TRY(compose_within(index, -size, size - 1, &wrong));
    if (wrong >= -size && wrong < size) return STATUS_OK;
    return fail(STATUS_INDEX, "index %lld is out of range for dimension %d of %s: its size is %lld",
                (long long)wrong, dim, tensor_type_name(x).text, (long long)size);
}

Status compose_dim(const Tensor *x, int64_t dim, int *out) {
    *out = 0;
    if (tensor_rank(x) == 0 && (dim == 0 || dim == -1)) return STATUS_OK;
    return op_dim(x, dim, out);
}

Status compose_at_least_1d(Tensor *x, Tensor **out) {
    if (tensor_rank(x) == 0) return tensor_unsqueeze(x, 0, out);
    *out = tensor_retain(x);
    return STATUS_OK;
}

TensorView compose_dim_last(const Tensor *x, int dim) {
    TensorView view = x->view;
    ASSERT(dim >= 0 && dim < x->view.rank);
    for (int i = dim; i + 1 < view.rank; i++) {
        view.dims[i] = x->view.dims[i + 1];
        view.strides[i] = x->view.strides[i + 1];
    }
    view.dims[view.rank - 1] = x->view.dims[dim];
    view.strides[view.rank - 1] = x->view.strides[dim];
    return view;
}

TensorView compose_broadcast_leading(const TensorView *view, const Shape *leading, int keep) {
    TensorView result = *view;
    result.rank = leading->rank + keep;
    int missing = result.rank - view->rank;
    for (int i = 0; i < result.rank; i++) {
        int from = i - missing;
        bool trailing = i >= leading->rank;
        bool own = from >= 0 && (trailing || view->dims[from] == leading->dims[i]);
        result.dims[i] = trailing && own ? view->dims[from] : leading->dims[i];
        result.strides[i] = own ? view->strides[from] : 0;
    }
    return result;
}

int64_t compose_product(const int64_t *dims, int first, int last) {
    ASSERT(first >= 0 && first <= last && last <= RANK_MAX);
    int64_t product = 1;
    for (int i = first; i < last; i++) product *= dims[i];
    return product;
}

Shape compose_shape(int rank, const int64_t *dims) {
    Shape shape = {.rank = rank};
    ASSERT(rank >= 0 && rank <= RANK_MAX);
    for (int i = 0; i < rank; i++) shape.dims[i] = dims[i];
    return shape;
}

Status compose_kernel(const OpCall *call, KernelId kernel, const KernelOptions *options,
                      TensorSpan inputs, Tensor *out) {
    ASSERT(inputs.count >= 0 && inputs.count <= KERNEL_INPUTS_MAX);
    KernelCall request;
    request.kernel = kernel;
    request.n_inputs = inputs.count;
    request.n_outputs = 1;
    request.outputs[0] = &out->view;
    request.options = *options;
    request.all_rows = 0;
    request.op_name = call->op->name;
    for (int i = 0; i < inputs.count; i++) request.inputs[i] = compose_operand(inputs.items[i]);
    return op_run_kernel(&request);
}

Status compose_fill(const OpCall *call, const TensorView *view, Scalar value) {
    return op_fill_view(view, value, call->op->name);
}

Status compose_with_number(OpId op, Tensor *x, double number, Tensor **out) {
    return op_binary(op, op_tensor(x), op_float(number), out);
}
