// Learn blocks: lowering, the settings, and the epochs of both forms.
#include "learn/learn.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "learn/learn_run.h"
#include "value/convert.h"
#include "value/handles.h"
#include "value/object.h"

static const char *const result_fields[] = {"losses", "grad_norms", "epochs", "best"};
static const StructType result_type = {
    .name = "Training", .field_count = 4, .field_names = result_fields};

static LearnRun *running;

LearnRun *learn_running(void) {
    return running;
}

// --- settings

// The value of a setting's code, a new reference; ABSENT where it is not given.
static Value setting_eval(LearnRun *run, const Code *code) {
    return code ? EVAL(run->frame, code) : value_absent();
}

static bool setting_int(LearnRun *run, const Code *code, const char *name, int64_t lowest,
                        int64_t *out) {
    Value value = setting_eval(run, code);
    if (value.kind == VALUE_ABSENT) return true;
    if (failed(value)) return false;
    Status status = value_to_int(value, name, out);
    value_release(value);
    if (status == STATUS_OK && *out < lowest)
        status = fail(STATUS_VALUE, "%s is %lld; it must be at least %lld", name, (long long)*out,
                      (long long)lowest);
    if (status != STATUS_OK) error_place(code->span);
    return status == STATUS_OK;
}

static bool setting_double(LearnRun *run, const Code *code, const char *name, double *out) {
    Value value = setting_eval(run, code);
    if (value.kind == VALUE_ABSENT) return true;
    if (failed(value)) return false;
    Status status = value_to_double(value, name, out);
    value_release(value);
    if (status == STATUS_OK && !(*out > 0))
        status = fail(STATUS_VALUE, "%s is %g; it must be greater than 0", name, *out);
    if (status != STATUS_OK) error_place(code->span);
    return status == STATUS_OK;
}

static bool setting_bool(LearnRun *run, const Code *code, const char *name, bool *out) {
    Value value = setting_eval(run, code);
    if (value.kind == VALUE_ABSENT) return true;
    if (failed(value)) return false;
    Status status = value_to_bool(value, name, out);
    value_release(value);
    if (status != STATUS_OK) error_place(code->span);
    return status == STATUS_OK;
}

static bool setting_optimizer(LearnRun *run) {
    const LearnCode *code = run->code;
    run->optimizer_value = setting_eval(run, code->optimizer);
    if (failed(run->optimizer_value)) return false;
    void *payload;
    if (value_to_handle(run->optimizer_value, &handle_optimizer, "optimizer", &payload) !=
            STATUS_OK ||
        optimizer_refresh(payload) != STATUS_OK) {
        error_place(code->optimizer->span);
        return false;
    }
    run->optimizer = payload;
    run->base_rate = run->set_rate = optimizer_rate(run->optimizer);
    variable_set(run->frame, code->optimizer_name, value_retain(run->optimizer_value));
    return true;
}

static bool setting_scheduler(LearnRun *run) {
    Value value = setting_eval(run, run->code->scheduler);
    if (value.kind == VALUE_ABSENT) return true;
    if (failed(value)) return false;
    void *payload;
    Status status = value_to_handle(value, &handle_scheduler, "scheduler", &payload);
    if (status == STATUS_OK) {
        run->has_scheduler = true;
        run->scheduler = *(const Scheduler *)payload;
        scheduler_begin(&run->scheduler, run->epochs);
    } else {
        error_place(run->code->scheduler->span);
    }
    value_release(value);
    return status == STATUS_OK;
}

static bool setting_dropout(LearnRun *run, RandomTraining *training) {
    if (!setting_double(run, run->code->dropout, "dropout", &training->dropout)) return false;
    if (training->dropout < 1) return true;
    fail(STATUS_VALUE, "dropout is %g; it must be less than 1", training->dropout);
    error_place(run->code->dropout->span);
    return false;
}

static bool read_settings(LearnRun *run, RandomTraining *training) {
    const LearnCode *code = run->code;
    if (!setting_int(run, code->epochs, "epochs", 0, &run->epochs)) return false;
    variable_set(run->frame, code->epochs_name,
                 code->epochs ? value_int(run->epochs) : value_absent());
    if (!setting_optimizer(run) || !setting_scheduler(run)) return false;
    run->report_every = run->epochs >= 10 ? run->epochs / 10 : run->epochs > 0;
    return setting_double(run, code->clip, "clip_grad_norm", &run->clip) &&
           setting_int(run, code->batch_size, "batch", 1, &run->batch_size) &&
           setting_bool(run, code->shuffle, "shuffle", &run->shuffle) &&
           setting_int(run, code->report_every, "report_every", 0, &run->report_every) &&
           setting_int(run, code->patience, "patience", 1, &run->patience) &&
           setting_dropout(run, training) && learn_take_whole(run);
}

// --- epochs

static Status set_rate(LearnRun *run) {
    if (!run->has_scheduler) return STATUS_OK;
    // A script that set another rate meanwhile has moved the base by as much.
    double now = optimizer_rate(run->optimizer);
    double moved = run->base_rate * now / run->set_rate;
    if (now != run->set_rate && isfinite(moved)) run->base_rate = moved;
    run->set_rate = scheduler_rate(&run->scheduler, run->base_rate, run->done);
    return optimizer_set_rate(run->optimizer, run->set_rate);
}

// The number that epochs are judged by: validate's value, else the loss. False after a failure.
static bool judge(LearnRun *run, double loss, double *out) {
    const Code *validate = run->code->validate;
    *out = loss;
    if (!validate) return true;
    bool enabled = tape_set_enabled(false);
    RandomTraining training = random_set_training((RandomTraining){.dropout = 0.5});
    Value value = EVAL(run->frame, validate);
    random_set_training(training);
    tape_set_enabled(enabled);
    if (failed(value)) return false;
    Status status = STATUS_OK;
    if (value.kind == VALUE_TENSOR && tensor_count(value.as.tensor) == 1) {
        double numbers[1];
        status = tensor_read_floats(value.as.tensor, numbers);
        *out = numbers[0];
    } else {
        status = value_to_double(value, "validate", out);
    }
    value_release(value);
    if (status != STATUS_OK) error_place(validate->span);
    return status == STATUS_OK;
}

static Status note_best(LearnRun *run, double judged) {
    bool before = !run->code->validate && run->batch_size == 0 && !run->code->has_loop;
    bool better = judged < run->best;
    if (better) run->best = judged;
    run->waited = better ? 0 : run->waited + 1;
    if (run->patience == 0) return STATUS_OK;
    run->stop = run->waited >= run->patience;
    return better && !before ? learn_keep_best(run) : STATUS_OK;
}

bool learn_end_epoch(LearnRun *run) {
    double loss = run->loss_sum / run->weight, norm = run->norm_sum / run->weight, judged;
    double rate = optimizer_rate(run->optimizer);
    if (run->done == 0) run->first_loss = loss;
    run->last_loss = loss;
    run->done++;
    run->steps = 0;
    run->loss_sum = run->norm_sum = run->weight = 0;
    list_push(run->losses, value_float(loss));
    list_push(run->norms, value_float(norm));
    if (!judge(run, loss, &judged)) return false;
    if (run->has_scheduler) scheduler_note(&run->scheduler, judged);
    Status status = note_best(run, judged);
    if (status == STATUS_OK) status = set_rate(run);
    if (status != STATUS_OK) {
        error_place(run->code->head.span);
        return false;
    }
    learn_report_epoch(run, loss, norm, rate);
    return true;
}

// --- the block

static Value make_result(LearnRun *run) {
    Value result = value_struct(&result_type);
    Value *fields = result.as.instance->fields;
    fields[0] = value_retain((Value){.kind = VALUE_LIST, .as.list = run->losses});
    fields[1] = value_retain((Value){.kind = VALUE_LIST, .as.list = run->norms});
    fields[2] = value_int(run->done);
    fields[3] = run->done > 0 ? value_float(run->best) : value_none();
    return result;
}

static Value run_block(LearnRun *run) {
    Status status = set_rate(run);
    if (status != STATUS_OK) return fail_at(run->code->head.span);
    learn_report_begin(run);
    Value value = run->code->objective ? learn_run_epochs(run) : learn_run_body(run);
    if (!failed(value) && run->patience > 0 && learn_restore_best(run) != STATUS_OK)
        value = fail_at(run->code->head.span);
    if (failed(value)) {
        learn_progress_clear();
        return value;
    }
    learn_report_end(run);
    if (run->done > 0) learn_note_unreached(run);
    return make_result(run);
}

static void leave(LearnRun *run) {
    const LearnCode *code = run->code;
    if (run->optimizer && run->has_scheduler) {
        Status status = optimizer_set_rate(run->optimizer, run->base_rate);
        ASSERT(status == STATUS_OK); // the rate was accepted before
    }
    tape_zero_gradients();
    learn_forget(run);
    learn_release_whole(run);
    for (size_t i = code->batch_count; i-- > 0;)
        slots_release(run->frame, code->batches[i].slot, 1);
    slots_release(run->frame, code->optimizer_slot, 1);
    slots_release(run->frame, code->epochs_slot, 1);
    value_release(run->optimizer_value);
}

static Value eval_learn(Frame *frame, const Code *code) {
    Value losses = value_list(0), norms = value_list(0);
    LearnRun run = {.outer = running,
                    .code = (const LearnCode *)code,
                    .frame = frame,
                    .losses = losses.as.list,
                    .norms = norms.as.list,
                    .optimizer_value = value_absent(),
                    .best = INFINITY};
    RandomTraining training = {.active = true, .dropout = 0.5};
    Value result = value_fail();
    if (read_settings(&run, &training)) {
        running = &run;
        RandomTraining outer = random_set_training(training);
        bool enabled = tape_set_enabled(true);
        result = run_block(&run);
        tape_set_enabled(enabled);
        random_set_training(outer);
        running = run.outer;
    }
    // What unwinds keeps its words while things are let go.
    leave(&run);
    value_release(losses);
    value_release(norms);
    return result;
}

static const Code *lower_setting(Lowering *lowering, const Node *node, const char *name) {
    const Setting *setting = learn_setting(node, name);
    return setting ? lower(lowering, setting->value) : NULL;
}

static void lower_batch(Lowering *lowering, const Node *node, LearnCode *code) {
    const Setting *batch = learn_setting(node, "batch");
    if (!batch) return;
    bool tuple = batch->of->kind == NODE_TUPLE;
    code->batch_count = node->as.learn.batch_count;
    code->batches = lower_array(lowering, code->batch_count, sizeof *code->batches);
    for (size_t i = 0; i < code->batch_count; i++) {
        const Node *source = tuple ? batch->of->as.list.items[i] : batch->of;
        Binding *binding = node->as.learn.batch[i];
        code->batches[i] = (BatchCode){.source = lower(lowering, source),
                                       .variable = lower_variable(lowering, binding, source->span),
                                       .name = lower_word(lowering, &binding->word),
                                       .slot = binding->slot};
    }
}

const Code *lower_learn(Lowering *lowering, const Node *node) {
    LearnCode *code = LOWER_NEW(lowering, LearnCode, eval_learn, node->span);
    code->optimizer = lower_setting(lowering, node, "optimizer");
    code->epochs = lower_setting(lowering, node, "epochs");
    code->scheduler = lower_setting(lowering, node, "scheduler");
    code->clip = lower_setting(lowering, node, "clip_grad_norm");
    code->batch_size = lower_setting(lowering, node, "batch");
    code->shuffle = lower_setting(lowering, node, "shuffle");
    code->report_every = lower_setting(lowering, node, "report_every");
    code->patience = lower_setting(lowering, node, "patience");
    code->dropout = lower_setting(lowering, node, "dropout");
    lower_batch(lowering, node, code);
    bool in_learn = lowering->in_learn;
    lowering->in_learn = !learn_setting(node, "objective");
    code->body = lower(lowering, node->as.learn.body);
    lowering->in_learn = in_learn;
    code->objective = lower_setting(lowering, node, "objective");
    code->validate = lower_setting(lowering, node, "validate");
    code->epochs_name = lower_variable(lowering, node->as.learn.epochs, node->span);
    code->optimizer_name = lower_variable(lowering, node->as.learn.optimizer, node->span);
    code->epochs_slot = node->as.learn.epochs->slot;
    code->optimizer_slot = node->as.learn.optimizer->slot;
    code->has_loop = node->as.learn.has_loop;
    return &code->head;
}
