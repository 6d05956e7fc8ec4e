// Learn blocks: lowering, the settings, and the epochs of both forms.
#include "learn/learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/foretell.h"
#include "eval/upper.h"
#include "learn/learn_run.h"
#include "ranks/sharded.h"
#include "tensor/join.h"
#include "tensor/parameter.h"
#include "tensor/precision.h"
#include "value/object.h"

static const char *const result_fields[] = {"losses", "grad_norms", "validations", "rates",
                                            "epochs", "best",       "best_epoch",  "stopped"};
enum { RESULT_FIELDS = sizeof result_fields / sizeof *result_fields };
const StructType learn_result_type = {
    .name = "Training", .field_count = RESULT_FIELDS, .field_names = result_fields};

Learning *learning_new(void) {
    return memory_allocate_zeroed(1, sizeof(Learning));
}

void learning_free(Learning *learning) {
    VECTOR_FREE(&learning->unreached);
    free(learning->needs);
    free(learning);
}

void learn_note_needs(const char *words) {
    Learning *learning = learn_state();
    free(learning->needs);
    learning->needs = memory_copy_string(words, strlen(words));
}

LearnRun *learn_running(void) {
    return learn_state()->running;
}

// --- epochs

// What the script gets of a number that the block found.
static Value found(const LearnRun *run, Value number) {
    return run->guessed ? value_measured(number.kind, origin_current.at) : number;
}

static void note_number(const LearnRun *run, List *list, double number) {
    list_push(list, found(run, value_float(number)));
}

static Status read_judged(LearnRun *run, Value value, double *out) {
    if (value.kind != VALUE_TENSOR || tensor_count(value.as.tensor) != 1)
        return value_to_double(value, "validate", out);
    uint64_t reads = foretell_reads();
    bool before = foretell_ignore_reads(true); // it ends nothing by itself
    Status status = tensor_read_floats(value.as.tensor, out);
    foretell_ignore_reads(before);
    run->guessed |= foretell_reads() != reads;
    return status;
}

// What validate gives, without gradients and dropout, and with the names of batches whole.
static Value eval_validate(LearnRun *run) {
    TensorArray before;
    bool enabled = tape_set_enabled(false);
    RandomTraining training = random_set_training((RandomTraining){.dropout = 0.5});
    Status status = learn_show_averages(run, &before);
    Value value = status == STATUS_OK ? EVAL(run->frame, run->code->settings[SETTING_validate])
                                      : value_fail();
    learn_hide_averages(run, &before);
    random_set_training(training);
    tape_set_enabled(enabled);
    return value;
}

static bool validate(LearnRun *run, double *out) {
    learn_show_whole(run);
    Value value = eval_validate(run);
    if (failed(value)) return false;
    Status status = read_judged(run, value, out);
    value_release(value);
    if (status != STATUS_OK) error_place(run->code->settings[SETTING_validate]->span);
    return status == STATUS_OK;
}

// The number that epochs are judged by: validate's value, else the loss. False after a failure.
static bool judge(LearnRun *run, double loss) {
    run->judged = loss;
    if (!run->code->settings[SETTING_validate]) return true;
    if (!validate(run, &run->judged)) return false;
    if (learn_judge_together(run) != STATUS_OK) {
        error_place(run->code->settings[SETTING_validate]->span);
        return false;
    }
    note_number(run, run->validations, run->judged);
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
    if (run->guessed) foretell_unknown();
    run->stop = run->waited >= run->patience && !run->guessed; // at most all epochs are made
    return better && !learn_judged_before(run) ? learn_keep_best(run) : STATUS_OK;
}

// An interrupt during validate leaves the epoch at its end.
bool learn_end_epoch(LearnRun *run) {
    double loss = run->loss_sum / run->weight;
    double norm = run->norm_weight > 0 ? run->norm_sum / run->norm_weight : INFINITY;
    double rate = run->steps > 0 ? run->rate : optimizer_rate(run->optimizer);
    if (!judge(run, loss)) return false;
    if (run->done == 0) run->first_loss = loss;
    run->last_loss = loss;
    run->done++;
    run->row = run->steps = 0;
    run->loss_sum = run->norm_sum = run->weight = run->norm_weight = 0;
    note_number(run, run->losses, loss);
    note_number(run, run->norms, norm);
    note_number(run, run->rates, rate);
    bool scheduled = run->scheduler && !run->per_step;
    if (scheduled) scheduler_note(run->scheduler, run->judged);
    Status status = note_best(run);
    if (status == STATUS_OK && scheduled) status = learn_set_rate(run);
    if (status == STATUS_OK) status = learn_watch(run, NULL);
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

static const char *ending_of(const LearnRun *run) {
    return run->interrupted ? "interrupt" : run->stop ? "patience" : "epochs";
}

static Value make_result(LearnRun *run) {
    Value result = value_struct(&learn_result_type);
    const Value fields[RESULT_FIELDS] = {
        list_value(run->losses),
        list_value(run->norms),
        list_value(run->validations),
        list_value(run->rates),
        value_int(run->done),
        run->best_epoch > 0 ? found(run, value_float(run->best)) : value_none(),
        run->best_epoch > 0 ? found(run, value_int(run->best_epoch)) : value_none(),
        value_cstring(ending_of(run)),
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

// The page says that the block has failed, and the error stays what it is.
static void watch_failure(LearnRun *run) {
    ErrorRecord error = *error_current();
    Status status = learn_watch(run, "error");
    if (status == STATUS_OK || error.code != STATUS_OK) *error_current() = error;
}

static Value run_block(LearnRun *run) {
    Status status = learn_shard(run);
    if (status == STATUS_OK) status = learn_resume(run);
    if (status == STATUS_OK && run->pieces > 0) status = learn_begin_distributed(run);
    if (status == STATUS_OK) status = learn_set_rate(run);
    if (status != STATUS_OK) return fail_at(run->code->head.span);
    learn_report_begin(run);
    for (size_t i = 0; i < run->code->once.count; i++)
        variable_set(run->frame, run->code->once.items[i], value_absent());
    bool objective = run->code->settings[SETTING_objective] != NULL;
    Value value = objective ? learn_run_epochs(run) : learn_run_body(run);
    if (!failed(value) &&
        (learn_save(run) != STATUS_OK || learn_finish(run) != STATUS_OK ||
         learn_join_parameters(run) != STATUS_OK || learn_watch(run, ending_of(run)) != STATUS_OK))
        value = fail_at(run->code->head.span);
    if (failed(value)) {
        learn_progress_clear();
        watch_failure(run);
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
    if (run->optimizer) optimizer_clear_groups(run->optimizer);
    if (run->optimizer) optimizer_set_parts(run->optimizer, NULL);
    VECTOR_FREE(&run->group_rates);
    sharded_set_release(run->sharded);
    tensor_array_release(&run->train);
    tensor_array_release(&run->freeze);
    tape_zero_gradients();
    learn_forget(run);
    learn_forget_notes(run);
    learn_release_whole(run);
    for (size_t i = 0; i < code->local_count; i++) slots_release(run->frame, code->locals[i], 1);
    value_release(run->resume_path);
    value_release(run->save_path);
    value_release(run->watch_path);
    value_release(run->scheduler_value);
    value_release(run->optimizer_value);
}

static Value eval_learn(Frame *frame, const Code *code) {
    Value losses = value_list(0), norms = value_list(0), validations = value_list(0);
    Value rates = value_list(0);
    LearnRun run = {.outer = learn_running(),
                    .code = (const LearnCode *)code,
                    .frame = frame,
                    .losses = losses.as.list,
                    .norms = norms.as.list,
                    .validations = validations.as.list,
                    .rates = rates.as.list,
                    .optimizer_value = value_absent(),
                    .scheduler_value = value_absent(),
                    .save_path = value_absent(),
                    .watch_path = value_absent(),
                    .resume_path = value_absent(),
                    .best = INFINITY};
    RandomTraining training = {.active = true, .dropout = 0.5};
    Value result = value_fail();
    if (learn_read_settings(&run, &training)) {
        learn_state()->running = &run;
        // Ranks that make steps together end together (learn_run_pieces).
        bool together = run.pieces > 0 && ranks_count() > 1;
        if (together) runtime_hold_signals(runtime_current, true);
        RandomTraining outer = random_set_training(training);
        bool enabled = tape_set_enabled(true);
        DType precision = precision_set(run.precision);
        result = run_block(&run);
        if (together) runtime_hold_signals(runtime_current, false);
        precision_set(precision);
        tape_set_enabled(enabled);
        random_set_training(outer);
        learn_state()->running = run.outer;
    }
    bool ends = run.interrupted && !frame->interp->keeps_interrupted;
    // What unwinds keeps its words while things are let go.
    leave(&run);
    value_release(losses);
    value_release(norms);
    value_release(rates);
    value_release(validations);
    if (!ends || failed(result)) return result;
    value_release(result);
    interp_interrupt(frame->interp);
    return interp_fail_interrupted(code->span);
}

// A literal of parameters of rank 0 would be one tensor of their numbers.
static const Code *lower_setting(Lowering *lowering, SettingId id, const Node *value) {
    bool names = id == SETTING_train || id == SETTING_freeze;
    return names && value->kind == NODE_LIST ? lower_tuple(lowering, value)
                                             : lower(lowering, value);
}

static void lower_settings(Lowering *lowering, const Node *node, LearnCode *code, bool after) {
    for (int i = 0; i < SETTING_COUNT; i++) {
        const Setting *setting = learn_setting(node, (SettingId)i);
        if (setting && (setting_rows[i].place == SETTING_AFTER) == after)
            code->settings[i] = lower_setting(lowering, (SettingId)i, setting->value);
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
    code->visible = lower_variables(lowering, &node->as.learn.visible, span);
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
