// One step of training: backward from one loss or several, clip, update.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "check/operator_words.h"
#include "device/foretell.h"
#include "device/work.h"
#include "learn/learn_run.h"
#include "tensor/compose.h"
#include "tensor/gradient/backward.h"
#include "tensor/join.h"
#include "tensor/parameter.h"
#include "value/print.h"

// The parameters are in order of declaration; those that are new go where their numbers put them.
static void note_trained(LearnRun *run, const TensorArray *reached) {
    for (size_t i = 0; i < reached->count; i++) {
        bool known = i < run->trained.count && run->trained.items[i] == reached->items[i];
        for (size_t j = 0; j < run->trained.count && !known; j++)
            known = run->trained.items[j] == reached->items[i];
        if (known) continue;
        run->trained.items =
            memory_resize(run->trained.items, (run->trained.count + 1) * sizeof(Tensor *));
        run->trained.items[run->trained.count++] = tensor_retain(reached->items[i]);
    }
}

static Status check_loss(Value loss) {
    if (loss.kind != VALUE_TENSOR)
        return fail(STATUS_GRADIENT,
                    "the objective is %s, which depends on no parameter: there is nothing to train",
                    value_text(loss).text);
    Tensor *tensor = loss.as.tensor;
    return tensor_count(tensor) == 1 ? STATUS_OK : objective_fail(tensor_type_name(tensor).text);
}

// A block that has no epochs may end only by a loss that is not finite.
static bool ends_by_its_loss(const LearnRun *run) {
    enum { UNKNOWN_LOSSES_MAX = 10000 };
    return run->guessed && run->epochs == 0 && run->steps_all >= UNKNOWN_LOSSES_MAX;
}

static Status read_loss(LearnRun *run, Value loss, double *out) {
    Scalar scalar;
    uint64_t reads = foretell_reads();
    bool before = foretell_ignore_reads(true); // it is reported, and ends nothing by itself
    Status status = tensor_read_scalar(loss.as.tensor, &scalar);
    foretell_ignore_reads(before);
    TRY(status);
    *out = scalar.dtype == DTYPE_FLOAT64 ? scalar.as.f : (double)scalar.as.i;
    run->guessed |= foretell_reads() != reads;
    if (!ends_by_its_loss(run)) return STATUS_OK;
    foretell_unknown();
    *out = NAN;
    return STATUS_OK;
}

bool learn_judged_before(const LearnRun *run) {
    return !run->code->settings[SETTING_validate] && run->batch_size == 0 && !run->code->has_loop;
}

static Status keep_if_best(LearnRun *run, double loss) {
    bool judged = run->patience > 0 && learn_judged_before(run);
    return judged && loss < run->best ? learn_keep_best(run) : STATUS_OK;
}

static Status fail_diverged(LearnRun *run, bool in_gradient, double number) {
    run->diverged = number;
    run->in_gradient = in_gradient;
    return fail(STATUS_VALUE, "the %s became %s in epoch %lld",
                in_gradient ? "gradient norm" : "loss", learn_number(number).text,
                (long long)run->done + 1);
}

// Adds those of a backward that the block moves, in order of declaration.
static void note_reached(LearnRun *run, const TensorArray *reached) {
    TensorArray merged = {
        memory_allocate((run->reached.count + reached->count + 1) * sizeof(Tensor *)), 0};
    size_t i = 0, j = 0;
    while (i < run->reached.count || j < reached->count) {
        Tensor *old = i < run->reached.count ? run->reached.items[i] : NULL;
        Tensor *new = j < reached->count ? reached->items[j] : NULL;
        bool takes_old = old && (!new || tape_parameter_number(old) <= tape_parameter_number(new));
        Tensor *next = takes_old ? old : new;
        if (takes_old) i++;
        if (next == new) j++;
        if (learn_trains(run, next)) merged.items[merged.count++] = tensor_retain(next);
    }
    tensor_array_release(&run->reached);
    run->reached = merged;
}

void learn_drop_gathered(LearnRun *run) {
    tape_zero_gradients();
    tensor_array_release(&run->reached);
    run->gathered = (Gathered){0};
}

// The loss is read after backward has been queued: a device has work while the host waits.
Status learn_gather(LearnRun *run, Value value, int64_t rows, double share) {
    double loss;
    SCOPED_TENSOR(part);
    TensorArray reached = {0};
    run->diverged = 0;
    TRY(check_loss(value));
    double factor = share * run->loss_scale;
    if (factor != 1) TRY(op_binary(OP_mul, op_tensor(value.as.tensor), op_float(factor), &part));
    TRY(tape_backward(part ? part : value.as.tensor, &reached));
    note_reached(run, &reached);
    tensor_array_release(&reached);
    TRY(read_loss(run, value, &loss));
    if (!isfinite(loss)) {
        learn_drop_gathered(run);
        return fail_diverged(run, false, loss);
    }
    run->gathered.loss += loss * (double)rows;
    run->gathered.rows += (double)rows;
    return STATUS_OK;
}

static Status unscale(const LearnRun *run) {
    ASSERT(run->loss_scale > 0);
    bool enabled = tape_set_enabled(false);
    Status status = STATUS_OK;
    for (size_t i = 0; i < run->reached.count && status == STATUS_OK; i++) {
        Tensor *scaled = NULL;
        status = op_binary(OP_mul, op_tensor(tape_gradient(run->reached.items[i])),
                           op_float(1 / run->loss_scale), &scaled);
        if (status == STATUS_OK) tape_set_gradient(run->reached.items[i], scaled);
    }
    tape_set_enabled(enabled);
    return status;
}

static Status clip(LearnRun *run, double *norm) {
    const TensorArray *reached = &run->reached;
    if (run->together) return learn_clip_together(run->together, norm);
    if (run->loss_scale != 1) TRY(unscale(run));
    if (run->clip_value > 0)
        TRY(tape_clip_gradient_value(reached->items, reached->count, run->clip_value));
    if (run->clip > 0)
        return tape_clip_gradient_norm(reached->items, reached->count, run->clip, norm);
    bool before = foretell_ignore_reads(true); // it is reported
    Status status = tape_gradient_norm(reached->items, reached->count, norm);
    foretell_ignore_reads(before);
    return status;
}

static Status move(LearnRun *run) {
    const TensorArray *reached = &run->reached;
    if (run->together) return learn_move_together(run->together);
    SCOPED_MEMORY Tensor **gradients = memory_allocate((reached->count + 1) * sizeof *gradients);
    for (size_t i = 0; i < reached->count; i++) gradients[i] = tape_gradient(reached->items[i]);
    return optimizer_step(run->optimizer, reached->items, gradients, reached->count);
}

static void note_step(LearnRun *run, double norm) {
    run->steps++;
    run->steps_all++;
    run->loss_sum += run->gathered.loss;
    run->norm_sum += norm * run->gathered.rows;
    run->norm_weight += run->gathered.rows;
    run->weight += run->gathered.rows;
    learn_drop_gathered(run);
}

// The loss was scaled too far: the step is left out, and the next ones are scaled less.
static void skip_step(LearnRun *run) {
    run->loss_scale /= 2;
    run->scaled_steps = 0;
    run->loss_sum += run->gathered.loss;
    run->weight += run->gathered.rows;
    learn_drop_gathered(run);
}

static void note_scale(LearnRun *run) {
    enum { STEPS_TO_DOUBLE = 2000 };
    if (run->precision != DTYPE_FLOAT16 || ++run->scaled_steps < STEPS_TO_DOUBLE) return;
    run->loss_scale *= 2;
    run->scaled_steps = 0;
}

// At the first step after a file was read: what it trained is trained here too, or its names are
// those of other parameters.
static Status check_restored(LearnRun *run) {
    size_t restored = run->restored, missing = 0;
    run->restored = 0;
    for (size_t i = 0; i < restored; i++) {
        bool reached = false;
        for (size_t j = 0; j < run->reached.count; j++)
            reached |= run->reached.items[j] == run->trained.items[i];
        missing += !reached;
    }
    if (missing == 0 || run->trained.count == restored) return STATUS_OK;
    (void)fail(
        STATUS_NAME,
        "resume: %s has no parameter %s that is trained here, and %zu that %s not trained here",
        run->resume_path.as.string->bytes, tensor_type_name(run->trained.items[restored]).text,
        missing, missing == 1 ? "is" : "are");
    return fail_help("parameters go by the variables that hold them, such as net.w");
}

// What ranks make together has been followed before.
static Status follow(LearnRun *run) {
    return run->pieces > 0 ? STATUS_OK : learn_follow_alone(run);
}

static Status check_reached(const LearnRun *run) {
    if (run->reached.count > 0) return STATUS_OK;
    (void)fail(STATUS_GRADIENT, "the loss reaches no parameter that this block trains");
    return fail_help("`train`, `freeze` and the optimizer's `params` say which those are");
}

Status learn_apply(LearnRun *run) {
    ASSERT(run->gathered.rows > 0); // learn_gather came before
    double norm, loss = run->gathered.loss / run->gathered.rows;
    TRY(check_reached(run));
    TRY(clip(run, &norm));
    if (!isfinite(norm) && run->loss_scale > 1) {
        skip_step(run);
        return follow(run);
    }
    if (!isfinite(norm)) return fail_diverged(run, true, norm);
    size_t known = run->trained.count;
    note_trained(run, &run->reached);
    TRY(check_restored(run));
    if (run->trained.count > known) TRY(learn_check_names(run));
    TRY(keep_if_best(run, loss));
    TRY(learn_begin_averages(run));
    bool held = device_hold_interrupts(true);
    run->rate = optimizer_rate(run->optimizer);
    Status status = move(run);
    if (status == STATUS_OK) status = learn_average(run);
    device_hold_interrupts(held);
    TRY(status);
    note_scale(run);
    note_step(run, norm);
    TRY(follow(run));
    if (!run->scheduler || !run->per_step) return STATUS_OK;
    scheduler_note(run->scheduler, loss);
    return learn_set_rate(run);
}
