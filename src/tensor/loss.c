// Losses: numbers that training makes small, reduced to one. All are made of other operations.
#include <string.h>

#include "device/work.h"
#include "shape/rules.h"
#include "tensor/gradient/gradient.h"

static bool have_same_shape(const Tensor *x, const Tensor *y) {
    bool same = tensor_rank(x) == tensor_rank(y);
    for (int i = 0; same && i < tensor_rank(x); i++) same = x->view.dims[i] == y->view.dims[i];
    return same;
}

// The two operands in one shape, so that [n] next to [n, 1] is an error and not n * n differences.
static Status same_shape(const OpCall *call, const Tensor *x, const Tensor *y) {
    TensorType left = tensor_type(x), right = tensor_type(y);
    return shape_same(call->op->name, &left, &right);
}

static Status read_reduction(const OpCall *call, Reduction *out) {
    const char *name = ATTRIBUTE_OR(call, reduction, "mean");
    return shape_reduction(call->op->name, name, strlen(name), out);
}

static Status reduce(const OpCall *call, Tensor *each, Tensor **out) {
    Reduction reduction;
    TRY(read_reduction(call, &reduction));
    if (reduction == REDUCTION_MEAN) return op_unary(OP_mean, each, out);
    if (reduction == REDUCTION_SUM) return op_unary(OP_sum, each, out);
    *out = tensor_retain(each);
    return STATUS_OK;
}

// The share of the target that goes to all classes alike.
static Status read_smoothing(const OpCall *call, double *out) {
    *out = ATTRIBUTE_OR(call, label_smoothing, 0);
    if (*out >= 0 && *out <= 1) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: label_smoothing is %g; it must be from 0 to 1", call->op->name,
                *out);
}

// x * (1 - smoothing) + smoothing / classes
static Status smooth(Tensor *x, double smoothing, double classes, Tensor **out) {
    SCOPED_TENSOR(scaled);
    if (smoothing == 0) {
        *out = tensor_retain(x);
        return STATUS_OK;
    }
    TRY(compose_with_number(OP_mul, x, 1 - smoothing, &scaled));
    return compose_with_number(OP_add, scaled, smoothing / classes, out);
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

// f(x - y), reduced.
static Status reduce_distance(const OpCall *call, OpId f, Tensor **out) {
    SCOPED_TENSOR(distance);
    SCOPED_TENSOR(each);
    TRY(difference(call, &distance));
    TRY(op_unary(f, distance, &each));
    return reduce(call, each, out);
}

Status op_run_mse_loss(const OpCall *call, Tensor **results) {
    return reduce_distance(call, OP_square, results);
}
Status op_run_mae_loss(const OpCall *call, Tensor **results) {
    return reduce_distance(call, OP_abs, results);
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
    return reduce(call, factor, results);
}

// Unlike an index a class does not count from the end.
static Status check_classes(const OpCall *call, const Tensor *ids, int64_t classes) {
    int64_t wrong;
    if (tensor_count(ids) == 0) return STATUS_OK;
    TRY(compose_within(ids, 0, classes - 1, &wrong));
    if (wrong >= 0 && wrong < classes) return STATUS_OK;
    return fail(STATUS_INDEX, "%s: class %lld is out of range: there are %lld classes",
                call->op->name, (long long)wrong, (long long)classes);
}

// The numbers of logs [.., classes] at the ids [..].
static Status numbers_at(Tensor *logs, Tensor *ids, Tensor **out) {
    SCOPED_TENSOR(column);
    SCOPED_TENSOR(chosen);
    TRY(tensor_unsqueeze(ids, -1, &column));
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = -1};
    Tensor *inputs[2] = {logs, column};
    TRY(op_with(OP_gather, inputs, 2, &attributes, &chosen));
    return tensor_squeeze(chosen, tensor_rank(chosen) - 1, out);
}

// The sums of shares * logs * weight over the classes, with the sign changed: [..].
static Status weigh_classes(Tensor *logs, Tensor *shares, Tensor *weight, Tensor **out) {
    SCOPED_TENSOR(each);
    SCOPED_TENSOR(weighed);
    SCOPED_TENSOR(rows);
    if (shares)
        TRY(op_binary(OP_mul, op_tensor(shares), op_tensor(logs), &each));
    else
        each = tensor_retain(logs);
    if (weight)
        TRY(op_binary(OP_mul, op_tensor(each), op_tensor(weight), &weighed));
    else
        weighed = tensor_retain(each);
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = -1};
    TRY(op_with(OP_sum, &weighed, 1, &attributes, &rows));
    return op_unary(OP_neg, rows, out);
}

// What a loss of classes is told next to scores and target.
typedef struct ClassOptions {
    Tensor *weight; // [classes], borrowed; NULL: all count alike
    bool ignores;
    int64_t ignored; // the class whose rows count nothing
    double smoothing;
} ClassOptions;

static Status read_class_options(const OpCall *call, ClassOptions *out) {
    *out = (ClassOptions){.weight = compose_input(call, 2),
                          .ignores = op_has(call, ATTRIBUTE_ignore_index),
                          .ignored = ATTRIBUTE_OR(call, ignore_index, 0)};
    TRY(read_smoothing(call, &out->smoothing));
    if (!out->weight) return STATUS_OK;
    TensorType scores = tensor_type(call->inputs[0].tensor), weight = tensor_type(out->weight);
    return shape_class_weights(call->op->name, &scores, &weight);
}

// ids: 0 in place of the ignored class; kept: where it is another, NULL when none is ignored.
static Status leave_out(const OpCall *call, const ClassOptions *options, Tensor **ids,
                        Tensor **kept) {
    SCOPED_TENSOR(given);
    TRY(compose_whole(call, call->inputs[1].tensor, "target", &given));
    TensorType scores = tensor_type(call->inputs[0].tensor);
    TensorType target = tensor_type(call->inputs[1].tensor); // as the script has it
    TRY(shape_classes(call->op->name, &scores, &target));
    if (options->ignores) {
        TRY(op_binary(OP_ne, op_tensor(given), op_int(options->ignored), kept));
        TRY(op_ternary(OP_where, op_tensor(*kept), op_tensor(given), op_int(0), ids));
    } else {
        *ids = tensor_retain(given);
    }
    return check_classes(call, *ids, scores.shape.dims[scores.shape.rank - 1]);
}

// The loss of each row, [..], before rows are left out; `shares`: its weight, or NULL.
static Status class_losses(Tensor *logs, Tensor *ids, Tensor *shares, const ClassOptions *options,
                           Tensor **out) {
    SCOPED_TENSOR(chosen);
    SCOPED_TENSOR(lost);
    SCOPED_TENSOR(weighed);
    SCOPED_TENSOR(all);
    SCOPED_TENSOR(sharp);
    SCOPED_TENSOR(even);
    TRY(numbers_at(logs, ids, &chosen));
    TRY(op_unary(OP_neg, chosen, &lost));
    if (shares)
        TRY(op_binary(OP_mul, op_tensor(lost), op_tensor(shares), &weighed));
    else
        weighed = tensor_retain(lost);
    if (options->smoothing == 0) return compose_give(&weighed, out);
    double classes = (double)logs->view.dims[tensor_rank(logs) - 1];
    TRY(weigh_classes(logs, NULL, options->weight, &all));
    TRY(compose_with_number(OP_mul, weighed, 1 - options->smoothing, &sharp));
    TRY(compose_with_number(OP_mul, all, options->smoothing / classes, &even));
    return op_binary(OP_add, op_tensor(sharp), op_tensor(even), out);
}

// The mean of rows that count as much as their class: sum(each) / sum(shares).
static Status weighted_mean(Tensor *each, Tensor *shares, Tensor **out) {
    SCOPED_TENSOR(total);
    SCOPED_TENSOR(count);
    TRY(op_unary(OP_sum, each, &total));
    TRY(op_unary(OP_sum, shares, &count));
    return op_binary(OP_div, op_tensor(total), op_tensor(count), out);
}

// x where rows count, 0 elsewhere.
static Status where_kept(Tensor *kept, Tensor *x, Tensor **out) {
    if (kept) return op_ternary(OP_where, op_tensor(kept), op_tensor(x), op_int(0), out);
    *out = tensor_retain(x);
    return STATUS_OK;
}

// The loss of log probabilities logs [.., classes] at the target classes [..].
static Status select_classes(const OpCall *call, Tensor *logs, Tensor **out) {
    ClassOptions options;
    Reduction reduction;
    SCOPED_TENSOR(ids);
    SCOPED_TENSOR(kept);
    SCOPED_TENSOR(shares);
    SCOPED_TENSOR(losses);
    SCOPED_TENSOR(each);
    TRY(read_reduction(call, &reduction));
    TRY(read_class_options(call, &options));
    TRY(leave_out(call, &options, &ids, &kept));
    if (options.weight) TRY(op_with(OP_take, (Tensor *[]){options.weight, ids}, 2, NULL, &shares));
    TRY(class_losses(logs, ids, shares, &options, &losses));
    TRY(where_kept(kept, losses, &each));
    if (reduction != REDUCTION_MEAN || (!kept && !shares)) return reduce(call, each, out);
    SCOPED_TENSOR(counted);
    if (!shares) TRY(op_unary(OP_ones_like, each, &shares));
    TRY(where_kept(kept, shares, &counted));
    return weighted_mean(each, counted, out);
}

// The loss of log probabilities where the target, of their shape, says how probable each class is.
static Status expect_classes(const OpCall *call, Tensor *logs, Tensor **out) {
    ClassOptions options;
    SCOPED_TENSOR(shares);
    SCOPED_TENSOR(rows);
    TRY(read_class_options(call, &options));
    if (options.ignores)
        return fail(STATUS_VALUE, "%s: ignore_index needs classes as target, not probabilities",
                    call->op->name);
    double classes = (double)logs->view.dims[tensor_rank(logs) - 1];
    TRY(smooth(call->inputs[1].tensor, options.smoothing, classes, &shares));
    TRY(weigh_classes(logs, shares, options.weight, &rows));
    return reduce(call, rows, out);
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
    TRY(compose_kernel(call, KERNEL_CROSS_ENTROPY, &options, (TensorSpan){inputs, 2}, rows));
    TRY(op_unary(OP_mean, rows, &mean));
    return tensor_cast(mean, tensor_dtype(floats), out);
}

// The mean over rows without options: one kernel where the device has it, one node on the tape.
static Status plain_entropy(const OpCall *call, bool expects, Tensor **out) {
    Tensor *logits = call->inputs[0].tensor, *target = call->inputs[1].tensor;
    SCOPED_TENSOR(logs);
    if (!expects && device_has(logits->device, KERNEL_CROSS_ENTROPY))
        return select_at_once(call, logits, target, out);
    TRY(op_unary(OP_log_softmax, logits, &logs));
    return expects ? expect_classes(call, logs, out) : select_classes(call, logs, out);
}

static Status is_plain(const OpCall *call, bool *out) {
    Reduction reduction;
    TRY(read_reduction(call, &reduction));
    *out = reduction == REDUCTION_MEAN && !compose_input(call, 2) &&
           !op_has(call, ATTRIBUTE_ignore_index) && ATTRIBUTE_OR(call, label_smoothing, 0) == 0;
    return STATUS_OK;
}

Status op_run_cross_entropy(const OpCall *call, Tensor **results) {
    Tensor *logits = call->inputs[0].tensor, *target = call->inputs[1].tensor;
    bool expects = have_same_shape(logits, target) && dtype_is_float(tensor_dtype(target)), plain;
    SCOPED_TENSOR(logs);
    if (tensor_rank(logits) == 0)
        return fail(STATUS_SHAPE, "cross_entropy needs logits [.., classes], but it is given %s",
                    tensor_type_name(logits).text);
    TRY(is_plain(call, &plain));
    if (plain) {
        TapeRecord record = tape_begin(&gradient_cross_entropy, (Tensor *[]){logits, target}, 2);
        return tape_end(&record, plain_entropy(call, expects, results), results);
    }
    TRY(op_unary(OP_log_softmax, logits, &logs));
    return expects ? expect_classes(call, logs, results) : select_classes(call, logs, results);
}

Status op_run_nll_loss(const OpCall *call, Tensor **results) {
    return select_classes(call, call->inputs[0].tensor, results);
}

// softplus(x) - x * target, which is -log of the probability without ever making it.
static Status binary_losses(Tensor *score, Tensor *target, Tensor **out) {
    SCOPED_TENSOR(total);
    SCOPED_TENSOR(product);
    TRY(op_unary(OP_softplus, score, &total));
    TRY(op_binary(OP_mul, op_tensor(score), op_tensor(target), &product));
    return op_binary(OP_sub, op_tensor(total), op_tensor(product), out);
}

// The same with each positive counted w times: (1 - t) x + (1 + (w - 1) t) softplus(-x).
static Status weighted_binary_losses(Tensor *score, Tensor *target, Tensor *weight, Tensor **out) {
    SCOPED_TENSOR(rest);
    SCOPED_TENSOR(linear);
    SCOPED_TENSOR(opposite);
    SCOPED_TENSOR(total);
    SCOPED_TENSOR(more);
    SCOPED_TENSOR(surplus);
    SCOPED_TENSOR(factor);
    SCOPED_TENSOR(curved);
    TRY(op_binary(OP_sub, op_int(1), op_tensor(target), &rest));
    TRY(op_binary(OP_mul, op_tensor(rest), op_tensor(score), &linear));
    TRY(op_unary(OP_neg, score, &opposite));
    TRY(op_unary(OP_softplus, opposite, &total));
    TRY(compose_with_number(OP_sub, weight, 1, &more));
    TRY(op_binary(OP_mul, op_tensor(target), op_tensor(more), &surplus));
    TRY(compose_with_number(OP_add, surplus, 1, &factor));
    TRY(op_binary(OP_mul, op_tensor(factor), op_tensor(total), &curved));
    return op_binary(OP_add, op_tensor(linear), op_tensor(curved), out);
}

Status op_run_binary_cross_entropy(const OpCall *call, Tensor **results) {
    double smoothing;
    Tensor *weight = compose_input(call, 2);
    SCOPED_TENSOR(score);
    SCOPED_TENSOR(target);
    SCOPED_TENSOR(each);
    TRY(same_shape(call, call->inputs[0].tensor, call->inputs[1].tensor));
    TRY(read_smoothing(call, &smoothing));
    TRY(compose_floating(call->inputs[0].tensor, &score));
    TRY(smooth(call->inputs[1].tensor, smoothing, 2, &target));
    if (weight) {
        TensorType scores = tensor_type(score);
        Shape trailing = tensor_shape(weight);
        TRY(shape_stretched(call->op->name, &scores, &trailing, "pos_weight"));
        TRY(weighted_binary_losses(score, target, weight, &each));
    } else {
        TRY(binary_losses(score, target, &each));
    }
    return reduce(call, each, results);
}

// relu(margin - (positive - negative)), reduced.
Status op_run_margin_ranking_loss(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(lead);
    SCOPED_TENSOR(shortfall);
    SCOPED_TENSOR(each);
    TRY(difference(call, &lead));
    TRY(op_binary(OP_sub, op_float(ATTRIBUTE_OR(call, margin, 1.0)), op_tensor(lead), &shortfall));
    TRY(op_unary(OP_relu, shortfall, &each));
    return reduce(call, each, results);
}

// sum(target * (log(target) - x)) of each row, reduced; x holds log probabilities.
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
    return reduce(call, rows, results);
}
