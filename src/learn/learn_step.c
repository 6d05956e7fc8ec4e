// One step of training: zero, backward, clip, update; and the best parameters so far.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "learn/learn.h"
#include "value/format.h"

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

static Status copy_contents(Tensor *parameter, Tensor **copy) {
    if (*copy) return op_copy(parameter, *copy);
    return tensor_clone(parameter, copy);
}

Status learn_keep_best(LearnRun *run) {
    run->best_contents =
        memory_resize(run->best_contents, (run->trained.count + 1) * sizeof(Tensor *));
    while (run->best_count < run->trained.count) run->best_contents[run->best_count++] = NULL;
    bool enabled = tape_set_enabled(false);
    Status status = STATUS_OK;
    for (size_t i = 0; i < run->trained.count && status == STATUS_OK; i++)
        status = copy_contents(run->trained.items[i], &run->best_contents[i]);
    tape_set_enabled(enabled);
    return status;
}

Status learn_restore_best(LearnRun *run) {
    for (size_t i = 0; i < run->best_count; i++)
        if (run->best_contents[i])
            TRY(tape_parameter_assign(run->trained.items[i], run->best_contents[i]));
    return STATUS_OK;
}

void learn_forget(LearnRun *run) {
    while (run->best_count > 0) tensor_release(run->best_contents[--run->best_count]);
    free(run->best_contents);
    tensor_array_release(&run->trained);
}

static Status read_loss(Value loss, double *out) {
    if (loss.kind != VALUE_TENSOR) {
        return fail(STATUS_GRADIENT,
                    "the objective is %s, which depends on no parameter: there is nothing to train",
                    value_text(loss).text);
    }
    Tensor *tensor = loss.as.tensor;
    if (tensor_count(tensor) != 1) {
        (void)fail(STATUS_SHAPE, "the objective is %s; it must have one element",
                   tensor_type_name(tensor).text);
        return fail_help("mean(...) or sum(...) makes one number of it");
    }
    Scalar scalar;
    TRY(tensor_read_scalar(tensor, &scalar));
    *out = scalar.dtype == DTYPE_FLOAT64 ? scalar.as.f : (double)scalar.as.i;
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

static Status update(LearnRun *run, double loss, const TensorArray *reached, double *norm) {
    if (run->clip > 0)
        TRY(tape_clip_gradient_norm(reached->items, reached->count, run->clip, norm));
    else
        TRY(tape_gradient_norm(reached->items, reached->count, norm));
    if (!isfinite(*norm)) return fail_diverged(run, true, *norm);
    note_trained(run, reached);
    TRY(keep_if_best(run, loss));
    Tensor **gradients = memory_allocate((reached->count + 1) * sizeof *gradients);
    for (size_t i = 0; i < reached->count; i++) gradients[i] = tape_gradient(reached->items[i]);
    Status status = optimizer_step(run->optimizer, reached->items, gradients, reached->count);
    free(gradients);
    return status;
}

Status learn_descend(LearnRun *run, Value value, int64_t rows) {
    double loss, norm;
    run->diverged = 0;
    TRY(read_loss(value, &loss));
    if (!isfinite(loss)) return fail_diverged(run, false, loss);
    TensorArray reached = {0};
    tape_zero_gradients();
    TRY(tape_backward(value.as.tensor, &reached));
    Status status = update(run, loss, &reached, &norm);
    tensor_array_release(&reached);
    TRY(status);
    double weight = (double)rows;
    run->steps++;
    run->steps_all++;
    run->loss_sum += loss * weight;
    run->norm_sum += norm * weight;
    run->weight += weight;
    return STATUS_OK;
}
