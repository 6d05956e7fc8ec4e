// Queries of program blocks over a semiring: the answers with what they weigh, as numbers, or as
// tensors through which gradients flow into the weights.
#include <stdlib.h>

#include "equation/named.h"
#include "equation/program.h"
#include "logic/weigh.h"
#include "reason/reason.h"
#include "tensor/compose.h"
#include "tensor/gradient/tape.h"
#include "tensor/index.h"
#include "tensor/random.h"
#include "value/convert.h"

typedef struct Weighed {
    Reasoner *reasoner;
    const ProgramHandle *program;
    Ground ground;
    double *weights; // of leaves
    Weighing weighing;
    bool learns; // a weight needs a gradient
} Weighed;

static Value leaf_value(const Weighed *weighed, size_t leaf) {
    const List *values = weighed->reasoner->weights.values.as.list;
    return values->items[weighed->ground.leaves.items[leaf]];
}

static bool are_probabilities(Semiring semiring) {
    return semiring_has_worlds(semiring) || semiring == SEMIRING_PROB;
}

static Status read_weights(Weighed *weighed) {
    bool probabilities = are_probabilities(weighed->program->semiring);
    for (size_t i = 0; i < weighed->ground.leaves.count; i++) {
        Value value = leaf_value(weighed, i);
        TRY(value_to_double(value, "a weight", &weighed->weights[i]));
        double weight = weighed->weights[i];
        weighed->learns |= value_needs_gradient(value);
        if (!probabilities || (weight >= 0 && weight <= 1)) continue;
        fail(STATUS_VALUE, "the weight %g is not a probability", weight);
        return fail_help("%s wants weights from 0 to 1; sigmoid(w) is always one",
                         weighed->program->name);
    }
    return STATUS_OK;
}

static uint64_t sample_seed(const ProgramHandle *program) {
    if (program->semiring != SEMIRING_SAMPLE) return 0;
    OpCall call = {.op = &op_rows[OP_rand]};
    RandomStream stream = random_take(&call, 1);
    return stream.key * 0x9e3779b97f4a7c15u + stream.counter;
}

static Status weigh(Weighed *weighed) {
    const ProgramHandle *program = weighed->program;
    size_t answers = weighed->ground.answers, leaves = weighed->ground.leaves.count;
    weighed->weights = memory_allocate_zeroed(leaves + 1, sizeof(double));
    TRY(read_weights(weighed));
    if (weighed->learns && program->semiring == SEMIRING_SAMPLE) {
        fail(STATUS_GRADIENT, "drawn worlds have no gradient into the weights");
        return fail_help("exact and topk have; detach(w) weighs without one");
    }
    weighed->weighing = (Weighing){.ground = &weighed->ground,
                                   .semiring = program->semiring,
                                   .weights = weighed->weights,
                                   .argument = program->argument,
                                   .iterations_max = program->iterations_max,
                                   .seed = sample_seed(program)};
    weighed->weighing.values = memory_allocate_zeroed(answers + 1, sizeof(double));
    if (weighed->learns)
        weighed->weighing.gradients = memory_allocate_zeroed(answers * leaves + 1, sizeof(double));
    return ground_weigh(&weighed->weighing);
}

// --- numbers through which gradients flow

// The weights that need a gradient, each once; of each leaf its place among them, or -1.
typedef struct Learned {
    OpInput *inputs;
    Tensor **tensors;
    int count;
    int *places;
} Learned;

static Status find_learned(const Weighed *weighed, Learned *out) {
    for (size_t i = 0; i < weighed->ground.leaves.count; i++) {
        out->places[i] = -1;
        if (!value_needs_gradient(leaf_value(weighed, i))) continue;
        for (size_t j = 0; j < i; j++)
            if (weighed->ground.leaves.items[j] == weighed->ground.leaves.items[i])
                out->places[i] = out->places[j];
        if (out->places[i] >= 0) continue;
        TRY(compose_floating(leaf_value(weighed, i).as.tensor, &out->tensors[out->count]));
        out->inputs[out->count] = op_tensor(out->tensors[out->count]);
        out->places[i] = out->count++;
    }
    return STATUS_OK;
}

// values + slopes @ (w - detach(w)): the values, with these slopes.
static Status attach_slopes(const Weighed *weighed, const Learned *learned, Tensor **out) {
    int64_t answers = weighed->ground.answers, leaves = (int64_t)weighed->ground.leaves.count;
    Shape all = {.rank = 2, .dims = {answers, learned->count}},
          each = {.rank = 1, .dims = {answers}};
    double *slopes = memory_allocate_zeroed((size_t)(answers * learned->count) + 1, sizeof *slopes);
    for (int64_t i = 0; i < answers; i++)
        for (int64_t j = 0; j < leaves; j++)
            if (learned->places[j] >= 0)
                slopes[i * learned->count + learned->places[j]] +=
                    weighed->weighing.gradients[i * leaves + j];
    SCOPED_TENSOR(slope);
    SCOPED_TENSOR(values);
    SCOPED_TENSOR(weights);
    SCOPED_TENSOR(fixed);
    SCOPED_TENSOR(none);
    SCOPED_TENSOR(change);
    Status status = tensor_from_floats(slopes, &all, DTYPE_FLOAT32, &slope);
    free(slopes);
    TRY(status);
    TRY(tensor_from_floats(weighed->weighing.values, &each, DTYPE_FLOAT32, &values));
    TRY(named_join(OP_stack, learned->inputs, learned->count, 0, &weights));
    TRY(tape_detach(weights, &fixed));
    TRY(op_with(OP_sub, (Tensor *const[]){weights, fixed}, 2, NULL, &none));
    TRY(op_with(OP_matmul, (Tensor *const[]){slope, none}, 2, NULL, &change));
    return op_with(OP_add, (Tensor *const[]){values, change}, 2, NULL, out);
}

static Status learned_scores(const Weighed *weighed, List *out) {
    size_t leaves = weighed->ground.leaves.count;
    Learned learned = {.inputs = memory_allocate_zeroed(leaves + 1, sizeof(OpInput)),
                       .tensors = memory_allocate_zeroed(leaves + 1, sizeof(Tensor *)),
                       .places = memory_allocate_zeroed(leaves + 1, sizeof(int))};
    SCOPED_TENSOR(scores);
    Status status = find_learned(weighed, &learned);
    if (status == STATUS_OK) status = attach_slopes(weighed, &learned, &scores);
    for (uint32_t i = 0; i < weighed->ground.answers && status == STATUS_OK; i++) {
        Tensor *score;
        IndexItem item = {.kind = INDEX_INTEGER, .integer = i};
        status = index_get(scores, &item, 1, &score);
        if (status == STATUS_OK) list_push(out, value_tensor(score));
    }
    for (int i = 0; i < learned.count; i++) tensor_release(learned.tensors[i]);
    free(learned.places);
    free(learned.tensors);
    free(learned.inputs);
    return status;
}

static Value score_value(Semiring semiring, double score) {
    if (semiring == SEMIRING_BOOL) return value_bool(score != 0);
    if (semiring == SEMIRING_COUNT && score < 0x1p53) return value_int((int64_t)score);
    return value_float(score);
}

static Status take_scores(const Weighed *weighed, List *out) {
    if (weighed->learns && weighed->ground.answers > 0) return learned_scores(weighed, out);
    for (uint32_t i = 0; i < weighed->ground.answers; i++)
        list_push(out, score_value(weighed->program->semiring, weighed->weighing.values[i]));
    return STATUS_OK;
}

Status query_weigh(Reasoner *reasoner, Rule *rule, const Datum *initial, Value program,
                   Table **answers, Value *scores) {
    void *payload;
    *scores = value_absent();
    TRY(value_to_handle(program, &handle_program, "what stands before the relation", &payload));
    Weighed weighed = {.reasoner = reasoner, .program = payload};
    GroundWeights weights = {reasoner, weight_of_fact, weight_of_rule,
                             are_probabilities(weighed.program->semiring)};
    TRY(ground_query(reasoner->store, rule, initial, &weights, answers, &weighed.ground));
    Status status = weigh(&weighed);
    if (status == STATUS_OK) {
        *scores = value_list(weighed.ground.answers);
        status = take_scores(&weighed, scores->as.list);
    }
    free(weighed.weighing.gradients);
    free(weighed.weighing.values);
    free(weighed.weights);
    ground_free(&weighed.ground);
    if (status == STATUS_OK) return STATUS_OK;
    table_free(*answers);
    *answers = NULL;
    value_release(*scores);
    *scores = value_absent();
    return status;
}
