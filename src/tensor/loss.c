// Losses: one number that training makes small. All are made of other operations.
#include "device/work.h"
#include "shape/rules.h"
#include "tensor/compose.h"

static bool have_same_shape(const Tensor *x, const Tensor *y) {
    bool same = tensor_rank(x) == tensor_rank(y);
    for (int i = 0; same && i < tensor_rank(x); i++) same = x->view.dims[i] == y->view.dims[i];
    return same;
}

// The two operands in one shape, so that [n] beside [n, 1] is an error and not n * n differences.
static Status same_shape(const OpCall *call, const Tensor *x, const Tensor *y) {
    TensorType left = tensor_type(x), right = tensor_type(y);
    return shape_same(call->op->name, &left, &right);
}

// x - y in a floating dtype.
static Status difference(const OpCall *call, Tensor **out) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(y);
    TRY(same_shape(call, call->inputs[0].tensor, call->inputs[1].tensor));
    TRY(compose_floating(call->inputs[0].tensor, &x));
    TRY(compose_floating(call->inputs[1].tensor, &y));
    return op_binary(OP_sub, op_tensor(x), op_tensor(y), out);
}

// The mean of f(x - y).
static Status mean_of(const OpCall *call, OpId f, Tensor **out) {
    SCOPED_TENSOR(distance);
    SCOPED_TENSOR(each);
    TRY(difference(call, &distance));
    TRY(op_unary(f, distance, &each));
    return op_unary(OP_mean, each, out);
}

Status op_run_mse_loss(const OpCall *call, Tensor **results) {
    return mean_of(call, OP_square, results);
}
Status op_run_mae_loss(const OpCall *call, Tensor **results) {
    return mean_of(call, OP_abs, results);
}

// 0.5 d^2 where |d| <= delta, else delta (|d| - 0.5 delta).
Status op_run_huber_loss(const OpCall *call, Tensor **results) {
    double delta = ATTRIBUTE_OR(call, delta, 1.0);
    if (!(delta > 0))
        return fail(STATUS_VALUE, "huber_loss: delta is %g; it must be positive", delta);
    SCOPED_TENSOR(distance);
    SCOPED_TENSOR(magnitude);
    SCOPED_TENSOR(inner);
    SCOPED_TENSOR(rest);
    SCOPED_TENSOR(half);
    SCOPED_TENSOR(factor);
    TRY(difference(call, &distance));
    TRY(op_unary(OP_abs, distance, &magnitude));
    // With m = min(|d|, delta) both cases are m (|d| - m / 2).
    TRY(op_binary(OP_minimum, op_tensor(magnitude), op_float(delta), &inner));
    TRY(compose_with_number(OP_mul, inner, 0.5, &half));
    TRY(op_binary(OP_sub, op_tensor(magnitude), op_tensor(half), &rest));
    TRY(op_binary(OP_mul, op_tensor(inner), op_tensor(rest), &factor));
    return op_unary(OP_mean, factor, results);
}

// Unlike an index a class does not count from the end.
static Status check_classes(const OpCall *call, const Tensor *ids, int64_t classes) {
    int64_t extremes[2];
    if (tensor_count(ids) == 0) return STATUS_OK;
    TRY(compose_extremes(ids, extremes));
    if (extremes[0] >= 0 && extremes[1] < classes) return STATUS_OK;
    return fail(STATUS_INDEX, "%s: class %lld is out of range: there are %lld classes",
                call->op->name, (long long)extremes[extremes[0] >= 0], (long long)classes);
}

// Minus the mean of the numbers of log_probabilities [.., classes] that the ids [..] select.
static Status select_classes(const OpCall *call, Tensor *logs, Tensor *target, Tensor **out) {
    SCOPED_TENSOR(ids);
    SCOPED_TENSOR(column);
    SCOPED_TENSOR(chosen);
    SCOPED_TENSOR(mean);
    TRY(compose_whole(call, target, "target", &ids));
    TensorType logits = tensor_type(logs), given = tensor_type(target);
    TRY(shape_classes(call->op->name, &logits, &given));
    int rank = tensor_rank(logs);
    TRY(check_classes(call, ids, logs->view.dims[rank - 1]));
    TRY(tensor_unsqueeze(ids, -1, &column));
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = -1};
    Tensor *inputs[2] = {logs, column};
    TRY(op_with(OP_gather, inputs, 2, &attributes, &chosen));
    TRY(op_unary(OP_mean, chosen, &mean));
    return op_unary(OP_neg, mean, out);
}

// Minus the mean over rows of sum(probabilities * logs).
static Status weigh_classes(Tensor *logs, Tensor *probabilities, Tensor **out) {
    SCOPED_TENSOR(each);
    SCOPED_TENSOR(rows);
    SCOPED_TENSOR(mean);
    TRY(op_binary(OP_mul, op_tensor(probabilities), op_tensor(logs), &each));
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = -1};
    TRY(op_with(OP_sum, &each, 1, &attributes, &rows));
    TRY(op_unary(OP_mean, rows, &mean));
    return op_unary(OP_neg, mean, out);
}

// The losses of all rows in one pass over the logits.
static Status select_at_once(const OpCall *call, Tensor *logits, Tensor *target, Tensor **out) {
    SCOPED_TENSOR(floats);
    SCOPED_TENSOR(wide);
    SCOPED_TENSOR(dense);
    SCOPED_TENSOR(ids);
    SCOPED_TENSOR(classes);
    SCOPED_TENSOR(rows);
    SCOPED_TENSOR(mean);
    TRY(compose_whole(call, target, "target", &ids));
    TensorType type = tensor_type(logits), given = tensor_type(target);
    TRY(shape_classes(call->op->name, &type, &given));
    TRY(check_classes(call, ids, logits->view.dims[tensor_rank(logits) - 1]));
    TRY(compose_floating(logits, &floats));
    TRY(compose_wide(floats, &wide));
    TRY(tensor_contiguous(wide, &dense));
    TRY(tensor_contiguous(ids, &classes));
    Shape shape = tensor_shape(classes);
    TRY(tensor_new(dense->device, tensor_dtype(dense), &shape, &rows));
    KernelOptions options = {0};
    Tensor *inputs[2] = {dense, classes};
    TRY(compose_kernel(call, KERNEL_CROSS_ENTROPY, &options, inputs, 2, rows));
    TRY(op_unary(OP_mean, rows, &mean));
    return tensor_cast(mean, tensor_dtype(floats), out);
}

Status op_run_cross_entropy(const OpCall *call, Tensor **results) {
    Tensor *logits = call->inputs[0].tensor, *target = call->inputs[1].tensor;
    bool weighs = have_same_shape(logits, target) && dtype_is_float(tensor_dtype(target));
    SCOPED_TENSOR(logs);
    if (tensor_rank(logits) == 0)
        return fail(STATUS_SHAPE, "cross_entropy needs logits [.., classes], but it is given %s",
                    tensor_type_name(logits).text);
    if (!weighs && device_has(logits->device, KERNEL_CROSS_ENTROPY))
        return select_at_once(call, logits, target, results);
    TRY(op_unary(OP_log_softmax, logits, &logs));
    if (weighs) return weigh_classes(logs, target, results);
    return select_classes(call, logs, target, results);
}

Status op_run_nll_loss(const OpCall *call, Tensor **results) {
    return select_classes(call, call->inputs[0].tensor, call->inputs[1].tensor, results);
}

// softplus(x) - x * target, which is -log of the probability without ever making it.
Status op_run_binary_cross_entropy(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(score);
    SCOPED_TENSOR(total);
    SCOPED_TENSOR(product);
    SCOPED_TENSOR(each);
    TRY(same_shape(call, call->inputs[0].tensor, call->inputs[1].tensor));
    TRY(compose_floating(call->inputs[0].tensor, &score));
    TRY(op_unary(OP_softplus, score, &total));
    TRY(op_binary(OP_mul, op_tensor(score), op_tensor(call->inputs[1].tensor), &product));
    TRY(op_binary(OP_sub, op_tensor(total), op_tensor(product), &each));
    return op_unary(OP_mean, each, results);
}

// mean(relu(margin - (positive - negative))).
Status op_run_margin_ranking_loss(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(lead);
    SCOPED_TENSOR(shortfall);
    SCOPED_TENSOR(loss);
    TRY(difference(call, &lead));
    TRY(op_binary(OP_sub, op_float(ATTRIBUTE_OR(call, margin, 1.0)), op_tensor(lead), &shortfall));
    TRY(op_unary(OP_relu, shortfall, &loss));
    return op_unary(OP_mean, loss, results);
}

// mean over rows of sum(target * (log(target) - x)), where x holds log probabilities.
Status op_run_kl_div(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(target);
    SCOPED_TENSOR(logs);
    SCOPED_TENSOR(positive);
    SCOPED_TENSOR(safe);
    SCOPED_TENSOR(entropy);
    SCOPED_TENSOR(cross);
    TRY(same_shape(call, call->inputs[0].tensor, call->inputs[1].tensor));
    TRY(compose_floating(call->inputs[1].tensor, &target));
    // 0 log 0 counts as 0.
    TRY(op_binary(OP_gt, op_tensor(target), op_int(0), &positive));
    TRY(op_ternary(OP_where, op_tensor(positive), op_tensor(target), op_int(1), &safe));
    TRY(op_unary(OP_log, safe, &logs));
    TRY(op_binary(OP_mul, op_tensor(target), op_tensor(logs), &entropy));
    TRY(op_binary(OP_mul, op_tensor(target), op_tensor(call->inputs[0].tensor), &cross));
    SCOPED_TENSOR(each);
    SCOPED_TENSOR(line);
    SCOPED_TENSOR(rows);
    TRY(op_binary(OP_sub, op_tensor(entropy), op_tensor(cross), &each));
    TRY(compose_at_least_1d(each, &line));
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = -1};
    TRY(op_with(OP_sum, &line, 1, &attributes, &rows));
    return op_unary(OP_mean, rows, results);
}
