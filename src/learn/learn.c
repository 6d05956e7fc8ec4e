// Learn blocks: lowering, the settings, and the epochs of both forms.
#include "learn/learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "learn/learn_run.h"
#include "value/convert.h"
#include "value/handles.h"
#include "value/object.h"

static const char *const result_fields[] = {"losses", "grad_norms", "validations", "epochs",
                                            "best",   "best_epoch", "stopped"};
enum { RESULT_FIELDS = sizeof result_fields / sizeof *result_fields };
static const StructType result_type = {
    .name = "Training", .field_count = RESULT_FIELDS, .field_names = result_fields};

static LearnRun *running;

LearnRun *learn_running(void) {
    return running;
}

// --- settings

// The value of a setting's code, a new reference; ABSENT where it is not given.
static Value setting_eval(LearnRun *run, const Code *code) {
    return code ? EVAL(run->frame, code) : value_absent();
}

static bool setting_int(LearnRun *run, SettingId id, int64_t lowest, int64_t *out) {
    const Code *code = run->code->settings[id];
    const char *name = setting_rows[id].name;
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

static bool setting_double(LearnRun *run, SettingId id, double *out) {
    const Code *code = run->code->settings[id];
    const char *name = setting_rows[id].name;
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

static bool setting_bool(LearnRun *run, SettingId id, bool *out) {
    const Code *code = run->code->settings[id];
    const char *name = setting_rows[id].name;
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
    const Code *setting = code->settings[SETTING_optimizer];
    run->optimizer_value = setting_eval(run, setting);
    if (failed(run->optimizer_value)) return false;
    void *payload;
    if (value_to_handle(run->optimizer_value, &handle_optimizer, "optimizer", &payload) !=
            STATUS_OK ||
        optimizer_refresh(payload) != STATUS_OK) {
        error_place(setting->span);
        return false;
    }
    run->optimizer = payload;
    run->base_rate = run->set_rate = optimizer_rate(run->optimizer);
    variable_set(run->frame, code->optimizer_name, value_retain(run->optimizer_value));
    return true;
}

static bool setting_scheduler(LearnRun *run) {
    Value value = setting_eval(run, run->code->settings[SETTING_scheduler]);
    if (value.kind == VALUE_ABSENT) return true;
    if (failed(value)) return false;
    run->scheduler_value = value;
    void *payload;
    if (value_to_handle(value, &handle_scheduler, "scheduler", &payload) != STATUS_OK) {
        error_place(run->code->settings[SETTING_scheduler]->span);
        return false;
    }
    run->scheduler = payload;
    scheduler_begin(run->scheduler, run->epochs);
    return true;
}

static bool setting_dropout(LearnRun *run, RandomTraining *training) {
    if (!setting_double(run, SETTING_dropout, &training->dropout)) return false;
    if (training->dropout < 1) return true;
    fail(STATUS_VALUE, "dropout is %g; it must be less than 1", training->dropout);
    error_place(run->code->settings[SETTING_dropout]->span);
    return false;
}

static bool read_settings(LearnRun *run, RandomTraining *training) {
    const LearnCode *code = run->code;
    if (!setting_int(run, SETTING_epochs, 0, &run->epochs)) return false;
    variable_set(run->frame, code->epochs_name,
                 code->settings[SETTING_epochs] ? value_int(run->epochs) : value_absent());
    if (!setting_optimizer(run) || !setting_scheduler(run)) return false;
    run->report_every = run->epochs >= 10 ? run->epochs / 10 : run->epochs > 0;
    return setting_double(run, SETTING_clip_grad_norm, &run->clip) &&
           setting_int(run, SETTING_batch, 1, &run->batch_size) &&
           setting_bool(run, SETTING_shuffle, &run->shuffle) &&
           setting_int(run, SETTING_report_every, 0, &run->report_every) &&
           setting_int(run, SETTING_patience, 1, &run->patience) &&
           setting_dropout(run, training) && learn_take_whole(run);
}

// --- epochs

static Status set_rate(LearnRun *run) {
    if (!run->scheduler) return STATUS_OK;
    // A script that set another rate meanwhile has moved the base by as much.
    double now = optimizer_rate(run->optimizer);
    double moved = run->base_rate * now / run->set_rate;
    if (now != run->set_rate && isfinite(moved)) run->base_rate = moved;
    run->set_rate = scheduler_rate(run->scheduler, run->base_rate);
    return optimizer_set_rate(run->optimizer, run->set_rate);
}

static Status read_judged(Value value, double *out) {
    if (value.kind != VALUE_TENSOR || tensor_count(value.as.tensor) != 1)
        return value_to_double(value, "validate", out);
    return tensor_read_floats(value.as.tensor, out);
}

// What validate gives, without gradients and dropout, and with the names of batches whole.
static bool validate(LearnRun *run, double *out) {
    const Code *setting = run->code->settings[SETTING_validate];
    learn_show_whole(run);
    bool enabled = tape_set_enabled(false);
    RandomTraining training = random_set_training((RandomTraining){.dropout = 0.5});
    Value value = EVAL(run->frame, setting);
    random_set_training(training);
    tape_set_enabled(enabled);
    if (failed(value)) return false;
    Status status = read_judged(value, out);
    value_release(value);
    if (status != STATUS_OK) error_place(setting->span);
    return status == STATUS_OK;
}

// The number that epochs are judged by: validate's value, else the loss. False after a failure.
static bool judge(LearnRun *run, double loss) {
    run->judged = loss;
    if (!run->code->settings[SETTING_validate]) return true;
    if (!validate(run, &run->judged)) return false;
    list_push(run->validations, value_float(run->judged));
    return true;
}

static Status note_best(LearnRun *run) {
    bool better = run->judged < run->best;
    if (better) {
        run->best = run->judged;
        run->best_epoch = run->done;
    }
    run->waited = better ? 0 : run->waited + 1;
    if (run->patience == 0) return STATUS_OK;
    run->stop = run->waited >= run->patience;
    return better && !learn_judged_before(run) ? learn_keep_best(run) : STATUS_OK;
}

bool learn_end_epoch(LearnRun *run) {
    double loss = run->loss_sum / run->weight, norm = run->norm_sum / run->weight;
    double rate = optimizer_rate(run->optimizer);
    if (run->done == 0) run->first_loss = loss;
    run->last_loss = loss;
    run->done++;
    run->steps = 0;
    run->loss_sum = run->norm_sum = run->weight = 0;
    list_push(run->losses, value_float(loss));
    list_push(run->norms, value_float(norm));
    if (!judge(run, loss)) return false;
    if (run->scheduler) scheduler_note(run->scheduler, run->judged);
    Status status = note_best(run);
    if (status == STATUS_OK) status = set_rate(run);
    if (status != STATUS_OK) {
        error_place(run->code->head.span);
        return false;
    }
    learn_report_epoch(run, loss, norm, rate);
    return true;
}

// --- the block

static Value list_value(List *list) {
    return value_retain((Value){.kind = VALUE_LIST, .as.list = list});
}

static Value make_result(LearnRun *run) {
    Value result = value_struct(&result_type);
    const Value fields[RESULT_FIELDS] = {
        list_value(run->losses),
        list_value(run->norms),
        list_value(run->validations),
        value_int(run->done),
        run->best_epoch > 0 ? value_float(run->best) : value_none(),
        run->best_epoch > 0 ? value_int(run->best_epoch) : value_none(),
        value_cstring(run->stop ? "patience" : "epochs"),
    };
    memcpy(result.as.instance->fields, fields, sizeof fields);
    return result;
}

// Variables around the block that an earlier one has left take the values of the body's.
static void give_names(const LearnRun *run) {
    const LearnCode *code = run->code;
    for (size_t i = 0; i < code->own.count; i++) {
        const Value *value = variable_peek(run->frame, code->own.items[i]);
        if (value) variable_set(run->frame, code->kept.items[i], value_retain(*value));
    }
}

static Value run_block(LearnRun *run) {
    Status status = set_rate(run);
    if (status != STATUS_OK) return fail_at(run->code->head.span);
    learn_report_begin(run);
    for (size_t i = 0; i < run->code->once.count; i++)
        variable_set(run->frame, run->code->once.items[i], value_absent());
    bool objective = run->code->settings[SETTING_objective] != NULL;
    Value value = objective ? learn_run_epochs(run) : learn_run_body(run);
    if (!failed(value) && run->patience > 0 && learn_restore_best(run) != STATUS_OK)
        value = fail_at(run->code->head.span);
    if (failed(value)) {
        learn_progress_clear();
        return value;
    }
    give_names(run);
    learn_report_end(run);
    if (run->done > 0) learn_note_unreached(run);
    return make_result(run);
}

static void leave(LearnRun *run) {
    const LearnCode *code = run->code;
    if (run->optimizer && run->scheduler) {
        Status status = optimizer_set_rate(run->optimizer, run->base_rate);
        ASSERT(status == STATUS_OK); // the rate was accepted before
    }
    tape_zero_gradients();
    learn_forget(run);
    learn_release_whole(run);
    for (size_t i = 0; i < code->local_count; i++) slots_release(run->frame, code->locals[i], 1);
    value_release(run->scheduler_value);
    value_release(run->optimizer_value);
}

static Value eval_learn(Frame *frame, const Code *code) {
    Value losses = value_list(0), norms = value_list(0), validations = value_list(0);
    LearnRun run = {.outer = running,
                    .code = (const LearnCode *)code,
                    .frame = frame,
                    .losses = losses.as.list,
                    .norms = norms.as.list,
                    .validations = validations.as.list,
                    .optimizer_value = value_absent(),
                    .scheduler_value = value_absent(),
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
    value_release(validations);
    return result;
}

static void lower_settings(Lowering *lowering, const Node *node, LearnCode *code, bool after) {
    for (int i = 0; i < SETTING_COUNT; i++) {
        const Setting *setting = learn_setting(node, (SettingId)i);
        if (setting && (setting_rows[i].place == SETTING_AFTER) == after)
            code->settings[i] = lower(lowering, setting->value);
    }
}

static void lower_batch(Lowering *lowering, const Node *node, LearnCode *code) {
    const Setting *batch = learn_setting(node, SETTING_batch);
    if (!batch) return;
    bool tuple = batch->of->kind == NODE_TUPLE;
    code->batch_count = node->as.learn.batch_count;
    code->batches = lower_array(lowering, code->batch_count, sizeof *code->batches);
    for (size_t i = 0; i < code->batch_count; i++) {
        const Node *source = tuple ? batch->of->as.list.items[i] : batch->of;
        Binding *binding = node->as.learn.batch[i];
        code->batches[i] = (BatchCode){.source = lower(lowering, source),
                                       .variable = lower_variable(lowering, binding, source->span),
                                       .name = lower_word(lowering, &binding->word)};
    }
}

static VariableList lower_variables(Lowering *lowering, const BindingList *list, Span span) {
    VariableList out = {lower_array(lowering, list->count, sizeof *out.items), list->count};
    for (size_t i = 0; i < list->count; i++)
        out.items[i] = lower_variable(lowering, list->items[i], span);
    return out;
}

static void lower_names(Lowering *lowering, const Node *node, LearnCode *code) {
    Span span = node->span;
    Binding *epoch = node->as.learn.epoch, *step = node->as.learn.step;
    code->epochs_name = lower_variable(lowering, node->as.learn.epochs, span);
    code->optimizer_name = lower_variable(lowering, node->as.learn.optimizer, span);
    code->epoch_name = epoch ? lower_variable(lowering, epoch, span) : NULL;
    code->step_name = step ? lower_variable(lowering, step, span) : NULL;
    code->own = lower_variables(lowering, &node->as.learn.own, span);
    code->kept = lower_variables(lowering, &node->as.learn.kept, span);
    code->once = lower_variables(lowering, &node->as.learn.once, span);
    code->local_count = node->as.learn.locals.count;
    code->locals = lower_array(lowering, code->local_count, sizeof *code->locals);
    for (size_t i = 0; i < code->local_count; i++)
        code->locals[i] = node->as.learn.locals.items[i]->slot;
}

const Code *lower_learn(Lowering *lowering, const Node *node) {
    LearnCode *code = LOWER_NEW(lowering, LearnCode, eval_learn, node->span);
    lower_settings(lowering, node, code, false);
    lower_batch(lowering, node, code);
    bool in_learn = lowering->in_learn;
    lowering->in_learn = !learn_setting(node, SETTING_objective);
    code->body = lower(lowering, node->as.learn.body);
    lowering->in_learn = in_learn;
    lower_settings(lowering, node, code, true);
    lower_names(lowering, node, code);
    code->has_loop = node->as.learn.has_loop;
    return &code->head;
}
