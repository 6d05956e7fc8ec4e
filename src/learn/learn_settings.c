// The settings of a learn block: evaluated once, in front of its first epoch.
#include <math.h>
#include <string.h>

#include "base/file_replace.h"
#include "learn/learn_run.h"
#include "model/tensor_file.h"
#include "ranks/ranks.h"
#include "tensor/join.h"
#include "value/convert.h"
#include "value/handles.h"
#include "value/print.h"
#include "value/walk.h"

enum { LOSS_SCALE_FIRST = 1 << 16 };

// The value of a setting's code, a new reference; ABSENT where it is not given.
static Value setting_eval(LearnRun *run, const Code *code) {
    return code ? EVAL(run->frame, code) : value_absent();
}

static bool setting_read(const LearnRun *run, SettingId id, Status status) {
    if (status != STATUS_OK) error_place(run->code->settings[id]->span);
    return status == STATUS_OK;
}

static bool setting_int(LearnRun *run, SettingId id, int64_t lowest, int64_t *out) {
    const char *name = setting_rows[id].name;
    SCOPED_VALUE(value) = setting_eval(run, run->code->settings[id]);
    if (failed(value) || value.kind == VALUE_ABSENT) return !failed(value);
    Status status = value_to_int(value, name, out);
    if (status == STATUS_OK && *out < lowest)
        status = fail(STATUS_VALUE, "%s is %lld; it must be at least %lld", name, (long long)*out,
                      (long long)lowest);
    return setting_read(run, id, status);
}

static bool setting_double(LearnRun *run, SettingId id, double *out) {
    const char *name = setting_rows[id].name;
    SCOPED_VALUE(value) = setting_eval(run, run->code->settings[id]);
    if (failed(value) || value.kind == VALUE_ABSENT) return !failed(value);
    Status status = value_to_double(value, name, out);
    if (status == STATUS_OK && !(*out > 0))
        status = fail(STATUS_VALUE, "%s is %g; it must be greater than 0", name, *out);
    return setting_read(run, id, status);
}

static bool setting_bool(LearnRun *run, SettingId id, bool *out) {
    SCOPED_VALUE(value) = setting_eval(run, run->code->settings[id]);
    if (failed(value) || value.kind == VALUE_ABSENT) return !failed(value);
    return setting_read(run, id, value_to_bool(value, setting_rows[id].name, out));
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
    return true;
}

static bool setting_dropout(LearnRun *run, RandomTraining *training) {
    if (!setting_double(run, SETTING_dropout, &training->dropout)) return false;
    if (training->dropout < 1) return true;
    fail(STATUS_VALUE, "dropout is %g; it must be less than 1", training->dropout);
    error_place(run->code->settings[SETTING_dropout]->span);
    return false;
}

static bool setting_ema(LearnRun *run) {
    if (!setting_double(run, SETTING_ema, &run->ema)) return false;
    if (run->ema < 1) return true;
    fail(STATUS_VALUE, "ema is %g; it must be less than 1", run->ema);
    error_place(run->code->settings[SETTING_ema]->span);
    return false;
}

static bool setting_precision(LearnRun *run) {
    const Code *code = run->code->settings[SETTING_precision];
    Value value = setting_eval(run, code);
    run->precision = DTYPE_COUNT;
    run->loss_scale = 1;
    if (value.kind == VALUE_ABSENT) return true;
    if (failed(value)) return false;
    Status status = value_to_dtype(value, "precision", &run->precision);
    value_release(value);
    bool narrow = run->precision == DTYPE_FLOAT16 || run->precision == DTYPE_BFLOAT16;
    if (status == STATUS_OK && !narrow)
        status = fail(STATUS_VALUE, "precision is %s; it must be float16 or bfloat16",
                      dtype_name(run->precision));
    if (run->precision == DTYPE_FLOAT16) run->loss_scale = LOSS_SCALE_FIRST;
    if (status != STATUS_OK) error_place(code->span);
    return status == STATUS_OK;
}

static bool setting_path(LearnRun *run, SettingId id, Value *out) {
    const Code *code = run->code->settings[id];
    *out = setting_eval(run, code);
    if (failed(*out)) return false;
    if (out->kind == VALUE_NONE) *out = value_absent(); // as if it were not given
    if (out->kind == VALUE_ABSENT || out->kind == VALUE_STRING) return true;
    fail_kind(setting_rows[id].name, "a string", *out);
    error_place(code->span);
    return false;
}

// Whether the files can be written is known before anything is trained for them.
static Status check_save(const LearnRun *run, const char *path) {
    const TensorFormat *format;
    TRY(tensor_format_find_named(path, &format));
    return learn_writes_files(run) ? file_check_place(path) : STATUS_OK;
}

static Status check_watch(const LearnRun *run, const char *path) {
    size_t length = strlen(path), ending = strlen(".html");
    if (length <= ending || strcmp(path + length - ending, ".html") != 0)
        return fail(STATUS_VALUE, "watch: %s: the names of pages end in .html", path);
    return learn_writes_files(run) ? file_check_place(path) : STATUS_OK;
}

static bool setting_file(LearnRun *run, SettingId id, Value *out,
                         Status (*check)(const LearnRun *run, const char *path)) {
    if (!setting_path(run, id, out)) return false;
    if (out->kind == VALUE_ABSENT || check(run, out->as.string->bytes) == STATUS_OK) return true;
    error_place(run->code->settings[id]->span);
    return false;
}

// --- what is trained

static bool setting_parameters(LearnRun *run, SettingId id, TensorArray *out) {
    const Code *code = run->code->settings[id];
    Value value = setting_eval(run, code);
    if (value.kind == VALUE_ABSENT) return true;
    if (failed(value)) return false;
    Status status = parameters_of(value, "learn", setting_rows[id].name, out);
    value_release(value);
    if (status != STATUS_OK) error_place(code->span);
    return status == STATUS_OK;
}

static bool among(const TensorArray *array, const Tensor *parameter) {
    for (size_t i = 0; i < array->count; i++)
        if (array->items[i] == parameter) return true;
    return false;
}

bool learn_trains(const LearnRun *run, const Tensor *parameter) {
    const TensorArray *own = optimizer_parameters(run->optimizer);
    bool chosen = run->code->settings[SETTING_train] ? among(&run->train, parameter)
                                                     : !own || among(own, parameter);
    return chosen && !among(&run->freeze, parameter);
}

static Status group_number(const Dict *dict, const char *key, double *out) {
    Value value = dict_get_word(dict, key);
    *out = NAN;
    if (value.kind == VALUE_ABSENT) return STATUS_OK;
    TRY(value_to_double(value, key, out));
    if (*out >= 0 && isfinite(*out)) return STATUS_OK;
    return fail(STATUS_VALUE, "groups: %s is %g; it must be a number from 0 on", key, *out);
}

static Status check_group(Value group) {
    static const char *const keys[] = {"params", "lr", "weight_decay"};
    if (group.kind != VALUE_DICT) return fail_kind("a group", "a dictionary", group);
    for (size_t i = 0; i < dict_count(group.as.dict); i++) {
        Value key, item;
        dict_entry(group.as.dict, i, &key, &item);
        bool known = false;
        for (size_t j = 0; key.kind == VALUE_STRING && j < 3; j++)
            known = known || strcmp(key.as.string->bytes, keys[j]) == 0;
        if (!known)
            return fail(STATUS_NAME, "a group has params, lr and weight_decay, but not %s",
                        value_text(key).text);
    }
    if (dict_get_word(group.as.dict, "params").kind != VALUE_ABSENT) return STATUS_OK;
    return fail(STATUS_NAME, "a group needs params");
}

static Status check_apart(const LearnRun *run, const TensorArray *parameters) {
    for (size_t i = 0; i < parameters->count; i++)
        if (optimizer_group_of(run->optimizer, parameters->items[i]))
            return fail(STATUS_VALUE, "groups: a parameter %s is in two of them",
                        tensor_type_name(parameters->items[i]).text);
    return STATUS_OK;
}

static Status add_group(LearnRun *run, Value value) {
    OptimizerGroup group = {0};
    TRY(check_group(value));
    TRY(group_number(value.as.dict, "lr", &group.lr));
    TRY(group_number(value.as.dict, "weight_decay", &group.weight_decay));
    TRY(parameters_of(dict_get_word(value.as.dict, "params"), "groups", "params",
                      &group.parameters));
    Status status = check_apart(run, &group.parameters);
    if (status != STATUS_OK) {
        tensor_array_release(&group.parameters);
        return status;
    }
    optimizer_add_group(run->optimizer, &group);
    VECTOR_PUSH(&run->group_rates, group.lr);
    return STATUS_OK;
}

static bool setting_groups(LearnRun *run) {
    const Code *code = run->code->settings[SETTING_groups];
    Value value = setting_eval(run, code);
    if (value.kind == VALUE_ABSENT) return true;
    if (failed(value)) return false;
    bool many = value.kind == VALUE_LIST || value.kind == VALUE_TUPLE;
    Status status = many ? STATUS_OK : fail_kind("groups", "a list of dictionaries", value);
    for (size_t i = 0; status == STATUS_OK && i < value.as.list->count; i++)
        status = add_group(run, value.as.list->items[i]);
    value_release(value);
    if (status != STATUS_OK) error_place(code->span);
    return status == STATUS_OK;
}

// --- schedules

static bool setting_schedule_per(LearnRun *run) {
    const Code *code = run->code->settings[SETTING_schedule_per];
    Value value = setting_eval(run, code);
    if (value.kind == VALUE_ABSENT) return true;
    if (failed(value)) return false;
    const char *word = value.kind == VALUE_STRING ? value.as.string->bytes : "";
    run->per_step = strcmp(word, "step") == 0;
    bool known = run->per_step || strcmp(word, "epoch") == 0;
    if (!known) {
        fail(STATUS_VALUE, "schedule_per is %s; it must be \"step\" or \"epoch\"",
             value_text(value).text);
        error_place(code->span);
    }
    value_release(value);
    return known;
}

// --- ranks

// A batch is cut into more pieces than there are ranks, so that other numbers of ranks make the
// same sums.
static bool setting_distribute(LearnRun *run) {
    enum { PIECES = 8 };
    const LearnCode *code = run->code;
    Value value = setting_eval(run, code->settings[SETTING_distribute]);
    if (value.kind == VALUE_ABSENT) return true;
    if (failed(value)) return false;
    bool data = value.kind == VALUE_STRING && strcmp(value.as.string->bytes, "data") == 0;
    Status status = STATUS_OK;
    if (!data)
        status = fail(STATUS_VALUE, "distribute is %s; it must be data", value_text(value).text);
    else if (code->once.count > 0)
        status = fail(STATUS_GRADIENT,
                      "distribute: parameters are made in front of the block, but "
                      "`%s` is made in its body",
                      variable_name(code->once.items[0]));
    value_release(value);
    if (status != STATUS_OK) {
        error_place(code->settings[SETTING_distribute]->span);
        return false;
    }
    run->pieces = PIECES;
    while (run->pieces < ranks_count()) run->pieces *= 2;
    return setting_int(run, SETTING_pieces, 1, &run->pieces);
}

static bool setting_shard(LearnRun *run) {
    static const char *const words[] = {
        [SHARES_OPTIMIZER] = "optimizer", [SHARES_PARAMETERS] = "parameters"};
    const Code *code = run->code->settings[SETTING_shard];
    Value value = setting_eval(run, code);
    if (value.kind == VALUE_ABSENT) return true;
    if (failed(value)) return false;
    for (int i = SHARES_OPTIMIZER; i <= SHARES_PARAMETERS && value.kind == VALUE_STRING; i++)
        if (strcmp(value.as.string->bytes, words[i]) == 0) run->shares = (LearnSharing)i;
    if (run->shares == SHARES_NOTHING) {
        fail(STATUS_VALUE, "shard is %s; it must be optimizer or parameters",
             value_text(value).text);
        error_place(code->span);
    }
    value_release(value);
    return run->shares != SHARES_NOTHING;
}

static bool setting_fast(LearnRun *run) {
    const Code *code = run->code->settings[SETTING_fast];
    if (!setting_bool(run, SETTING_fast, &run->fast)) return false;
    if (!run->fast || run->shares == SHARES_NOTHING) return true;
    fail(STATUS_VALUE, "fast: with `shard` each rank adds up a part; leave one of the two out");
    error_place(code->span);
    return false;
}

static int64_t divided_up(int64_t count, int64_t size) {
    return count / size + (count % size != 0);
}

static void begin_schedule(LearnRun *run) {
    int64_t batches = run->batch_size > 0 ? divided_up(run->rows, run->batch_size) : 1;
    int64_t steps = divided_up(batches, run->accumulate);
    if (run->scheduler)
        scheduler_begin(run->scheduler, run->per_step ? run->epochs * steps : run->epochs);
}

bool learn_read_settings(LearnRun *run, RandomTraining *training) {
    const LearnCode *code = run->code;
    bool progress = true;
    if (!setting_int(run, SETTING_epochs, 0, &run->epochs)) return false;
    variable_set(run->frame, code->epochs_name,
                 code->settings[SETTING_epochs] ? value_int(run->epochs) : value_absent());
    if (!setting_optimizer(run) || !setting_scheduler(run)) return false;
    run->report_every = run->epochs >= 10 ? run->epochs / 10 : run->epochs > 0;
    run->accumulate = 1;
    if (!setting_parameters(run, SETTING_train, &run->train) ||
        !setting_parameters(run, SETTING_freeze, &run->freeze) || !setting_groups(run) ||
        !setting_int(run, SETTING_accumulate, 1, &run->accumulate) || !setting_distribute(run) ||
        !setting_shard(run) || !setting_fast(run) ||
        !setting_double(run, SETTING_clip_grad_value, &run->clip_value) || !setting_ema(run) ||
        !setting_schedule_per(run) || !setting_precision(run) ||
        !setting_file(run, SETTING_save, &run->save_path, check_save) ||
        !setting_file(run, SETTING_watch, &run->watch_path, check_watch) ||
        !setting_path(run, SETTING_resume, &run->resume_path) ||
        !setting_int(run, SETTING_every, 1, &run->save_every) ||
        !setting_bool(run, SETTING_progress, &progress))
        return false;
    run->silent = !progress;
    if (!setting_double(run, SETTING_clip_grad_norm, &run->clip) ||
        !setting_int(run, SETTING_batch, 1, &run->batch_size) ||
        !setting_bool(run, SETTING_shuffle, &run->shuffle) ||
        !setting_int(run, SETTING_report_every, 0, &run->report_every) ||
        !setting_int(run, SETTING_patience, 1, &run->patience) || !setting_dropout(run, training) ||
        !learn_take_whole(run))
        return false;
    begin_schedule(run);
    return true;
}

Status learn_set_rate(LearnRun *run) {
    if (!run->scheduler) return STATUS_OK;
    // A script that set another rate meanwhile has moved the base by as much.
    double now = optimizer_rate(run->optimizer);
    double moved = run->base_rate * now / run->set_rate;
    if (now != run->set_rate && isfinite(moved)) run->base_rate = moved;
    run->set_rate = scheduler_rate(run->scheduler, run->base_rate);
    for (size_t i = 0; i < run->group_rates.count; i++)
        if (!isnan(run->group_rates.items[i]))
            optimizer_set_group_rate(run->optimizer, i,
                                     scheduler_rate(run->scheduler, run->group_rates.items[i]));
    return optimizer_set_rate(run->optimizer, run->set_rate);
}
