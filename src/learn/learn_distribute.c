// Steps that ranks make together. A step's rows are cut into pieces, more than there are ranks;
// each rank goes forward and backward over its own, and the gradients are added up in a tree over
// the pieces (ranks/pieces.h). Every rank then moves its parameters alike. Each piece draws from a
// stream of random numbers of its own, so losses and parameters have the same bits on any number of
// ranks.
#include "learn/learn_distribute.h"

#include <stdlib.h>
#include <string.h>

#include "device/foretell.h"
#include "learn/learn_run.h"
#include "ranks/sharded.h"
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

// This rank's part of every parameter, where it lies now.
static OptimizerParts own_parts(const TensorArray *parameters) {
    OptimizerParts parts = {0};
    for (size_t i = 0; i < parameters->count; i++) {
        Tensor *parameter = parameters->items[i];
        int64_t count = tensor_count(parameter), length = padded(count);
        const PiecesLayout layout = {.block = LEARN_BLOCK, .lengths = &length, .count = 1};
        PiecesRange own = pieces_cut(&layout, 0, ranks_own());
        int64_t end = own.end < count ? own.end : count, first;
        Tensor *place = sharded_part(parameter, &first);
        ASSERT(!place || (first == own.first && tensor_count(place) == end - own.first));
        VECTOR_PUSH(&parts, ((OptimizerPart){parameter, own.first, end - own.first, place}));
    }
    return parts;
}

Status learn_shard(LearnRun *run) {
    if (run->shares == SHARES_NOTHING || ranks_count() == 1) return STATUS_OK;
    TensorArray parameters = moved_parameters(run);
    OptimizerParts parts = own_parts(&parameters);
    Status status = optimizer_cut(run->optimizer, &parts);
    VECTOR_FREE(&parts);
    tensor_array_release(&parameters);
    return status;
}

// Those that are whole are cut: all at the first step, later what the program has assigned to.
static Status cut_parameters(LearnRun *run, const TensorArray *parameters) {
    bool changed = false;
    if (run->shares != SHARES_PARAMETERS || ranks_count() == 1) return STATUS_OK;
    if (!run->sharded) run->sharded = sharded_set_new();
    for (size_t i = 0; i < parameters->count; i++) {
        int64_t first;
        Tensor *parameter = parameters->items[i];
        if (tensor_count(parameter) < LEARN_WHOLE || sharded_part(parameter, &first)) continue;
        TRY(sharded_cut(run->sharded, parameter, LEARN_BLOCK));
        changed = true;
    }
    if (!changed) return STATUS_OK;
    OptimizerParts parts = own_parts(parameters);
    optimizer_set_parts(run->optimizer, &parts);
    VECTOR_FREE(&parts);
    return STATUS_OK;
}

Status learn_join_parameters(LearnRun *run) {
    if (!run->sharded) return STATUS_OK;
    TensorArray parameters = moved_parameters(run);
    Status status = STATUS_OK;
    for (size_t i = 0; i < parameters.count && status == STATUS_OK; i++)
        status = sharded_join(parameters.items[i]);
    tensor_array_release(&parameters);
    return status;
}

static Status take_stream(void) {
    RandomStream own = random_mark();
    SCOPED_MEMORY RandomStream *all = memory_allocate((size_t)ranks_count() * sizeof *all);
    Status status = pieces_gather(&own, all, sizeof own);
    if (status == STATUS_OK) random_return(all[0]);
    return status;
}

Status learn_judge_together(LearnRun *run) {
    if (run->pieces == 0 || ranks_count() == 1) return STATUS_OK;
    SCOPED_MEMORY double *all = memory_allocate((size_t)ranks_count() * sizeof *all);
    Status status = pieces_agree(run->pieces, 0);
    if (status == STATUS_OK) status = pieces_gather(&run->judged, all, sizeof *all);
    if (status == STATUS_OK) run->judged = all[0];
    return status;
}

// Whether every rank has the numbers that the first has, which mostly begin alike.
static Status are_alike(const TensorArray *parameters, bool *alike) {
    SCOPED_MEMORY uint64_t *all = memory_allocate((size_t)ranks_count() * sizeof *all);
    uint64_t own = 0;
    *alike = false;
    if (foretelling()) return STATUS_OK; // nobody knows
    for (size_t i = 0; i < parameters->count; i++) {
        SCOPED_TENSOR(plain);
        TRY(tape_detach(parameters->items[i], &plain));
        TRY(ranks_add_digest(plain, &own));
    }
    TRY(pieces_gather(&own, all, sizeof own));
    *alike = true;
    for (int rank = 1; rank < ranks_count(); rank++) *alike &= all[rank] == all[0];
    return STATUS_OK;
}

Status learn_begin_distributed(LearnRun *run) {
    if (ranks_count() == 1) return STATUS_OK;
    TensorArray parameters = moved_parameters(run);
    int64_t elements = 0;
    bool alike = true;
    for (size_t i = 0; i < parameters.count; i++) elements += tensor_count(parameters.items[i]);
    Status status = pieces_agree(run->pieces, elements);
    if (status == STATUS_OK) status = are_alike(&parameters, &alike);
    for (size_t i = 0; i < parameters.count && !alike && status == STATUS_OK; i++)
        status = take_from_first(parameters.items[i]);
    tensor_array_release(&parameters);
    return status == STATUS_OK ? take_stream() : status;
}

// --- the gradients of a piece

bool learn_moves_parts(const LearnRun *run) {
    return run->shares != SHARES_NOTHING && ranks_count() > 1;
}

// Things that are cut over the ranks: the parameters in it where each rank moves its part of them,
// else all at once, since a part is then one range of the whole.
static void lay_out(const LearnStep *step, LearnBucket *bucket) {
    PiecesLayout *layout = &bucket->sum.layout;
    *layout = learn_layout(step, &bucket->length);
    for (size_t i = bucket->first; i < bucket->end; i++) bucket->length += step->lengths[i];
    layout->count = 1;
    layout->length = bucket->length;
    if (!learn_moves_parts(step->run)) return;
    layout->lengths = step->lengths + bucket->first;
    layout->count = bucket->end - bucket->first;
}

// Parameters go together until a bucket is full.
static void fill_buckets(LearnStep *step) {
    size_t count = step->parameters.count;
    int64_t most = (int64_t)ranks_count() * LEARN_BUCKET_OF_RANK, length = 0;
    int64_t least = step->by_rounds ? LEARN_BUCKET_IN_PARTS : LEARN_BUCKET;
    if (most < least) most = least;
    step->lengths = memory_allocate((count + 1) * sizeof *step->lengths);
    step->arrived = memory_allocate_zeroed(count + 1, sizeof *step->arrived);
    step->buckets = memory_allocate_zeroed(count + 1, sizeof *step->buckets);
    for (size_t i = 0; i < count; i++) {
        step->lengths[i] = padded(tensor_count(step->parameters.items[i]));
        bool fits = step->bucket_count > 0 && length + step->lengths[i] <= most;
        if (!fits) step->buckets[step->bucket_count++].first = i;
        length = (fits ? length : 0) + step->lengths[i];
        step->buckets[step->bucket_count - 1].end = i + 1;
    }
    for (size_t i = 0; i < step->bucket_count; i++) {
        PiecesSum *sum = &step->buckets[i].sum;
        sum->pieces = step->pieces;
        sum->by_rounds = step->by_rounds;
        sum->fast = step->run->fast;
        lay_out(step, &step->buckets[i]);
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
    step->by_rounds = run->shares == SHARES_PARAMETERS && ranks_count() > 1;
    step->parameters = moved_parameters(run);
    step->dtype = DTYPE_FLOAT32;
    TRY(device_default(&step->device));
    for (size_t i = 0; i < step->parameters.count; i++) {
        if (tensor_dtype(step->parameters.items[i]) == DTYPE_FLOAT64) step->dtype = DTYPE_FLOAT64;
        step->elements += tensor_count(step->parameters.items[i]);
    }
    fill_buckets(step);
    double rate = optimizer_rate(run->optimizer);
    TRY(pieces_begin(step->pieces, step->elements, rate, run->fast));
    return cut_parameters(run, &step->parameters);
}

// How many pieces this rank goes through, and which they are.
static int64_t rounds_of(const LearnStep *step) {
    PiecesRange own = pieces_of(step->pieces, ranks_own());
    int64_t n = ranks_count();
    return step->by_rounds ? (step->pieces + n - 1) / n : own.end - own.first;
}

static int64_t piece_at(const LearnStep *step, int64_t round) {
    return step->by_rounds ? round * ranks_count() + ranks_own()
                           : pieces_of(step->pieces, ranks_own()).first + round;
}

static void end_step(LearnStep *step) {
    for (size_t i = 0; i < step->bucket_count; i++) {
        tensor_release(step->buckets[i].part);
        tensor_release(step->buckets[i].flat);
        tensor_release(step->buckets[i].whole);
        pieces_share_drop(&step->buckets[i].share);
        pieces_drop(&step->buckets[i].sum);
    }
    tensor_array_release(&step->parameters);
    free(step->buckets);
    free(step->lengths);
    free(step->arrived);
}

Status learn_flat(const LearnStep *step, int64_t length, Tensor **out) {
    const Shape shape = {.rank = 1, .dims = {length}};
    return tensor_new(step->device, step->dtype, &shape, out);
}

Status learn_clear(Tensor *flat, int64_t first, int64_t end) {
    SCOPED_TENSOR(part);
    if (first == end) return STATUS_OK;
    TRY(tensor_slice(flat, 0, first, end, &part));
    return op_fill_view(&part->view, (Scalar){.dtype = DTYPE_FLOAT64}, "zeros");
}

Status learn_part_of(Tensor *flat, const Tensor *parameter, int64_t at, Tensor **out) {
    SCOPED_TENSOR(part);
    Shape shape = tensor_shape(parameter);
    TRY(tensor_slice(flat, 0, at, at + tensor_count(parameter), &part));
    return tensor_reshape(part, &shape, out);
}

// A parameter's gradient into its place in the bucket, or zeros for what the piece has not reached.
static Status place(const LearnStep *step, const LearnBucket *bucket, Tensor *flat, size_t index) {
    Tensor *parameter = step->parameters.items[index], *gradient = tape_gradient(parameter);
    int64_t at = 0, filled = gradient ? tensor_count(parameter) : 0;
    for (size_t i = bucket->first; i < index; i++) at += step->lengths[i];
    if (gradient) {
        SCOPED_TENSOR(part);
        TRY(learn_part_of(flat, parameter, at, &part));
        TRY(op_copy(gradient, part));
    }
    return learn_clear(flat, at + filled, at + step->lengths[index]);
}

static Status take_bucket(const LearnStep *step, LearnBucket *bucket, int64_t piece) {
    SCOPED_TENSOR(flat);
    TRY(learn_flat(step, bucket->sum.layout.length, &flat));
    for (size_t i = bucket->first; i < bucket->end; i++) TRY(place(step, bucket, flat, i));
    Tensor *given = flat;
    flat = NULL;
    return pieces_add(&bucket->sum, piece, given);
}

// --- those of the last piece, or of each round's, while its backward still runs

static Status start_bucket(LearnStep *step, size_t index) {
    LearnBucket *bucket = &step->buckets[index];
    bucket->started = true;
    Tensor *given = bucket->flat;
    bucket->flat = NULL;
    for (size_t i = bucket->first; i < bucket->end; i++) {
        if (given && !step->arrived[i]) TRY(place(step, bucket, given, i));
        step->arrived[i] = false;
    }
    TRY(pieces_collect(&bucket->sum)); // of the round before
    bucket->sum.round = step->piece / ranks_count();
    if (given) TRY(pieces_add(&bucket->sum, step->piece, given));
    return pieces_start(&bucket->sum, (int)index);
}

static LearnBucket *bucket_of(const LearnStep *step, size_t parameter) {
    LearnBucket *bucket = step->buckets;
    while (bucket->end <= parameter) bucket++;
    return bucket;
}

static Status place_arrival(LearnStep *step, LearnBucket *bucket, size_t index) {
    if (!bucket->flat) TRY(learn_flat(step, bucket->sum.layout.length, &bucket->flat));
    TRY(place(step, bucket, bucket->flat, index));
    tape_set_gradient(step->parameters.items[index], NULL);
    step->arrived[index] = true;
    return STATUS_OK;
}

static Status take_arrival(void *context, Tensor *parameter) {
    LearnStep *step = context;
    size_t index = 0, count = step->parameters.count;
    while (index < count && step->parameters.items[index] != parameter) index++;
    if (index == count) return STATUS_OK; // it stays as it is
    LearnBucket *bucket = bucket_of(step, index);
    if (step->drops)
        tape_set_gradient(parameter, NULL);
    else
        TRY(place_arrival(step, bucket, index));
    if (++bucket->arrived == bucket->end - bucket->first)
        TRY(start_bucket(step, (size_t)(bucket - step->buckets)));
    bool done;
    for (size_t i = 0; i < step->bucket_count; i++) TRY(pieces_poll(&step->buckets[i].sum, &done));
    return STATUS_OK;
}

// Those with parameters that the piece has not reached, and all of a rank without pieces.
static Status start_rest(LearnStep *step, bool has_piece) {
    bool enabled = tape_set_enabled(false);
    Status status = STATUS_OK;
    for (size_t i = 0; i < step->bucket_count && status == STATUS_OK; i++) {
        LearnBucket *bucket = &step->buckets[i];
        if (bucket->started) continue;
        if (!bucket->flat && (has_piece || step->run->fast))
            status = learn_flat(step, bucket->sum.layout.length, &bucket->flat);
        if (status == STATUS_OK) status = start_bucket(step, i);
    }
    tape_set_enabled(enabled);
    return status;
}

// Before anyone waits for the gradients of the round before: what the body has between the ranks
// must not wait for this one.
static Status begin_round(LearnStep *step, int64_t round) {
    if (!step->by_rounds) return STATUS_OK;
    if (round > 0) TRY(pieces_agree(step->pieces, step->elements));
    for (size_t i = 0; i < step->bucket_count; i++) {
        step->buckets[i].started = false;
        step->buckets[i].arrived = 0;
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
    if (step->random.key == FORETELL_RANDOM_KEY) return step->random;
    uint64_t place = scrambled(step->random.counter + 0x9e3779b97f4a7c15u * (uint64_t)(piece + 1));
    return (RandomStream){.key = scrambled(step->random.key ^ place) >> 1};
}

static int64_t first_row(const LearnStep *step, int64_t piece) {
    return step->begin + step->rows * piece / step->pieces;
}

// What a rank says of a piece: its loss, and how it calls each_piece.
typedef struct PieceReport {
    double loss;
    uint64_t sign;
} PieceReport;

// `sends`: its gradients go to the other ranks as they arrive.
static Value go_through(LearnStep *step, int64_t piece, bool sends) {
    LearnRun *run = step->run;
    int64_t first = first_row(step, piece), rows = first_row(step, piece + 1) - first;
    random_return(stream_of(step, piece));
    run->random = random_mark();
    if (learn_set_batch(run, step->order, first, rows) != STATUS_OK)
        return fail_at(run->code->head.span);
    run->gathered = (Gathered){0};
    const TapeArrival arrival = {take_arrival, step};
    if (sends) tape_set_arrival(&arrival);
    Value value = learn_run_part(run, rows, (double)rows / (double)step->rows, false);
    tape_set_arrival(NULL);
    return value;
}

static Value run_piece(LearnStep *step, int64_t round, PieceReport *report) {
    LearnRun *run = step->run;
    size_t noted = learn_count_noted(run);
    bool sends = step->by_rounds || round + 1 == rounds_of(step);
    step->piece = piece_at(step, round);
    step->drops = step->piece >= step->pieces;
    if (begin_round(step, round) != STATUS_OK) return fail_at(run->code->head.span);
    Value value = go_through(step, step->drops ? step->pieces - 1 : step->piece, sends);
    if (failed(value)) return value;
    *report = (PieceReport){run->gathered.loss, learn_sign_piece(run, noted)};
    if (sends) tape_zero_gradients();
    Status status = sends ? start_rest(step, !step->drops) : take_gradients(step, step->piece);
    return status == STATUS_OK ? value : fail_at(run->code->head.span);
}

// --- all ranks together

// What a rank says of its pieces, then a byte for each parameter that they have reached.
static size_t report_pieces(const LearnStep *step) {
    return (size_t)(step->pieces / ranks_count() + 1) * sizeof(PieceReport);
}

static char *own_report(const LearnStep *step, const PieceReport *pieces, size_t bytes) {
    const LearnRun *run = step->run;
    char *report = memory_allocate_zeroed(bytes, 1);
    memcpy(report, pieces, (size_t)rounds_of(step) * sizeof *pieces);
    char *reached = report + report_pieces(step);
    for (size_t i = 0, j = 0; i < step->parameters.count && j < run->reached.count; i++) {
        if (step->parameters.items[i] != run->reached.items[j]) continue;
        reached[i] = 1;
        j++;
    }
    return report;
}

// In the order of pieces.
static Status take_pieces(LearnStep *step, const char *reports, size_t bytes) {
    int64_t n = ranks_count(), rank = 0;
    for (int64_t i = 0; i < step->pieces; i++) {
        while (!step->by_rounds && i >= pieces_of(step->pieces, (int)rank).end) rank++;
        int64_t round = step->by_rounds ? i / n : i - pieces_of(step->pieces, (int)rank).first;
        size_t of = (size_t)(step->by_rounds ? i % n : rank);
        PieceReport piece;
        memcpy(&piece, reports + bytes * of + (size_t)round * sizeof piece, sizeof piece);
        step->run->gathered.loss += piece.loss;
        if (i == 0) step->sign = piece.sign;
        if (piece.sign == step->sign) continue;
        return fail(STATUS_VALUE,
                    "each_piece: the first piece of a batch calls it otherwise than piece %lld",
                    (long long)i + 1);
    }
    return STATUS_OK;
}

// What any rank has reached is moved on all.
static Status take_reports(LearnStep *step, const char *reports, size_t bytes) {
    LearnRun *run = step->run;
    tensor_array_release(&run->reached);
    run->reached.items = memory_allocate((step->parameters.count + 1) * sizeof(Tensor *));
    run->gathered = (Gathered){.rows = (double)step->rows};
    TRY(take_pieces(step, reports, bytes));
    for (size_t i = 0; i < step->parameters.count; i++) {
        bool reached = false;
        for (int r = 0; r < ranks_count(); r++)
            reached |= reports[bytes * (size_t)r + report_pieces(step) + i];
        if (reached)
            run->reached.items[run->reached.count++] = tensor_retain(step->parameters.items[i]);
    }
    return STATUS_OK;
}

static Status exchange_reports(LearnStep *step, const PieceReport *pieces) {
    size_t bytes = report_pieces(step) + step->parameters.count;
    SCOPED_MEMORY char *own = own_report(step, pieces, bytes);
    SCOPED_MEMORY char *all = memory_allocate(bytes * (size_t)ranks_count());
    TRY(pieces_gather(own, all, bytes));
    return take_reports(step, all, bytes);
}

Status learn_advance(LearnStep *step, LearnAdvance advance) {
    int looks = 0;
    for (size_t left = step->bucket_count; left > 0;) {
        left = 0;
        for (size_t i = step->bucket_count; i-- > 0;) {
            bool done;
            TRY(advance(step, &step->buckets[i], &done));
            left += !done;
        }
        if (left > 0) TRY(pieces_pause(&looks));
    }
    return STATUS_OK;
}

Status learn_share_bucket(const LearnStep *step, LearnBucket *bucket) {
    int index = (int)(bucket - step->buckets);
    return pieces_share_start(&bucket->share, &bucket->sum, bucket->part, index);
}

// What clipping leaves as it is goes on to the other ranks at once; nobody waits for it here, since
// not every rank has sent it before all go on.
static Status finish_sum(const LearnStep *step, LearnBucket *bucket, bool *done) {
    const LearnRun *run = step->run;
    bool changes = run->clip > 0 || run->clip_value > 0 || run->loss_scale != 1;
    if (bucket->part) {
        TRY(pieces_share_poll(&bucket->share, done));
        *done = true;
        return STATUS_OK;
    }
    TRY(pieces_poll(&bucket->sum, done));
    if (!*done) return STATUS_OK;
    TRY(pieces_finish(&bucket->sum, &bucket->part));
    bool waits = changes || learn_moves_parts(run) || run->fast;
    return waits ? STATUS_OK : learn_share_bucket(step, bucket);
}

static Status add_up(LearnStep *step, const PieceReport *pieces) {
    if (rounds_of(step) == 0) TRY(start_rest(step, false));
    TRY(pieces_agree(step->pieces, step->elements)); // the body may have calls of its own
    TRY(exchange_reports(step, pieces));
    TRY(learn_follow(step, step->sign));
    for (size_t i = step->bucket_count; i-- > 0 && step->run->fast;)
        TRY(pieces_send(&step->buckets[i].sum));
    return learn_advance(step, finish_sum);
}

static Status finish_step(LearnStep *step, const PieceReport *pieces) {
    bool enabled = tape_set_enabled(false);
    Status status = add_up(step, pieces);
    tape_set_enabled(enabled);
    random_return((RandomStream){step->random.key, step->random.counter + 4});
    TRY(status);
    step->run->together = step;
    status = learn_apply(step->run);
    step->run->together = NULL;
    return status;
}

static Value run_own_pieces(LearnStep *step) {
    int64_t rounds = rounds_of(step);
    SCOPED_MEMORY PieceReport *pieces = memory_allocate((size_t)(rounds + 1) * sizeof *pieces);
    Value value = value_none();
    for (int64_t i = 0; i < rounds && !failed(value); i++) value = run_piece(step, i, &pieces[i]);
    if (!failed(value) && finish_step(step, pieces) != STATUS_OK)
        value = fail_at(step->run->code->settings[SETTING_objective]->span);
    learn_drop_noted(step->run);
    return value;
}

// A signal that one rank has had ends the block on all of them after the same step.
static void take_stop(Status status) {
    if (status != STATUS_INTERRUPT) return;
    runtime_hold_signals(runtime_current, false);
    runtime_interrupt(runtime_current, INTERRUPT_SIGNAL);
}

Value learn_run_pieces(LearnRun *run, Tensor *order, int64_t end) {
    LearnStep step = {.run = run, .order = order};
    Status status = begin_step(&step, end);
    take_stop(status);
    Value value = status == STATUS_OK ? run_own_pieces(&step) : fail_at(run->code->head.span);
    end_step(&step);
    return value;
}
