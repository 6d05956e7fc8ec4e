// Queries of program blocks over a semiring: the answers with what they weigh, as numbers, or as
// tensors through which gradients flow into the weights.
#include <stdlib.h>

#include "device/foretell.h"
#include "equation/named.h"
#include "equation/program.h"
#include "equation/semiring.h"
#include "logic/weigh.h"
#include "logic/weighers.h"
#include "reason/reason.h"
#include "tensor/compose.h"
#include "tensor/index.h"
#include "tensor/parameter.h"
#include "tensor/random.h"
#include "value/convert.h"

typedef struct Weighed {
    Reasoner *reasoner;
    const ProgramHandle *program;
    Ground ground;
    double *weights; // of leaves
    Weighing weighing;
    bool learns; // a weight needs a gradient
    bool drawn;  // only a run knows the scores (device/foretell.h)
} Weighed;

static Value leaf_value(const Weighed *weighed, size_t leaf) {
    const List *values = weighed->reasoner->weights.values.as.list;
    return values->items[weighed->ground.leaves.items[leaf]];
}

static const double sum_slack = 1e-4; // of numbers that a softmax has rounded

static bool are_probabilities(Semiring semiring) {
    return semiring_has_worlds(semiring) || semiring == SEMIRING_PROB;
}

static int64_t leaf_element(const Weighed *weighed, size_t leaf) {
    return weighed->reasoner->weights.parts.items[weighed->ground.leaves.items[leaf]].element;
}

static Status check_probability(const Weighed *weighed, double weight) {
    if (weight >= 0 && weight <= 1) return STATUS_OK;
    fail(STATUS_VALUE, "the weight %g is not a probability", weight);
    return fail_help("%s wants weights from 0 to 1; sigmoid(w) is always one",
                     weighed->program->name);
}

static Status check_groups(const Weighed *weighed) {
    const uint32_t *groups = weighed->ground.groups.items;
    double sum = 0;
    for (size_t i = 0; i < weighed->ground.leaves.count; i++) {
        sum = groups[i] == i ? weighed->weights[i] : sum + weighed->weights[i];
        if (sum <= 1 + sum_slack) continue;
        fail(STATUS_VALUE, "weights of facts that exclude each other add up to %g", sum);
        return fail_help("at most one of them holds: they add up to 1 at most, as after softmax");
    }
    return STATUS_OK;
}

static Status read_leaves(Weighed *weighed, WeightReads *reads) {
    bool probabilities = are_probabilities(weighed->program->semiring);
    for (size_t i = 0; i < weighed->ground.leaves.count; i++) {
        double *weight = &weighed->weights[i];
        TRY(weight_read(&weighed->reasoner->weights, weighed->ground.leaves.items[i], reads,
                        weight));
        weighed->learns |= value_needs_gradient(leaf_value(weighed, i));
        if (probabilities) TRY(check_probability(weighed, *weight));
    }
    return probabilities ? check_groups(weighed) : STATUS_OK;
}

static Status read_weights(Weighed *weighed) {
    WeightReads reads = {0};
    Status status = read_leaves(weighed, &reads);
    weight_reads_free(&reads);
    return status;
}

static uint64_t sample_seed(const ProgramHandle *program, bool *unknown) {
    if (program->semiring != SEMIRING_SAMPLE) return 0;
    OpCall call = {.op = &op_rows[OP_rand]};
    RandomStream stream = random_take(&call, 1);
    *unknown = random_is_unknown(stream);
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
                                   .seed = sample_seed(program, &weighed->drawn)};
    weighed->weighing.values = memory_allocate_zeroed(answers + 1, sizeof(double));
    if (weighed->learns)
        weighed->weighing.gradients = memory_allocate_zeroed(answers * leaves + 1, sizeof(double));
    return ground_weigh(&weighed->weighing);
}

// --- numbers through which gradients flow

// The tensors that need a gradient, each once, with those of their elements that are weights.
typedef struct Source {
    Tensor *tensor; // borrowed
    VECTOR(int64_t) elements;
    VECTOR(uint32_t) leaves; // which they weigh
} Source;

typedef struct Learned {
    VECTOR(Source) sources;
    int64_t count; // of elements
} Learned;

static Source *source_of(Learned *learned, Tensor *tensor) {
    for (size_t i = 0; i < learned->sources.count; i++)
        if (learned->sources.items[i].tensor == tensor) return &learned->sources.items[i];
    VECTOR_PUSH(&learned->sources, (Source){.tensor = tensor});
    return &learned->sources.items[learned->sources.count - 1];
}

static void find_learned(const Weighed *weighed, Learned *out) {
    for (uint32_t i = 0; i < weighed->ground.leaves.count; i++) {
        Value value = leaf_value(weighed, i);
        if (!value_needs_gradient(value)) continue;
        Source *source = source_of(out, value.as.tensor);
        int64_t element = leaf_element(weighed, i);
        VECTOR_PUSH(&source->elements, element < 0 ? 0 : element);
        VECTOR_PUSH(&source->leaves, i);
        out->count++;
    }
}

static void learned_free(Learned *learned) {
    for (size_t i = 0; i < learned->sources.count; i++) {
        VECTOR_FREE(&learned->sources.items[i].elements);
        VECTOR_FREE(&learned->sources.items[i].leaves);
    }
    VECTOR_FREE(&learned->sources);
}

// The elements of a source as a vector.
static Status source_elements(const Source *source, Tensor **out) {
    size_t count = source->elements.count;
    Shape shape = {.rank = 1, .dims = {(int64_t)count}};
    double *numbers = memory_allocate((count + 1) * sizeof *numbers);
    for (size_t i = 0; i < count; i++) numbers[i] = (double)source->elements.items[i];
    SCOPED_TENSOR(index);
    SCOPED_TENSOR(floating);
    SCOPED_TENSOR(flat);
    Status status = tensor_from_floats(numbers, &shape, DTYPE_INT64, &index);
    free(numbers);
    TRY(status);
    OpAttributes all = {.given = ATTRIBUTE_BIT(shape), .shape = {.rank = 1, .dims = {-1}}};
    TRY(compose_floating(source->tensor, &floating));
    TRY(op_with(OP_reshape, &floating, 1, &all, &flat));
    return op_with(OP_take, (Tensor *const[]){flat, index}, 2, NULL, out);
}

static Status learned_weights(const Learned *learned, Tensor **out) {
    size_t count = learned->sources.count, made = 0;
    SCOPED_MEMORY OpInput *parts = memory_allocate((count + 1) * sizeof *parts);
    SCOPED_MEMORY Tensor **vectors = memory_allocate_zeroed(count + 1, sizeof(Tensor *));
    Status status = STATUS_OK;
    for (; made < count && status == STATUS_OK; made++) {
        status = source_elements(&learned->sources.items[made], &vectors[made]);
        parts[made] = op_tensor(vectors[made]);
    }
    if (status == STATUS_OK) status = named_join(OP_concat, parts, (int)count, 0, out);
    for (size_t i = 0; i < made; i++) tensor_release(vectors[i]);
    return status;
}

// What each answer changes by each of them: a row an answer.
static double *learned_slopes(const Weighed *weighed, const Learned *learned) {
    size_t answers = weighed->ground.answers, leaves = weighed->ground.leaves.count, column = 0;
    double *slopes = memory_allocate((answers * (size_t)learned->count + 1) * sizeof *slopes);
    for (size_t i = 0; i < learned->sources.count; i++) {
        const Source *source = &learned->sources.items[i];
        for (size_t j = 0; j < source->leaves.count; j++, column++)
            for (size_t k = 0; k < answers; k++)
                slopes[k * (size_t)learned->count + column] =
                    weighed->weighing.gradients[k * leaves + source->leaves.items[j]];
    }
    return slopes;
}

// values + slopes @ (w - detach(w)): the values, with these slopes.
static Status attach_slopes(const Weighed *weighed, const Learned *learned, Tensor **out) {
    int64_t answers = weighed->ground.answers;
    Shape all = {.rank = 2, .dims = {answers, learned->count}},
          each = {.rank = 1, .dims = {answers}};
    double *slopes = learned_slopes(weighed, learned);
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
    TRY(learned_weights(learned, &weights));
    TRY(tape_detach(weights, &fixed));
    TRY(op_with(OP_sub, (Tensor *const[]){weights, fixed}, 2, NULL, &none));
    TRY(op_with(OP_matmul, (Tensor *const[]){slope, none}, 2, NULL, &change));
    return op_with(OP_add, (Tensor *const[]){values, change}, 2, NULL, out);
}

static Status learned_scores(const Weighed *weighed, List *out) {
    Learned learned = {0};
    SCOPED_TENSOR(scores);
    find_learned(weighed, &learned);
    Status status = attach_slopes(weighed, &learned, &scores);
    learned_free(&learned);
    for (uint32_t i = 0; i < weighed->ground.answers && status == STATUS_OK; i++) {
        Tensor *score;
        IndexItem item = {.kind = INDEX_INTEGER, .integer = i};
        status = index_get(scores, &item, 1, &score);
        if (status == STATUS_OK) list_push(out, value_tensor(score));
    }
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
        list_push(out, weighed->drawn
                           ? value_unknown(DTYPE_FLOAT64)
                           : score_value(weighed->program->semiring, weighed->weighing.values[i]));
    return STATUS_OK;
}

// The answers and what they rest on, weighed. Is to be freed if it fails, too.
static Status weighed_make(Weighed *weighed, Rule *rule, const Datum *initial, enum Certain certain,
                           Table **answers) {
    Reasoner *reasoner = weighed->reasoner;
    GroundWeights weights = {.context = reasoner,
                             .of_fact = weight_of_fact,
                             .has_facts = weight_in_relation,
                             .of_rule = weight_of_rule,
                             .group = weight_group,
                             .certain = certain};
    GroundQuery query = {rule, initial, weighed->program->block, weights};
    TRY(ground_query(reasoner->store, &query, answers, &weighed->ground));
    return weigh(weighed);
}

static void weighed_free(Weighed *weighed) {
    free(weighed->weighing.gradients);
    free(weighed->weighing.values);
    free(weighed->weights);
    ground_free(&weighed->ground);
}

Status query_weigh(Reasoner *reasoner, Rule *rule, const Datum *initial, Value program,
                   Found *out) {
    void *payload;
    out->scores = value_absent();
    out->answers = NULL;
    TRY(value_to_handle(program, &handle_program, "what stands before the relation", &payload));
    Weighed weighed = {.reasoner = reasoner, .program = payload};
    Semiring semiring = weighed.program->semiring;
    out->nothing = score_value(semiring, semiring_zero(semiring));
    bool probabilities = are_probabilities(weighed.program->semiring);
    Status status =
        weighed_make(&weighed, rule, initial, probabilities ? CERTAIN_LEFT_OUT : CERTAIN_EXPLAINED,
                     &out->answers);
    if (status == STATUS_OK) {
        out->scores = value_list(weighed.ground.answers);
        status = take_scores(&weighed, out->scores.as.list);
    }
    weighed_free(&weighed);
    if (status == STATUS_OK) return STATUS_OK;
    table_free(out->answers);
    out->answers = NULL;
    value_release(out->scores);
    out->scores = value_absent();
    return status;
}

// --- the best way

typedef struct BestText {
    const Weighed *weighed;
    Text *out;
} BestText;

static Status best_print(void *context, const BestWay *way) {
    const BestText *best = context;
    const Weighed *weighed = best->weighed;
    text_format(best->out, "  score = %g, the best way %g\n", weighed->weighing.values[way->answer],
                way->weight);
    way_print(weighed->reasoner->store, way, weighed->weights, best->out);
    return STATUS_OK;
}

Status query_best(Reasoner *reasoner, Rule *rule, const Datum *initial, Value program, Text *out) {
    void *payload;
    Table *answers = NULL;
    TRY(value_to_handle(program, &handle_program, "what stands before the relation", &payload));
    Weighed weighed = {.reasoner = reasoner, .program = payload};
    Status status = weighed_make(&weighed, rule, initial, CERTAIN_NAMED, &answers);
    if (weighed.drawn) foretell_unknown();
    if (status == STATUS_OK && weighed.ground.answers == 0)
        text_append_string(out, "  It does not hold; `why not` tells more\n");
    if (status == STATUS_OK)
        status = weigh_best(&weighed.weighing, best_print, &(BestText){&weighed, out});
    weighed_free(&weighed);
    table_free(answers);
    return status;
}
