// Softmax and the normalisations.
#include <math.h>
#include <string.h>

#include "shape/rules.h"
#include "tensor/gradient/gradient.h"
#include "tensor/norm.h"

static Status softmax(const OpCall *call, bool logarithm, Tensor **out) {
    SCOPED_TENSOR(floats);
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(result);
    int dim;
    TRY(compose_floating(call->inputs[0].tensor, &floats));
    TRY(compose_dim(floats, ATTRIBUTE_OR(call, dim, -1), &dim));
    TRY(compose_at_least_1d(floats, &x));
    Shape shape = tensor_shape(x);
    TRY(tensor_new(x->device, tensor_dtype(x), &shape, &result));
    TensorView input = compose_dim_last(x, dim), output = compose_dim_last(result, dim);
    KernelCall kernel = {.kernel = KERNEL_SOFTMAX,
                         .n_inputs = 1,
                         .n_outputs = 1,
                         .inputs = {{.view = &input}},
                         .outputs = {&output},
                         .options = {.count = 1, .flag = logarithm},
                         .op_name = call->op->name};
    TRY(op_run_kernel(&kernel));
    if (tensor_rank(floats) > 0) return compose_give(&result, out);
    return tensor_squeeze(result, 0, out);
}

Status op_run_softmax(const OpCall *call, Tensor **results) {
    return softmax(call, false, results);
}
Status op_run_log_softmax(const OpCall *call, Tensor **results) {
    return softmax(call, true, results);
}

// The trailing dimensions of x are those of `shape`; `what` names where that came from.
static Status check_trailing(const OpCall *call, const Tensor *x, const Shape *shape,
                             const char *what) {
    TensorType type = tensor_type(x);
    return shape_trailing(call->op->name, &type, shape, what);
}

static Status check_eps(const OpCall *call, double eps) {
    if (eps >= 0) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: eps is %g; it must not be negative", call->op->name, eps);
}

Status op_run_rms_norm(const OpCall *call, Tensor **results) {
    double eps = ATTRIBUTE_OR(call, eps, 1e-6);
    TRY(check_eps(call, eps));
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(weight);
    SCOPED_TENSOR(result);
    TRY(compose_floating(call->inputs[0].tensor, &x));
    int count = 1;
    if (compose_input(call, 1)) {
        TRY(compose_floating(compose_input(call, 1), &weight));
        Shape trailing = tensor_shape(weight);
        TRY(check_trailing(call, x, &trailing, "weight"));
        count = trailing.rank;
    } else if (tensor_rank(x) == 0) {
        return fail(STATUS_SHAPE, "rms_norm needs at least one dimension, but x is %s",
                    tensor_type_name(x).text);
    }
    Shape shape = tensor_shape(x);
    TRY(tensor_new(x->device, tensor_dtype(x), &shape, &result));
    KernelOptions options = {.count = count, .scalars = {eps}};
    Tensor *inputs[2] = {x, weight};
    TRY(compose_kernel(call, KERNEL_RMS_NORM, &options, (TensorSpan){inputs, weight ? 2 : 1},
                       result));
    return compose_give(&result, results);
}

// The arguments of layer_norm, told apart by kind: integers are the shape, tensors of floats
// weight and bias in that order, one number eps.
typedef struct LayerNorm {
    bool has_shape;
    Shape shape;
    Tensor *weight, *bias; // borrowed
    double eps;
} LayerNorm;

static bool is_whole(const Tensor *tensor) {
    return dtype_kind(tensor_dtype(tensor)) == DTYPE_KIND_INT;
}

static Status read_shape(const OpCall *call, Tensor *given, LayerNorm *norm) {
    int64_t dims[RANK_MAX];
    if (tensor_rank(given) > 1 || tensor_count(given) > RANK_MAX)
        return fail(STATUS_SHAPE, "%s: the normalised shape is %s; it must be a list of sizes",
                    call->op->name, tensor_type_name(given).text);
    TRY(tensor_read_integers(given, dims));
    for (int i = 0; i < (int)tensor_count(given); i++) dims[i] = size_given(dims[i]);
    norm->shape = compose_shape((int)tensor_count(given), dims);
    norm->has_shape = true;
    return STATUS_OK;
}

static Status read_layer_norm(const OpCall *call, LayerNorm *norm) {
    *norm = (LayerNorm){.eps = ATTRIBUTE_OR(call, eps, 1e-5)};
    for (int i = 1; i < call->n_inputs; i++) {
        Tensor *given = call->inputs[i].tensor;
        if (!given) continue;
        if (i == 1 && is_whole(given)) {
            TRY(read_shape(call, given, norm));
        } else if (tensor_rank(given) == 0) {
            TRY(tensor_read_floats(given, &norm->eps));
        } else if (i < 3 && !norm->weight) {
            norm->weight = given;
        } else if (!norm->bias) {
            norm->bias = given;
        } else {
            return fail(STATUS_TYPE, "%s: there is a weight and a bias already; %s is one too many",
                        call->op->name, tensor_type_name(given).text);
        }
    }
    return check_eps(call, norm->eps);
}

// How many trailing dimensions are normalised, after checking all three shapes against x.
static Status layer_norm_count(const OpCall *call, const Tensor *x, const LayerNorm *norm,
                               int *out) {
    const Tensor *parts[2] = {norm->weight, norm->bias};
    const char *names[2] = {"weight", "bias"};
    *out = norm->has_shape ? norm->shape.rank : 1;
    if (norm->has_shape) TRY(check_trailing(call, x, &norm->shape, "the normalised shape"));
    if (tensor_rank(x) == 0)
        return fail(STATUS_SHAPE, "%s needs at least one dimension, but x is %s", call->op->name,
                    tensor_type_name(x).text);
    for (int i = 0; i < 2; i++) {
        if (!parts[i]) continue;
        Shape trailing = tensor_shape(parts[i]);
        TRY(check_trailing(call, x, &trailing, names[i]));
        if (!norm->has_shape && i == 0) *out = trailing.rank;
        if (trailing.rank != *out)
            return fail(STATUS_SHAPE, "%s: %s is %s, but %d trailing dimensions are normalised",
                        call->op->name, names[i], tensor_type_name(parts[i]).text, *out);
    }
    return STATUS_OK;
}

// x normalised over its last `count` dimensions, then * weight + bias where these are given.
Status layer_norm_kernel(const OpCall *call, Tensor *const *inputs, const LayerNormKept *kept,
                         Tensor **out) {
    Tensor *x = inputs[0];
    SCOPED_TENSOR(result);
    Shape shape = tensor_shape(x);
    TRY(tensor_new(x->device, tensor_dtype(x), &shape, &result));
    KernelOptions options = {.count = kept->count, .scalars = {kept->eps}};
    int n_inputs = inputs[2] ? 3 : (inputs[1] ? 2 : 1);
    TRY(compose_kernel(call, KERNEL_LAYER_NORM, &options, (TensorSpan){inputs, n_inputs}, result));
    return compose_give(&result, out);
}

static Status layer_norm_run(const OpCall *call, Tensor *x, const LayerNorm *norm, int count,
                             Tensor **out) {
    SCOPED_TENSOR(weight);
    SCOPED_TENSOR(bias);
    if (norm->weight) TRY(compose_floating(norm->weight, &weight));
    if (norm->bias) TRY(compose_floating(norm->bias, &bias));
    if (bias && !weight) TRY(op_unary(OP_ones_like, bias, &weight));
    Tensor *inputs[3] = {x, weight, bias};
    LayerNormKept kept = {count, norm->eps};
    TapeRecord record = tape_begin(&gradient_layer_norm, inputs, 3);
    tape_keep(&record, &kept, sizeof kept);
    return tape_end(&record, layer_norm_kernel(call, inputs, &kept, out), out);
}

Status op_run_layer_norm(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    LayerNorm norm;
    int count;
    TRY(read_layer_norm(call, &norm));
    TRY(compose_floating(call->inputs[0].tensor, &x));
    TRY(layer_norm_count(call, x, &norm, &count));
    return layer_norm_run(call, x, &norm, count, results);
}

// x * weight + bias, both broadcast; the result keeps x's dtype.
static Status scale_and_shift(Tensor *x, Tensor *weight, Tensor *bias, Tensor **out) {
    SCOPED_TENSOR(scaled);
    SCOPED_TENSOR(shifted);
    if (weight)
        TRY(op_binary(OP_mul, op_tensor(x), op_tensor(weight), &scaled));
    else
        scaled = tensor_retain(x);
    if (bias)
        TRY(op_binary(OP_add, op_tensor(scaled), op_tensor(bias), &shifted));
    else
        shifted = tensor_retain(scaled);
    return tensor_cast(shifted, tensor_dtype(x), out);
}

Status op_run_batch_norm(const OpCall *call, Tensor **results) {
    double eps = ATTRIBUTE_OR(call, eps, 1e-5);
    TRY(check_eps(call, eps));
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(columns);
    SCOPED_TENSOR(normal);
    SCOPED_TENSOR(rows);
    TRY(compose_floating(call->inputs[0].tensor, &x));
    if (tensor_rank(x) < 1)
        return fail(STATUS_SHAPE, "batch_norm needs at least one dimension, but x is %s",
                    tensor_type_name(x).text);
    // Statistics over dimension 0 are those of a layer over the last one of the moved tensor.
    TRY(tensor_move_dim_last(x, 0, &columns));
    LayerNorm norm = {.eps = eps};
    TRY(layer_norm_run(call, columns, &norm, 1, &normal));
    TRY(tensor_move_dim(normal, -1, 0, &rows));
    return scale_and_shift(rows, compose_input(call, 1), compose_input(call, 2), results);
}

// A weight per channel as [channels, 1, ...], to broadcast over [batch, channels, ...].
static Status per_channel(const OpCall *call, Tensor *weight, const Tensor *x, const char *what,
                          Tensor **out) {
    Shape shape = {.rank = tensor_rank(x) - 1, .dims = {x->view.dims[1]}};
    for (int i = 1; i < shape.rank; i++) shape.dims[i] = 1;
    TensorType type = tensor_type(x), given = tensor_type(weight);
    TRY(shape_per_channel(call->op->name, &type, &given, what));
    return tensor_reshape(weight, &shape, out);
}

Status op_run_group_norm(const OpCall *call, Tensor **results) {
    LayerNorm norm = {.eps = ATTRIBUTE_OR(call, eps, 1e-5)};
    int64_t groups = call->attributes->groups;
    TRY(check_eps(call, norm.eps));
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(grouped);
    SCOPED_TENSOR(normal);
    SCOPED_TENSOR(whole);
    TRY(compose_floating(call->inputs[0].tensor, &x));
    TensorType type = tensor_type(x);
    TRY(shape_groups(&type, groups));
    Shape shape = tensor_shape(x);
    int64_t rest = compose_product(shape.dims, 1, shape.rank) / groups;
    Shape split = {.rank = 3, .dims = {shape.dims[0], groups, rest}};
    TRY(tensor_reshape(x, &split, &grouped));
    TRY(layer_norm_run(call, grouped, &norm, 1, &normal));
    TRY(tensor_reshape(normal, &shape, &whole));
    SCOPED_TENSOR(weight);
    SCOPED_TENSOR(bias);
    if (compose_input(call, 1))
        TRY(per_channel(call, compose_input(call, 1), x, "weight", &weight));
    if (compose_input(call, 2)) TRY(per_channel(call, compose_input(call, 2), x, "bias", &bias));
    return scale_and_shift(whole, weight, bias, results);
}

Status op_run_normalize_features(const OpCall *call, Tensor **results) {
    const char *kind = ATTRIBUTE_OR(call, norm, "l2");
    double p = strcmp(kind, "l2") == 0 ? 2 : strcmp(kind, "l1") == 0 ? 1 : INFINITY;
    if (isinf(p) && strcmp(kind, "max") != 0) {
        (void)fail(STATUS_VALUE, "normalize_features: there is no norm \"%s\"", kind);
        return fail_help("\"l2\", \"l1\" and \"max\" are known");
    }
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(line);
    SCOPED_TENSOR(length);
    SCOPED_TENSOR(divisor);
    TRY(compose_floating(call->inputs[0].tensor, &x));
    TRY(compose_at_least_1d(x, &line));
    OpAttributes attributes = {.given =
                                   ATTRIBUTE_BIT(p) | ATTRIBUTE_BIT(dim) | ATTRIBUTE_BIT(keepdim),
                               .p = p,
                               .dim = -1,
                               .keepdim = true};
    TRY(op_with(OP_norm, &line, 1, &attributes, &length));
    SCOPED_TENSOR(result);
    SCOPED_TENSOR(is_zero);
    // A row of zeros has no direction: it stays as it is.
    TRY(op_binary(OP_eq, op_tensor(length), op_int(0), &is_zero));
    TRY(op_ternary(OP_where, op_tensor(is_zero), op_int(1), op_tensor(length), &divisor));
    TRY(op_binary(OP_div, op_tensor(line), op_tensor(divisor), &result));
    Shape shape = tensor_shape(x);
    return tensor_reshape(result, &shape, results);
}
