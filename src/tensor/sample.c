// Choosing a class from scores or probabilities, and narrowing the choice. What keeps the shape
// runs on the device; the draw itself is one number and is made on the host.
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"
#include "device/cpu/fold.h"
#include "device/work.h"
#include "tensor/compose.h"
#include "tensor/random.h"

// At and below this temperature the largest score is taken.
static const double GREEDY_TEMPERATURE = 1e-4;

// The numbers of one row on the host.
typedef struct Row {
    double *items;
    int64_t count;
} Row;

// The last row of a matrix, or the vector itself.
static Status last_row(const OpCall *call, Tensor *x, Tensor **out) {
    SCOPED_TENSOR(row);
    row = tensor_retain(x);
    while (tensor_rank(row) > 1 && row->view.dims[0] > 0) {
        Tensor *inner;
        TRY(tensor_select(row, 0, -1, &inner));
        tensor_release(row);
        row = inner;
    }
    if (tensor_rank(row) != 1 || tensor_count(row) == 0)
        return fail(STATUS_SHAPE, "%s: there is nothing to choose from in %s", call->op->name,
                    tensor_type_name(x).text);
    return compose_give(&row, out);
}

static double folded(const Row *row, Fold fold) {
    const FoldTable *folds = cpu_fold(COMPUTE_F64);
    Wide state = folds->identity[fold];
    folds->row[fold](&state, row->items, row->count, (Wide){0});
    return state.f;
}

// The position of the first number that is as large as `top`, the largest of a row, or nan like it.
static int64_t position_of(const Row *row, double top) {
    return cpu_fold(COMPUTE_F64)->find(row->items, row->count, (Wide){.f = top});
}

// Reads the row, and gives its largest number.
static Status read_row(const OpCall *call, Row *row, double *top) {
    SCOPED_TENSOR(last);
    TRY(last_row(call, call->inputs[0].tensor, &last));
    row->count = tensor_count(last);
    row->items = memory_allocate((size_t)row->count * sizeof *row->items);
    TRY(tensor_read_floats(last, row->items));
    *top = folded(row, FOLD_MAX);
    if (!isnan(*top)) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: number %lld is nan", call->op->name,
                (long long)position_of(row, *top));
}

// A rank-0 int64 tensor.
static Status give_choice(int64_t choice, Tensor **out) {
    Shape shape = {0};
    return tensor_from_integers(&choice, &shape, DTYPE_INT64, out);
}

// Scores become weights in place: exp(score / temperature) relative to the largest.
static Status weigh_scores(const OpCall *call, Row *row, double top, double temperature) {
    const FoldTable *folds = cpu_fold(COMPUTE_F64);
    if (top == -INFINITY)
        return fail(STATUS_VALUE, "%s: every score is -inf; there is nothing to choose",
                    call->op->name);
    if (isinf(top)) {
        for (int64_t i = 0; i < row->count; i++) row->items[i] = row->items[i] == top;
    } else {
        folds->scale_row(row->items, row->items, row->count, top, 1 / temperature);
        folds->exp_row(row->items, row->items, row->count, 0);
    }
    return STATUS_OK;
}

enum { BLOCK = 64 }; // numbers that pick passes by at once

static double block_sum(const Row *row, int64_t first) {
    int64_t left = row->count - first;
    Row block = {row->items + first, left < BLOCK ? left : BLOCK};
    return folded(&block, FOLD_SUM);
}

// The first index at which the running sum of weights passes the draw; never one of weight 0.
static int64_t pick(const Row *weights, double draw) {
    double total = 0, running = 0, before = 0;
    int64_t first = 0, last = 0;
    for (int64_t at = 0; at < weights->count; at += BLOCK) total += block_sum(weights, at);
    double target = draw * total;
    for (int64_t at = 0; at < weights->count && running <= target; at += BLOCK) {
        double sum = block_sum(weights, at);
        if (sum > 0) {
            first = at;
            before = running;
        }
        running += sum;
    }
    for (int64_t i = first; i < weights->count; i++) {
        if (weights->items[i] <= 0) continue;
        last = i;
        before += weights->items[i];
        if (before > target) return i;
    }
    return last; // the sum was rounded below the target
}

static Status check_weights(const OpCall *call, const Row *row) {
    for (int64_t i = 0; i < row->count; i++)
        if (!(row->items[i] >= 0) || isinf(row->items[i]))
            return fail(STATUS_VALUE, "%s: probability %lld is %g; it must not be negative",
                        call->op->name, (long long)i, number_shown(row->items[i]));
    if (folded(row, FOLD_SUM) > 0) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: all probabilities are 0; there is nothing to choose",
                call->op->name);
}

static Status pick_one(const OpCall *call, const Row *weights, Tensor **out) {
    double draw;
    TRY(random_uniform(call, &draw));
    return give_choice(pick(weights, draw), out);
}

static Status sample_probabilities(const OpCall *call, Row *row, Tensor **out) {
    double top;
    TRY(read_row(call, row, &top));
    TRY(check_weights(call, row));
    return pick_one(call, row, out);
}

Status op_run_sample(const OpCall *call, Tensor **results) {
    Row row = {0};
    Status status = sample_probabilities(call, &row, results);
    free(row.items);
    return status;
}

static Status sample_scores(const OpCall *call, double temperature, Row *row, Tensor **out) {
    if (!(temperature >= 0))
        return fail(STATUS_VALUE, "%s: the temperature is %g; it must not be negative",
                    call->op->name, temperature);
    double top;
    TRY(read_row(call, row, &top));
    if (temperature <= GREEDY_TEMPERATURE) return give_choice(position_of(row, top), out);
    TRY(weigh_scores(call, row, top, temperature));
    return pick_one(call, row, out);
}

Status op_run_temperature_sample(const OpCall *call, Tensor **results) {
    Row row = {0};
    Status status = sample_scores(call, ATTRIBUTE_OR(call, temperature, 1.0), &row, results);
    free(row.items);
    return status;
}

// Narrows the scores with `op`, then draws one of the rest.
static Status narrow_and_sample(const OpCall *call, OpId op, Tensor **out) {
    SCOPED_TENSOR(row);
    SCOPED_TENSOR(narrowed);
    TRY(last_row(call, call->inputs[0].tensor, &row));
    TRY(op_with(op, &row, 1, call->attributes, &narrowed));
    return op_with(OP_temperature_sample, &narrowed, 1, call->attributes, out);
}

Status op_run_top_k_sample(const OpCall *call, Tensor **results) {
    return narrow_and_sample(call, OP_top_k, results);
}
Status op_run_top_p_sample(const OpCall *call, Tensor **results) {
    return narrow_and_sample(call, OP_top_p, results);
}

Status op_run_temperature(const OpCall *call, Tensor **results) {
    double temperature = ATTRIBUTE_OR(call, temperature, 1.0);
    if (!(temperature >= 0))
        return fail(STATUS_VALUE, "temperature: it is %g; it must not be negative", temperature);
    double divisor = temperature > GREEDY_TEMPERATURE ? temperature : GREEDY_TEMPERATURE;
    return compose_with_number(OP_div, call->inputs[0].tensor, divisor, results);
}

// Like x with every number -inf.
static Status all_excluded(const OpCall *call, const Tensor *x, Tensor **out) {
    Shape shape = tensor_shape(x);
    SCOPED_TENSOR(result);
    TRY(tensor_new(x->device, tensor_dtype(x), &shape, &result));
    TRY(compose_fill(call, &result->view, (Scalar){.dtype = DTYPE_FLOAT64, .as.f = -INFINITY}));
    return compose_give(&result, out);
}

// The scores placed at their indexes along the last dimension, -inf elsewhere.
static Status place_scores(const OpCall *call, Tensor *x, Tensor *index, Tensor *scores,
                           Tensor **out) {
    SCOPED_TENSOR(base);
    TRY(all_excluded(call, x, &base));
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = -1};
    Tensor *inputs[3] = {base, index, scores};
    return op_with(OP_scatter, inputs, 3, &attributes, out);
}

static Status scores_of(const OpCall *call, Tensor **out) {
    TRY(compose_floating(call->inputs[0].tensor, out));
    if (tensor_rank(*out) > 0 && (*out)->view.dims[tensor_rank(*out) - 1] > 0) return STATUS_OK;
    tensor_release_of(out);
    return fail(STATUS_SHAPE, "%s: there is nothing to choose from in %s", call->op->name,
                tensor_type_name(call->inputs[0].tensor).text);
}

Status op_run_top_k(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    TRY(scores_of(call, &x));
    int64_t k = call->attributes->k, n = x->view.dims[tensor_rank(x) - 1];
    if (k < 1)
        return fail(STATUS_VALUE, "%s: k is %lld; at least one score must stay", call->op->name,
                    (long long)k);
    OpAttributes attributes = {
        .given = ATTRIBUTE_BIT(k) | ATTRIBUTE_BIT(dim), .k = k < n ? k : n, .dim = -1};
    Tensor *top[2] = {NULL, NULL};
    SCOPED_TENSOR(values);
    SCOPED_TENSOR(indexes);
    TRY(op_with(OP_topk, &x, 1, &attributes, top));
    values = top[0];
    indexes = top[1];
    return place_scores(call, x, indexes, values, results);
}

// Scores in the order of `keys` (falling or rising), their probabilities and the sum of the
// probabilities before each: what top_p and typical_p decide by.
typedef struct Ranking {
    Tensor *index, *scores, *before; // owned
} Ranking;

static void ranking_release(Ranking *ranking) {
    tensor_release(ranking->index);
    tensor_release(ranking->scores);
    tensor_release(ranking->before);
}

static Status rank_scores(Tensor *x, Tensor *probabilities, Tensor *keys, bool descending,
                          Ranking *ranking) {
    OpAttributes order = {.given = ATTRIBUTE_BIT(dim) | ATTRIBUTE_BIT(descending),
                          .dim = -1,
                          .descending = descending};
    OpAttributes last = {.given = ATTRIBUTE_BIT(dim), .dim = -1};
    SCOPED_TENSOR(sorted);
    SCOPED_TENSOR(running);
    TRY(op_with(OP_argsort, &keys, 1, &order, &ranking->index));
    // PyTorch's gather wants an index of two dimensions or more; for one it selects slices.
    Tensor *scores[2] = {x, ranking->index}, *chances[2] = {probabilities, ranking->index};
    TRY(op_with(OP_gather, scores, 2, &last, &ranking->scores));
    TRY(op_with(OP_gather, chances, 2, &last, &sorted));
    TRY(op_with(OP_cumsum, &sorted, 1, &last, &running));
    return op_binary(OP_sub, op_tensor(running), op_tensor(sorted), &ranking->before);
}

// Keeps scores as long as those before them add up to less than p; the first one always stays.
static Status keep_mass(const OpCall *call, Tensor *x, const Ranking *ranking, double p,
                        Tensor **out) {
    SCOPED_TENSOR(inside);
    SCOPED_TENSOR(first);
    SCOPED_TENSOR(keep);
    SCOPED_TENSOR(kept);
    SCOPED_TENSOR(scores);
    TRY(op_binary(OP_lt, op_tensor(ranking->before), op_float(p), &inside));
    TRY(op_binary(OP_le, op_tensor(ranking->before), op_int(0), &first));
    TRY(op_binary(OP_logical_or, op_tensor(inside), op_tensor(first), &keep));
    TRY(op_ternary(OP_where, op_tensor(keep), op_tensor(ranking->scores), op_float(-INFINITY),
                   &kept));
    TRY(tensor_cast(kept, tensor_dtype(x), &scores));
    return place_scores(call, x, ranking->index, scores, out);
}

static Status check_mass(const OpCall *call, double p) {
    if (p >= 0 && p <= 1) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: p is %g; it must be from 0 to 1", call->op->name, p);
}

// The probabilities of scores in the dtype that sums are safe in.
static Status probabilities_of(Tensor *x, Tensor **out) {
    SCOPED_TENSOR(wide);
    TRY(compose_wide(x, &wide));
    return op_unary(OP_softmax, wide, out);
}

Status op_run_top_p(const OpCall *call, Tensor **results) {
    double p = call->attributes->p;
    TRY(check_mass(call, p));
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(probabilities);
    TRY(scores_of(call, &x));
    if (p == 1) return compose_give(&x, results);
    TRY(probabilities_of(x, &probabilities));
    Ranking ranking = {0};
    Status status = rank_scores(x, probabilities, x, true, &ranking);
    if (status == STATUS_OK) status = keep_mass(call, x, &ranking, p, results);
    ranking_release(&ranking);
    return status;
}

// How far the surprise of each score, -log p, lies from the mean surprise of its row.
static Status surprise_distance(Tensor *x, Tensor *probabilities, Tensor **out) {
    SCOPED_TENSOR(wide);
    SCOPED_TENSOR(logs);
    SCOPED_TENSOR(safe);
    SCOPED_TENSOR(each);
    SCOPED_TENSOR(mean);
    SCOPED_TENSOR(distance);
    SCOPED_TENSOR(impossible);
    TRY(compose_wide(x, &wide));
    TRY(op_unary(OP_log_softmax, wide, &logs));
    // A probability of 0 adds nothing to the mean, and comes last.
    TRY(op_binary(OP_le, op_tensor(probabilities), op_int(0), &impossible));
    TRY(op_ternary(OP_where, op_tensor(impossible), op_int(0), op_tensor(logs), &safe));
    TRY(op_binary(OP_mul, op_tensor(probabilities), op_tensor(safe), &each));
    OpAttributes last = {
        .given = ATTRIBUTE_BIT(dim) | ATTRIBUTE_BIT(keepdim), .dim = -1, .keepdim = true};
    TRY(op_with(OP_sum, &each, 1, &last, &mean));
    TRY(op_binary(OP_sub, op_tensor(safe), op_tensor(mean), &distance));
    SCOPED_TENSOR(magnitude);
    TRY(op_unary(OP_abs, distance, &magnitude));
    return op_ternary(OP_where, op_tensor(impossible), op_float(INFINITY), op_tensor(magnitude),
                      out);
}

Status op_run_typical_p(const OpCall *call, Tensor **results) {
    double p = call->attributes->p;
    TRY(check_mass(call, p));
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(probabilities);
    SCOPED_TENSOR(distance);
    TRY(scores_of(call, &x));
    TRY(probabilities_of(x, &probabilities));
    TRY(surprise_distance(x, probabilities, &distance));
    Ranking ranking = {0};
    Status status = rank_scores(x, probabilities, distance, false, &ranking);
    if (status == STATUS_OK) status = keep_mass(call, x, &ranking, p, results);
    ranking_release(&ranking);
    return status;
}

Status op_run_min_p(const OpCall *call, Tensor **results) {
    double p = call->attributes->p;
    TRY(check_mass(call, p));
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(probabilities);
    SCOPED_TENSOR(top);
    SCOPED_TENSOR(limit);
    SCOPED_TENSOR(keep);
    SCOPED_TENSOR(kept);
    TRY(scores_of(call, &x));
    TRY(probabilities_of(x, &probabilities));
    OpAttributes last = {
        .given = ATTRIBUTE_BIT(dim) | ATTRIBUTE_BIT(keepdim), .dim = -1, .keepdim = true};
    TRY(op_with(OP_max_along, &probabilities, 1, &last, &top));
    TRY(compose_with_number(OP_mul, top, p, &limit));
    TRY(op_binary(OP_ge, op_tensor(probabilities), op_tensor(limit), &keep));
    TRY(op_ternary(OP_where, op_tensor(keep), op_tensor(x), op_float(-INFINITY), &kept));
    return tensor_cast(kept, tensor_dtype(x), results);
}

// --- penalties on the ids of a text

// The scores x, the ids as a line, and the score at each of them.
typedef struct Said {
    Tensor *x, *ids, *chosen;
} Said;

static void said_release(Said *said) {
    tensor_release(said->x);
    tensor_release(said->ids);
    tensor_release(said->chosen);
}
#define SCOPED_SAID(name) __attribute__((cleanup(said_release))) Said name = {0}

static const OpAttributes at_last = {.given = ATTRIBUTE_BIT(dim), .dim = -1};

static Status said_of(const OpCall *call, Said *out) {
    SCOPED_TENSOR(ids);
    TRY(scores_of(call, &out->x));
    TRY(compose_whole(call, call->inputs[1].tensor, "ids", &ids));
    Shape flat = {.rank = 1, .dims = {tensor_count(ids)}};
    TRY(tensor_reshape(ids, &flat, &out->ids));
    return op_with(OP_gather, (Tensor *[]){out->x, out->ids}, 2, &at_last, &out->chosen);
}

static Status said_put(const Said *said, OpId op, Tensor *scores, Tensor **out) {
    return op_with(op, (Tensor *[]){said->x, said->ids, scores}, 3, &at_last, out);
}

// Every id once: positive scores are divided by the factor, negative ones multiplied.
Status op_run_repetition_penalty(const OpCall *call, Tensor **results) {
    double factor = call->attributes->factor;
    if (!(factor > 0))
        return fail(STATUS_VALUE, "repetition_penalty: the factor is %g; it must be positive",
                    factor);
    SCOPED_SAID(said);
    SCOPED_TENSOR(positive);
    SCOPED_TENSOR(divided);
    SCOPED_TENSOR(multiplied);
    SCOPED_TENSOR(punished);
    TRY(said_of(call, &said));
    TRY(op_binary(OP_gt, op_tensor(said.chosen), op_int(0), &positive));
    TRY(compose_with_number(OP_div, said.chosen, factor, &divided));
    TRY(compose_with_number(OP_mul, said.chosen, factor, &multiplied));
    TRY(op_ternary(OP_where, op_tensor(positive), op_tensor(divided), op_tensor(multiplied),
                   &punished));
    return said_put(&said, OP_scatter, punished, results);
}

Status op_run_presence_penalty(const OpCall *call, Tensor **results) {
    SCOPED_SAID(said);
    SCOPED_TENSOR(punished);
    TRY(said_of(call, &said));
    TRY(compose_with_number(OP_sub, said.chosen, call->attributes->penalty, &punished));
    return said_put(&said, OP_scatter, punished, results);
}

Status op_run_frequency_penalty(const OpCall *call, Tensor **results) {
    SCOPED_SAID(said);
    SCOPED_TENSOR(ones);
    SCOPED_TENSOR(each);
    TRY(said_of(call, &said));
    TRY(op_unary(OP_ones_like, said.chosen, &ones));
    TRY(compose_with_number(OP_mul, ones, -call->attributes->penalty, &each));
    return said_put(&said, OP_scatter_add, each, results);
}

// The count of draws, the row they come from and whether a class may be drawn twice.
typedef struct Draws {
    int64_t n, classes;
    bool replacement;
} Draws;

static Status draw_row(const OpCall *call, const Draws *draws, double *weights,
                       const double *uniform, int64_t *out) {
    Row row = {.items = weights, .count = draws->classes};
    TRY(check_weights(call, &row));
    for (int64_t i = 0; i < draws->n; i++) {
        if (device_is_interrupted()) return fail(STATUS_INTERRUPT, "interrupted");
        if (folded(&row, FOLD_SUM) <= 0)
            return fail(STATUS_VALUE,
                        "multinomial: %lld different classes were asked for, but only "
                        "%lld are possible",
                        (long long)draws->n, (long long)i);
        out[i] = pick(&row, uniform[i]);
        if (!draws->replacement) weights[out[i]] = 0;
    }
    return STATUS_OK;
}

// probabilities: [rows, classes] on the host; uniform and choices: [rows, n].
static Status draw_rows(const OpCall *call, const Draws *draws, Tensor *probabilities,
                        const Shape *shape, Tensor **out) {
    int64_t rows = compose_product(shape->dims, 0, shape->rank - 1);
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape) | ATTRIBUTE_BIT(dtype),
                               .shape = *shape,
                               .dtype = DTYPE_FLOAT64};
    if (op_has(call, ATTRIBUTE_seed)) attributes.given |= ATTRIBUTE_BIT(seed);
    attributes.seed = ATTRIBUTE_OR(call, seed, 0);
    SCOPED_TENSOR(uniform);
    TRY(op_with(OP_rand, NULL, 0, &attributes, &uniform));
    size_t count = (size_t)tensor_count(uniform);
    SCOPED_MEMORY double *weights =
        memory_allocate_zeroed((size_t)tensor_count(probabilities) + 1, sizeof(double));
    SCOPED_MEMORY double *draw = memory_allocate_zeroed(count + 1, sizeof(double));
    SCOPED_MEMORY int64_t *choices = memory_allocate_zeroed(count + 1, sizeof(int64_t));
    Status status = tensor_read_floats(probabilities, weights);
    if (status == STATUS_OK) status = tensor_read_floats(uniform, draw);
    for (int64_t r = 0; status == STATUS_OK && r < rows; r++)
        status = draw_row(call, draws, &weights[r * draws->classes], &draw[r * draws->n],
                          &choices[r * draws->n]);
    if (status == STATUS_OK) status = tensor_from_integers(choices, shape, DTYPE_INT64, out);
    return status;
}

Status op_run_multinomial(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    TRY(scores_of(call, &x));
    Shape shape = tensor_shape(x);
    Draws draws = {.n = call->attributes->n,
                   .classes = shape.dims[shape.rank - 1],
                   .replacement = ATTRIBUTE_OR(call, replacement, true)};
    if (draws.n < 0)
        return fail(STATUS_VALUE, "multinomial: n is %lld; it must not be negative",
                    (long long)draws.n);
    shape.dims[shape.rank - 1] = draws.n;
    return draw_rows(call, &draws, x, &shape, results);
}
