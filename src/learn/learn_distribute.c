// Steps that ranks make together. A step's rows are cut into pieces, more than there are ranks;
// each rank goes forward and backward over its own, and the gradients are added up in a tree over
// the pieces (ranks/pieces.h). Every rank then moves its parameters alike. Each piece draws from a
// stream of random numbers of its own, so losses and parameters have the same bits on any number of
// ranks.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "learn/learn_run.h"
#include "ranks/pieces.h"
#include "tensor/compose.h"
#include "tensor/join.h"
#include "tensor/parameter.h"

bool learn_writes_files(const LearnRun *run) {
    return run->pieces == 0 || ranks_own() == 0;
}

// --- what all ranks have alike

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

// --- the gradients of a piece as one tensor

typedef struct Step {
    LearnRun *run;
    Tensor *order;
    int64_t begin, rows, pieces;
    RandomStream random;    // where it began
    TensorArray parameters; // counted
    DType dtype;            // of the sums
    int64_t length;         // elements of all parameters
    PiecesSum sum;
} Step;

static void begin_step(Step *step, int64_t end) {
    LearnRun *run = step->run;
    int64_t batches = (end - run->row + run->batch_size - 1) / run->batch_size;
    step->begin = run->row;
    step->rows = end - run->row;
    step->pieces = run->pieces * batches < step->rows ? run->pieces * batches : step->rows;
    step->random = random_mark();
    step->parameters = moved_parameters(run);
    step->dtype = DTYPE_FLOAT32;
    for (size_t i = 0; i < step->parameters.count; i++) {
        if (tensor_dtype(step->parameters.items[i]) == DTYPE_FLOAT64) step->dtype = DTYPE_FLOAT64;
        step->length += tensor_count(step->parameters.items[i]);
    }
    step->sum.pieces = step->pieces;
}

static void end_step(Step *step) {
    tensor_array_release(&step->parameters);
    pieces_drop(&step->sum);
}

static Status make_flat(const Step *step, Tensor **out) {
    const OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape) | ATTRIBUTE_BIT(dtype),
                                     .shape = {.rank = 1, .dims = {step->length}},
                                     .dtype = step->dtype};
    return op_with(OP_zeros, NULL, 0, &attributes, out);
}

// The part of a flat tensor that belongs to a parameter, in its shape; moves `at` behind it.
static Status part_of(Tensor *flat, const Tensor *parameter, int64_t *at, Tensor **out) {
    SCOPED_TENSOR(part);
    Shape shape = tensor_shape(parameter);
    int64_t end = *at + tensor_count(parameter);
    TRY(tensor_slice(flat, 0, *at, end, &part));
    *at = end;
    return tensor_reshape(part, &shape, out);
}

// Zeros for what the piece has not reached.
static Status flatten(const Step *step, Tensor *flat) {
    int64_t at = 0;
    for (size_t i = 0; i < step->parameters.count; i++) {
        SCOPED_TENSOR(part);
        Tensor *gradient = tape_gradient(step->parameters.items[i]);
        TRY(part_of(flat, step->parameters.items[i], &at, &part));
        if (gradient) TRY(op_copy(gradient, part));
    }
    return STATUS_OK;
}

static Status take_gradients(Step *step, int64_t piece) {
    bool enabled = tape_set_enabled(false);
    Tensor *flat = NULL;
    Status status = make_flat(step, &flat);
    if (status == STATUS_OK) status = flatten(step, flat);
    if (status == STATUS_OK)
        status = pieces_add(&step->sum, piece, flat);
    else
        tensor_release(flat);
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

static RandomStream stream_of(const Step *step, int64_t piece) {
    uint64_t place = scrambled(step->random.counter + 0x9e3779b97f4a7c15u * (uint64_t)(piece + 1));
    return (RandomStream){.key = scrambled(step->random.key ^ place) >> 1};
}

static int64_t first_row(const Step *step, int64_t piece) {
    return step->begin + step->rows * piece / step->pieces;
}

static Value run_piece(Step *step, int64_t piece, double *loss) {
    LearnRun *run = step->run;
    int64_t first = first_row(step, piece), rows = first_row(step, piece + 1) - first;
    random_return(stream_of(step, piece));
    run->random = random_mark();
    if (learn_set_batch(run, step->order, first, rows) != STATUS_OK)
        return fail_at(run->code->head.span);
    run->gathered = (Gathered){0};
    Value value = learn_run_part(run, rows, (double)rows / (double)step->rows, false);
    if (failed(value)) return value;
    *loss = run->gathered.loss;
    return take_gradients(step, piece) == STATUS_OK ? value : fail_at(run->code->head.span);
}

// --- all ranks together

// A rank's losses, then a byte for each parameter that its pieces have reached.
static size_t report_losses(const Step *step) {
    return (size_t)(step->pieces / ranks_count() + 1) * sizeof(double);
}

static char *own_report(const Step *step, const double *losses, size_t bytes) {
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
static void take_reports(Step *step, const char *reports, size_t bytes) {
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

static Status exchange_reports(Step *step, const double *losses) {
    size_t bytes = report_losses(step) + step->parameters.count;
    char *own = own_report(step, losses, bytes);
    char *all = memory_allocate(bytes * (size_t)ranks_count());
    Status status = pieces_gather(own, all, bytes);
    if (status == STATUS_OK) take_reports(step, all, bytes);
    free(all);
    free(own);
    return status;
}

static Status give_gradients(const Step *step, Tensor *sum) {
    const TensorArray *reached = &step->run->reached;
    int64_t at = 0;
    for (size_t i = 0, j = 0; i < step->parameters.count; i++) {
        Tensor *parameter = step->parameters.items[i], *gradient = NULL;
        SCOPED_TENSOR(part);
        TRY(part_of(sum, parameter, &at, &part));
        if (j == reached->count || reached->items[j] != parameter) continue;
        j++;
        TRY(tensor_cast(part, tensor_dtype(parameter), &gradient));
        tape_set_gradient(parameter, gradient);
    }
    return STATUS_OK;
}

static Status add_up(Step *step, const double *losses) {
    SCOPED_TENSOR(like);
    SCOPED_TENSOR(sum);
    TRY(make_flat(step, &like));
    TRY(pieces_agree(step->pieces, step->length));
    TRY(pieces_end(&step->sum, like, &sum));
    TRY(exchange_reports(step, losses));
    return give_gradients(step, sum);
}

static Status finish_step(Step *step, const double *losses) {
    bool enabled = tape_set_enabled(false);
    Status status = add_up(step, losses);
    tape_set_enabled(enabled);
    random_return((RandomStream){step->random.key, step->random.counter + 4});
    return status == STATUS_OK ? learn_apply(step->run) : status;
}

Value learn_run_pieces(LearnRun *run, Tensor *order, int64_t end) {
    Step step = {.run = run, .order = order};
    begin_step(&step, end);
    PiecesRange own = pieces_of(step.pieces, ranks_own());
    double *losses = memory_allocate((size_t)(own.end - own.first + 1) * sizeof *losses);
    Value value = value_none();
    for (int64_t i = own.first; i < own.end && !failed(value); i++)
        value = run_piece(&step, i, &losses[i - own.first]);
    if (!failed(value) && finish_step(&step, losses) != STATUS_OK)
        value = fail_at(run->code->settings[SETTING_objective]->span);
    free(losses);
    end_step(&step);
    return value;
}
