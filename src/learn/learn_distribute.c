// Steps that ranks make together. A step's rows are cut into pieces, more than there are ranks;
// each rank goes forward and backward over its own, and the gradients are added up in a tree over
// the pieces (ranks/pieces.h). Every rank then moves its parameters alike. Each piece draws from a
// stream of random numbers of its own, so losses and parameters have the same bits on any number of
// ranks.
#include "learn/learn_distribute.h"

#include <stdlib.h>
#include <string.h>

#include "learn/learn_run.h"
#include "tensor/compose.h"
#include "tensor/gradient/backward.h"
#include "tensor/join.h"
#include "tensor/parameter.h"

bool learn_writes_files(const LearnRun *run) {
    return run->pieces == 0 || ranks_own() == 0;
}

// --- what all ranks have alike

static int64_t padded(int64_t elements) {
    return (elements + LEARN_BLOCK - 1) / LEARN_BLOCK * LEARN_BLOCK;
}

// Parameters that are alive and that the block moves, in order of declaration; counted.
static TensorArray moved_parameters(const LearnRun *run) {
    TensorArray all;
    tape_parameters(&all);
    size_t count = 0;
    for (size_t i = 0; i < all.count; i++) {
        if (learn_trains(run, all.items[i]))
            all.items[count++] = all.items[i];
        else
            tensor_release(all.items[i]);
    }
    all.count = count;
    return all;
}

static Status take_from_first(Tensor *parameter) {
    const RanksRequest request = {.call = RANKS_BROADCAST};
    SCOPED_TENSOR(plain);
    SCOPED_TENSOR(first);
    TRY(tape_detach(parameter, &plain));
    TRY(ranks_collect(&request, plain, &first));
    return tape_parameter_assign(parameter, first);
}

// This rank's part of every parameter.
static OptimizerParts own_parts(const TensorArray *parameters) {
    OptimizerParts parts = {0};
    for (size_t i = 0; i < parameters->count; i++) {
        Tensor *parameter = parameters->items[i];
        int64_t count = tensor_count(parameter), length = padded(count);
        const PiecesLayout layout = {.block = LEARN_BLOCK, .lengths = &length, .count = 1};
        PiecesRange own = pieces_cut(&layout, 0, ranks_own());
        int64_t end = own.end < count ? own.end : count;
        VECTOR_PUSH(&parts, ((OptimizerPart){parameter, own.first, end - own.first}));
    }
    return parts;
}

Status learn_shard(LearnRun *run) {
    if (!run->shards || ranks_count() == 1) return STATUS_OK;
    TensorArray parameters = moved_parameters(run);
    OptimizerParts parts = own_parts(&parameters);
    Status status = optimizer_cut(run->optimizer, &parts);
    VECTOR_FREE(&parts);
    tensor_array_release(&parameters);
    return status;
}

static Status take_stream(void) {
    RandomStream own = random_mark();
    RandomStream *all = memory_allocate((size_t)ranks_count() * sizeof *all);
    Status status = pieces_gather(&own, all, sizeof own);
    if (status == STATUS_OK) random_return(all[0]);
    free(all);
    return status;
}

Status learn_begin_distributed(LearnRun *run) {
    if (ranks_count() == 1) return STATUS_OK;
    TensorArray parameters = moved_parameters(run);
    int64_t elements = 0;
    for (size_t i = 0; i < parameters.count; i++) elements += tensor_count(parameters.items[i]);
    Status status = pieces_agree(run->pieces, elements);
    for (size_t i = 0; i < parameters.count && status == STATUS_OK; i++)
        status = take_from_first(parameters.items[i]);
    tensor_array_release(&parameters);
    return status == STATUS_OK ? take_stream() : status;
}

// --- the gradients of a piece

// Parameters go together until a bucket is full.
static void fill_buckets(LearnStep *step) {
    size_t count = step->parameters.count;
    int64_t most = (int64_t)ranks_count() * LEARN_BUCKET_OF_RANK;
    if (most < LEARN_BUCKET) most = LEARN_BUCKET;
    step->lengths = memory_allocate((count + 1) * sizeof *step->lengths);
    step->buckets = memory_allocate_zeroed(count + 1, sizeof *step->buckets);
    for (size_t i = 0; i < count; i++) {
        step->lengths[i] = padded(tensor_count(step->parameters.items[i]));
        LearnBucket *last = &step->buckets[step->bucket_count - (step->bucket_count > 0)];
        bool fits = step->bucket_count > 0 && last->sum.layout.length + step->lengths[i] <= most;
        LearnBucket *bucket = fits ? last : &step->buckets[step->bucket_count++];
        PiecesLayout *layout = &bucket->sum.layout;
        if (!fits) {
            bucket->first = i;
            bucket->sum.pieces = step->pieces;
            *layout = learn_layout(step, step->lengths + i);
        }
        bucket->end = i + 1;
        layout->count++;
        layout->length += step->lengths[i];
    }
}

PiecesLayout learn_layout(const LearnStep *step, const int64_t *lengths) {
    return (PiecesLayout){
        .device = step->device, .dtype = step->dtype, .block = LEARN_BLOCK, .lengths = lengths};
}

static Status begin_step(LearnStep *step, int64_t end) {
    LearnRun *run = step->run;
    int64_t batches = (end - run->row + run->batch_size - 1) / run->batch_size;
    step->begin = run->row;
    step->rows = end - run->row;
    step->pieces = run->pieces * batches < step->rows ? run->pieces * batches : step->rows;
    step->random = random_mark();
    step->parameters = moved_parameters(run);
    step->dtype = DTYPE_FLOAT32;
    TRY(device_default(&step->device));
    for (size_t i = 0; i < step->parameters.count; i++) {
        if (tensor_dtype(step->parameters.items[i]) == DTYPE_FLOAT64) step->dtype = DTYPE_FLOAT64;
        step->elements += tensor_count(step->parameters.items[i]);
    }
    fill_buckets(step);
    return pieces_agree(step->pieces, step->elements);
}

static void end_step(LearnStep *step) {
    for (size_t i = 0; i < step->bucket_count; i++) {
        tensor_release(step->buckets[i].part);
        tensor_release(step->buckets[i].flat);
        pieces_drop(&step->buckets[i].sum);
    }
    tensor_array_release(&step->parameters);
    free(step->buckets);
    free(step->lengths);
}

Status learn_flat(const LearnStep *step, int64_t length, Tensor **out) {
    const OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape) | ATTRIBUTE_BIT(dtype),
                                     .shape = {.rank = 1, .dims = {length}},
                                     .dtype = step->dtype};
    return op_with(OP_zeros, NULL, 0, &attributes, out);
}

Status learn_part_of(Tensor *flat, const Tensor *parameter, int64_t at, Tensor **out) {
    SCOPED_TENSOR(part);
    Shape shape = tensor_shape(parameter);
    TRY(tensor_slice(flat, 0, at, at + tensor_count(parameter), &part));
    return tensor_reshape(part, &shape, out);
}

// Zeros for what the piece has not reached.
static Status flatten(const LearnStep *step, const LearnBucket *bucket, Tensor *flat) {
    int64_t at = 0;
    for (size_t i = bucket->first; i < bucket->end; at += step->lengths[i++]) {
        SCOPED_TENSOR(part);
        Tensor *gradient = tape_gradient(step->parameters.items[i]);
        TRY(learn_part_of(flat, step->parameters.items[i], at, &part));
        if (gradient) TRY(op_copy(gradient, part));
    }
    return STATUS_OK;
}

static Status take_bucket(const LearnStep *step, LearnBucket *bucket, int64_t piece) {
    SCOPED_TENSOR(flat);
    TRY(learn_flat(step, bucket->sum.layout.length, &flat));
    TRY(flatten(step, bucket, flat));
    Tensor *given = flat;
    flat = NULL;
    return pieces_add(&bucket->sum, piece, given);
}

// --- those of the last piece, while its backward still runs

static Status start_bucket(LearnStep *step, size_t index) {
    LearnBucket *bucket = &step->buckets[index];
    PiecesRange own = pieces_of(step->pieces, ranks_own());
    bucket->started = true;
    Tensor *given = bucket->flat;
    bucket->flat = NULL;
    if (given) TRY(pieces_add(&bucket->sum, own.end - 1, given));
    return pieces_start(&bucket->sum, (int)index);
}

static LearnBucket *bucket_of(const LearnStep *step, size_t parameter) {
    LearnBucket *bucket = step->buckets;
    while (bucket->end <= parameter) bucket++;
    return bucket;
}

static Status place_gradient(const LearnStep *step, LearnBucket *bucket, size_t parameter) {
    SCOPED_TENSOR(part);
    int64_t at = 0;
    for (size_t i = bucket->first; i < parameter; i++) at += step->lengths[i];
    if (!bucket->flat) TRY(learn_flat(step, bucket->sum.layout.length, &bucket->flat));
    TRY(learn_part_of(bucket->flat, step->parameters.items[parameter], at, &part));
    TRY(op_copy(tape_gradient(step->parameters.items[parameter]), part));
    tape_set_gradient(step->parameters.items[parameter], NULL);
    return STATUS_OK;
}

static Status take_arrival(void *context, Tensor *parameter) {
    LearnStep *step = context;
    size_t index = 0, count = step->parameters.count;
    while (index < count && step->parameters.items[index] != parameter) index++;
    if (index == count) return STATUS_OK; // it stays as it is
    LearnBucket *bucket = bucket_of(step, index);
    TRY(place_gradient(step, bucket, index));
    if (++bucket->arrived == bucket->end - bucket->first)
        TRY(start_bucket(step, (size_t)(bucket - step->buckets)));
    for (size_t i = 0; i < step->bucket_count; i++) TRY(pieces_poll(&step->buckets[i].sum));
    return STATUS_OK;
}

// Those with parameters that the last piece has not reached, and all of a rank without pieces.
static Status start_rest(LearnStep *step) {
    bool has_pieces =
        pieces_of(step->pieces, ranks_own()).end > pieces_of(step->pieces, ranks_own()).first;
    for (size_t i = 0; i < step->bucket_count; i++) {
        LearnBucket *bucket = &step->buckets[i];
        if (bucket->started) continue;
        if (!bucket->flat && has_pieces)
            TRY(learn_flat(step, bucket->sum.layout.length, &bucket->flat));
        TRY(start_bucket(step, i));
    }
    return STATUS_OK;
}

static Status take_gradients(LearnStep *step, int64_t piece) {
    bool enabled = tape_set_enabled(false);
    Status status = STATUS_OK;
    for (size_t i = 0; i < step->bucket_count && status == STATUS_OK; i++)
        status = take_bucket(step, &step->buckets[i], piece);
    tape_set_enabled(enabled);
    tape_zero_gradients();
    return status;
}

// --- pieces

// Streams whose keys have nothing to do with each other (the finaliser of SplitMix64).
static uint64_t scrambled(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static RandomStream stream_of(const LearnStep *step, int64_t piece) {
    uint64_t place = scrambled(step->random.counter + 0x9e3779b97f4a7c15u * (uint64_t)(piece + 1));
    return (RandomStream){.key = scrambled(step->random.key ^ place) >> 1};
}

static int64_t first_row(const LearnStep *step, int64_t piece) {
    return step->begin + step->rows * piece / step->pieces;
}

static Value run_piece(LearnStep *step, int64_t piece, double *loss) {
    LearnRun *run = step->run;
    int64_t first = first_row(step, piece), rows = first_row(step, piece + 1) - first;
    random_return(stream_of(step, piece));
    run->random = random_mark();
    if (learn_set_batch(run, step->order, first, rows) != STATUS_OK)
        return fail_at(run->code->head.span);
    run->gathered = (Gathered){0};
    const TapeArrival arrival = {take_arrival, step};
    bool last = piece + 1 == pieces_of(step->pieces, ranks_own()).end;
    if (last) tape_set_arrival(&arrival);
    Value value = learn_run_part(run, rows, (double)rows / (double)step->rows, false);
    tape_set_arrival(NULL);
    if (failed(value)) return value;
    *loss = run->gathered.loss;
    if (last) tape_zero_gradients();
    if (last || take_gradients(step, piece) == STATUS_OK) return value;
    return fail_at(run->code->head.span);
}

// --- all ranks together

// A rank's losses, then a byte for each parameter that its pieces have reached.
static size_t report_losses(const LearnStep *step) {
    return (size_t)(step->pieces / ranks_count() + 1) * sizeof(double);
}

static char *own_report(const LearnStep *step, const double *losses, size_t bytes) {
    const LearnRun *run = step->run;
    PiecesRange own = pieces_of(step->pieces, ranks_own());
    char *report = memory_allocate_zeroed(bytes, 1);
    memcpy(report, losses, (size_t)(own.end - own.first) * sizeof *losses);
    char *reached = report + report_losses(step);
    for (size_t i = 0, j = 0; i < step->parameters.count && j < run->reached.count; i++) {
        if (step->parameters.items[i] != run->reached.items[j]) continue;
        reached[i] = 1;
        j++;
    }
    return report;
}

// Losses in the order of pieces; what any rank has reached is moved on all.
static void take_reports(LearnStep *step, const char *reports, size_t bytes) {
    LearnRun *run = step->run;
    tensor_array_release(&run->reached);
    run->reached.items = memory_allocate((step->parameters.count + 1) * sizeof(Tensor *));
    run->gathered = (Gathered){.rows = (double)step->rows};
    for (int r = 0; r < ranks_count(); r++) {
        PiecesRange range = pieces_of(step->pieces, r);
        for (int64_t i = range.first; i < range.end; i++) {
            double loss;
            memcpy(&loss, reports + bytes * (size_t)r + (size_t)(i - range.first) * sizeof loss,
                   sizeof loss);
            run->gathered.loss += loss;
        }
    }
    for (size_t i = 0; i < step->parameters.count; i++) {
        bool reached = false;
        for (int r = 0; r < ranks_count(); r++)
            reached |= reports[bytes * (size_t)r + report_losses(step) + i];
        if (reached)
            run->reached.items[run->reached.count++] = tensor_retain(step->parameters.items[i]);
    }
}

static Status exchange_reports(LearnStep *step, const double *losses) {
    size_t bytes = report_losses(step) + step->parameters.count;
    char *own = own_report(step, losses, bytes);
    char *all = memory_allocate(bytes * (size_t)ranks_count());
    Status status = pieces_gather(own, all, bytes);
    if (status == STATUS_OK) take_reports(step, all, bytes);
    free(all);
    free(own);
    return status;
}

static Status add_up(LearnStep *step, const double *losses) {
    TRY(start_rest(step));
    TRY(exchange_reports(step, losses));
    for (size_t i = 0; i < step->bucket_count; i++)
        TRY(pieces_finish(&step->buckets[i].sum, &step->buckets[i].part));
    return STATUS_OK;
}

static Status finish_step(LearnStep *step, const double *losses) {
    bool enabled = tape_set_enabled(false);
    Status status = add_up(step, losses);
    tape_set_enabled(enabled);
    random_return((RandomStream){step->random.key, step->random.counter + 4});
    TRY(status);
    step->run->together = step;
    status = learn_apply(step->run);
    step->run->together = NULL;
    return status;
}

static Value run_own_pieces(LearnStep *step) {
    PiecesRange own = pieces_of(step->pieces, ranks_own());
    double *losses = memory_allocate((size_t)(own.end - own.first + 1) * sizeof *losses);
    Value value = value_none();
    for (int64_t i = own.first; i < own.end && !failed(value); i++)
        value = run_piece(step, i, &losses[i - own.first]);
    if (!failed(value) && finish_step(step, losses) != STATUS_OK)
        value = fail_at(step->run->code->settings[SETTING_objective]->span);
    free(losses);
    return value;
}

Value learn_run_pieces(LearnRun *run, Tensor *order, int64_t end) {
    LearnStep step = {.run = run, .order = order};
    Value value =
        begin_step(&step, end) == STATUS_OK ? run_own_pieces(&step) : fail_at(run->code->head.span);
    end_step(&step);
    return value;
}
